package store

import (
	"slices"

	"github.com/felixd/felixd/controlplane/model"
)

// state is what the catalog holds. Whoever uses it has it alone, or only reads.
type state struct {
	capabilities Capabilities
	resourcesMax int
	scopesMax    int

	tenants    table[model.Tenant]
	namespaces table[model.Namespace]
	streams    table[model.Stream]
	caches     table[model.Cache]

	noted []Change // what the change under way did, in its order; without numbers yet
}

// note tells that a record was changed.
func (s *state) note(op Op, r model.Record) { s.noted = append(s.noted, Change{Op: op, Record: r}) }

// clone copies everything but what was noted.
func (s *state) clone() state {
	n := *s
	n.noted = nil
	n.tenants.rows = slices.Clone(s.tenants.rows)
	n.namespaces.rows = slices.Clone(s.namespaces.rows)
	n.streams.rows = slices.Clone(s.streams.rows)
	n.caches.rows = slices.Clone(s.caches.rows)
	return n
}

// catalog shows the rows; they stay the state's.
func (s *state) catalog() Catalog {
	return Catalog{Tenants: s.tenants.rows, Namespaces: s.namespaces.rows, Streams: s.streams.rows, Caches: s.caches.rows}
}

// load takes copies of the rows of a valid catalog.
func (s *state) load(c Catalog) {
	s.tenants.rows = slices.Clone(c.Tenants)
	s.namespaces.rows = slices.Clone(c.Namespaces)
	s.streams.rows = slices.Clone(c.Streams)
	s.caches.rows = slices.Clone(c.Caches)
}

func (s *state) roomForScope() error {
	if len(s.tenants.rows)+len(s.namespaces.rows) >= s.scopesMax {
		return &FullError{What: "tenants and namespaces", Bound: s.scopesMax}
	}
	return nil
}

func (s *state) roomForResource() error {
	if len(s.streams.rows)+len(s.caches.rows) >= s.resourcesMax {
		return &FullError{What: "streams and caches", Bound: s.resourcesMax}
	}
	return nil
}

func (s *state) tenantExists(tenant string) error {
	return exists(&s.tenants, model.KindTenants, model.ResourceName{Tenant: tenant})
}

func (s *state) namespaceExists(tenant, namespace string) error {
	return exists(&s.namespaces, model.KindNamespaces, model.ResourceName{Tenant: tenant, Namespace: namespace})
}

func exists[R model.Record](t *table[R], kind model.Kind, k model.ResourceName) error {
	if _, ok := t.get(k); !ok {
		return &NotFoundError{Kind: kind, Key: k}
	}
	return nil
}

// deleteInside removes streams and caches of a tenant or namespace, each family in key order.
func (s *state) deleteInside(scope model.ResourceName) {
	noteDeleted(s, s.streams.take(scope))
	noteDeleted(s, s.caches.take(scope))
}

func noteDeleted[R model.Record](s *state, taken []R) {
	for _, r := range taken {
		s.note(OpDeleted, r)
	}
}
