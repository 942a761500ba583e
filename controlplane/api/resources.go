package api

import (
	"context"
	"net/http"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

// family is what streams and caches differ in, so that the order of checks is written down once.
type family struct {
	kind   model.ResourceKind
	key    string // JSON name of the name, and of the path segment
	manage auth.Action
	object func(tenant, namespace, name string) auth.Object
}

// name is the full name of the resource in the path.
func (f family) name(c *call) model.ResourceName {
	return model.ResourceName{Tenant: c.r.PathValue("tenant"), Namespace: c.r.PathValue("namespace"), Name: c.r.PathValue(f.key)}
}

// may checks that who may manage the resource of that name.
func (f family) may(who *auth.Principal, n model.ResourceName) error {
	return must(who, f.manage, f.object(n.Tenant, n.Namespace, n.Name))
}

// one checks that the caller may manage the resource in the path, and names it.
func (f family) one(c *call) (model.ResourceName, error) {
	n := f.name(c)
	who, err := c.ofTenant()
	if err != nil {
		return n, err
	}
	return n, f.may(who, n)
}

// some checks that the caller may manage anything of this family in the namespace of the path.
func (f family) some(c *call) (*auth.Principal, model.ResourceName, error) {
	n := f.name(c)
	who, err := c.ofTenant()
	if err != nil {
		return nil, n, err
	}
	return who, n, mustSomewhere(who, f.manage, auth.NamespaceObject(n.Tenant, n.Namespace))
}

// lister is Store.Streams or Store.Caches.
type lister[R any] func(ctx context.Context, tenant, namespace, after string, limit int) ([]R, error)

// listFamily serves the listing of a namespace, filtered to what the caller may manage.
func listFamily[R model.Record](c *call, f family, list lister[R]) (reply, error) {
	who, in, err := f.some(c)
	if err != nil {
		return reply{}, err
	}
	w, err := parseWindow(c.r.URL)
	if err != nil {
		return reply{}, err
	}
	read := func(after string, limit int) ([]R, error) { return list(c.ctx, in.Tenant, in.Namespace, after, limit) }
	page, err := fill(w, read, func(r R) string { return r.Key().Name }, func(r R) bool { return f.may(who, r.Key()) == nil })
	return reply{http.StatusOK, page}, err
}

// createFamily serves a create. Record builds the record of a decoded spec, create stores it.
func createFamily[S any, R model.Record](c *call, f family, record func(S, string, string, model.Incarnation) (R, error),
	create func(context.Context, R) (R, store.Outcome, error)) (reply, error) {
	who, in, err := f.some(c)
	if err != nil {
		return reply{}, err
	}
	var spec S
	err = c.decodeNamed(f.key, &spec, func(name string) error {
		return f.may(who, model.ResourceName{Tenant: in.Tenant, Namespace: in.Namespace, Name: name})
	})
	if err != nil {
		return reply{}, err
	}
	incarnation, err := model.NewIncarnation(c.Random)
	if err != nil {
		return reply{}, err
	}
	r, err := record(spec, in.Tenant, in.Namespace, incarnation)
	if err != nil {
		return reply{}, err
	}
	if err := f.may(who, r.Key()); err != nil {
		return reply{}, err
	}
	stored, outcome, err := create(c.ctx, r)
	if err != nil {
		return reply{}, err
	}
	if outcome == store.Unchanged {
		return reply{http.StatusOK, stored}, nil
	}
	if c.Hosted != nil {
		c.Hosted(c.ctx, f.kind, stored.Key())
	}
	return reply{http.StatusCreated, stored}, nil
}

// getFamily serves the read of one resource.
func getFamily[R any](c *call, f family, get func(context.Context, model.ResourceName) (R, error)) (reply, error) {
	n, err := f.one(c)
	if err != nil {
		return reply{}, err
	}
	r, err := get(c.ctx, n)
	return reply{http.StatusOK, r}, err
}

// validator is a patch that can be judged before it is known whether its target exists.
type validator interface{ Validate() error }

// patchFamily serves a patch; fields in immutable exist but can't be patched.
func patchFamily[P validator, R any](c *call, f family, immutable []string,
	patch func(context.Context, model.ResourceName, P) (R, error)) (reply, error) {
	n, err := f.one(c)
	if err != nil {
		return reply{}, err
	}
	body, err := c.readBody()
	if err != nil {
		return reply{}, err
	}
	var p P
	if err := decode(body, &p, immutable...); err != nil {
		return reply{}, err
	}
	if err := p.Validate(); err != nil {
		return reply{}, err
	}
	r, err := patch(c.ctx, n, p)
	return reply{http.StatusOK, r}, err
}

// deleteFamily serves the removal of one resource.
func deleteFamily(c *call, f family, remove func(context.Context, model.ResourceName) error) (reply, error) {
	n, err := f.one(c)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, remove(c.ctx, n)
}
