package api

import (
	"net/http"
	"path"
	"strings"
)

// endpoint serves one method of one route. What it returns is all that is written.
type endpoint func(c *call) (reply, error)

// method binds an endpoint to an HTTP method. GET serves HEAD too.
type method struct {
	name  string
	serve endpoint
}

// routes builds the table of all routes.
func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	add := func(pattern string, methods ...method) { mux.Handle(pattern, a.route(pattern, a.limit, methods)) }
	open := func(pattern string, serve endpoint) {
		mux.Handle(pattern, a.route(pattern, unlimited, []method{{http.MethodGet, serve}}))
	}
	const (
		tenant    = "/v1/tenants/{tenant}"
		namespace = tenant + "/namespaces/{namespace}"
	)
	add("/v1/tenants", method{http.MethodGet, a.listTenants}, method{http.MethodPost, a.createTenant})
	add(tenant, method{http.MethodGet, a.getTenant}, method{http.MethodDelete, a.deleteTenant})
	add(tenant+"/namespaces", method{http.MethodGet, a.listNamespaces}, method{http.MethodPost, a.createNamespace})
	add(namespace, method{http.MethodGet, a.getNamespace}, method{http.MethodDelete, a.deleteNamespace})
	add(namespace+"/streams", method{http.MethodGet, a.listStreams}, method{http.MethodPost, a.createStream})
	add(namespace+"/streams/{stream}", method{http.MethodGet, a.getStream}, method{http.MethodPatch, a.patchStream},
		method{http.MethodDelete, a.deleteStream})
	add(namespace+"/streams/{stream}/groups", method{http.MethodGet, a.listGroups})
	add(namespace+"/caches", method{http.MethodGet, a.listCaches}, method{http.MethodPost, a.createCache})
	add(namespace+"/caches/{cache}", method{http.MethodGet, a.getCache}, method{http.MethodPatch, a.patchCache},
		method{http.MethodDelete, a.deleteCache})

	open("/v1/system/live", a.live)
	open("/v1/system/ready", a.ready)
	open("/v1/system/health", a.ready)
	return plainPathsOnly(mux, a.route("unknown", unlimited, nil))
}

// plainPathsOnly sends paths the mux would redirect (double slashes, dots, a slash at the end) and paths without a
// route to unknown: a redirect of an API call hides a mistake and may drop its body.
func plainPathsOnly(mux *http.ServeMux, unknown http.Handler) http.Handler {
	mux.Handle("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		if !strings.HasPrefix(escaped, "/") || path.Clean(escaped) != escaped {
			unknown.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// choose returns the endpoint for an HTTP method, or the error that says which methods there are.
func choose(methods []method, name string) (endpoint, error) {
	if len(methods) == 0 {
		return nil, &Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: "there is no such route"}
	}
	wanted := name
	if wanted == http.MethodHead {
		wanted = http.MethodGet
	}
	var allowed []string
	for _, m := range methods {
		if m.name == wanted {
			return m.serve, nil
		}
		allowed = append(allowed, m.name)
		if m.name == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	return nil, &Error{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed,
		Message: "this route takes " + strings.Join(allowed, ", "), allow: strings.Join(allowed, ", ")}
}
