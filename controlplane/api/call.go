package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/felixd/felixd/controlplane/auth"
)

// RequestTimeout bounds the work of one request.
const RequestTimeout = 30 * time.Second

// call is one request on its way through the checks.
type call struct {
	*api
	ctx context.Context
	r   *http.Request
	w   http.ResponseWriter
}

// reply is a successful answer. A nil body is an empty one.
type reply struct {
	status int
	body   any
}

// limiter takes a place for a request; taken is false when there is none, else give hands it back.
type limiter func() (give func(), taken bool)

// limit counts the request among those in flight.
func (a *api) limit() (func(), bool) {
	select {
	case a.inFlight <- struct{}{}:
		return func() { <-a.inFlight }, true
	default:
		return nil, false
	}
}

// unlimited is for routes that must answer however busy the instance is.
func unlimited() (func(), bool) { return func() {}, true }

// route serves one pattern: choose the method, take a place, run the endpoint, write what it says.
func (a *api) route(pattern string, place limiter, methods []method) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tellRoute(w, pattern)
		serve, err := choose(methods, r.Method)
		if err != nil {
			a.writeError(w, r, err)
			return
		}
		give, taken := place()
		if !taken {
			a.writeError(w, r, &Error{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, retry: true,
				Message: fmt.Sprintf("%d requests are being served, which is the bound; try again", a.InFlightMax)})
			return
		}
		defer give()
		ctx, cancel := context.WithTimeout(r.Context(), RequestTimeout)
		defer cancel()
		answer, err := serve(&call{api: a, ctx: ctx, r: r, w: w})
		if err != nil {
			a.writeError(w, r, err)
			return
		}
		a.write(w, answer.status, answer.body)
	})
}

// observed records what a request came to, for Options.Observe.
type observed struct {
	http.ResponseWriter
	route  string
	status int
}

// WriteHeader remembers the status.
func (o *observed) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func tellRoute(w http.ResponseWriter, pattern string) {
	if o, ok := w.(*observed); ok {
		o.route = pattern
	}
}

// guard is the outermost layer: it observes, and turns a panic, which is a broken invariant of ours, into a 500 for
// this request and a log entry, so that one bad request does not end the process.
func (a *api) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := a.Clock()
		o := &observed{ResponseWriter: w, route: "unknown"}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				a.Logger.Error("request panicked", "method", r.Method, "route", o.route, "panic", p, "stack", string(debug.Stack()))
				if o.status == 0 {
					a.writeError(o, r, internalError)
				}
			}
			a.Observe(Observation{Method: methodLabel(r.Method), Route: o.route, Status: o.status, Elapsed: a.Clock().Sub(started)})
		}()
		next.ServeHTTP(o, r)
	})
}

func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete:
		return m
	}
	return "other"
}

// forbidden is the answer to a principal who lacks action over o.
func forbidden(action auth.Action, o auth.Object) error {
	return &Error{Status: http.StatusForbidden, Code: CodeForbidden,
		Message: fmt.Sprintf("forbidden: needs %s over %s", action, o)}
}
