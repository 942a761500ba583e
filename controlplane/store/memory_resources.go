package store

import (
	"context"

	"github.com/felixd/felixd/controlplane/model"
)

// CreateStream implements Store.
func (m *Memory) CreateStream(ctx context.Context, s model.Stream) (model.Stream, Outcome, error) {
	if err := s.Validate(); err != nil {
		return model.Stream{}, 0, wrap("create stream", err)
	}
	if err := m.options.Capabilities.Check(s); err != nil {
		return model.Stream{}, 0, wrap("create stream", err)
	}
	stored := s
	if stored.Routing == "" {
		stored.Routing = model.RoutingModulo
	}
	return createResource(ctx, m, &m.streams, stored, func(existing model.Stream) []string { return existing.Differences(s) })
}

// CreateCache implements Store.
func (m *Memory) CreateCache(ctx context.Context, c model.Cache) (model.Cache, Outcome, error) {
	if err := c.Validate(); err != nil {
		return model.Cache{}, 0, wrap("create cache", err)
	}
	return createResource(ctx, m, &m.caches, c, func(existing model.Cache) []string { return existing.Differences(c) })
}

// createResource is the conditional create: new, or there with the same configuration, or in the way.
func createResource[R model.Record](ctx context.Context, m *Memory, t *table[R], r R, differences func(R) []string) (R, Outcome, error) {
	var none R
	kind, key := r.RecordKind(), r.Key()
	operation := "create " + kind.Singular()
	if err := m.enter(ctx); err != nil {
		return none, 0, wrap(operation, err)
	}
	defer m.mu.Unlock()
	if err := m.namespaceExists(key.Tenant, key.Namespace); err != nil {
		return none, 0, wrap(operation, err)
	}
	if existing, taken := t.get(key); taken {
		if d := differences(existing); len(d) > 0 {
			return none, 0, wrap(operation, &ExistsError{Kind: kind, Key: key, Differs: d})
		}
		return existing, Unchanged, nil
	}
	if len(m.streams.rows)+len(m.caches.rows) >= m.options.ResourcesMax {
		return none, 0, wrap(operation, &FullError{What: "streams and caches", Bound: m.options.ResourcesMax})
	}
	t.put(r)
	m.note(OpCreated, r)
	return r, Created, nil
}

// Stream implements Store.
func (m *Memory) Stream(ctx context.Context, name model.ResourceName) (model.Stream, error) {
	return one(ctx, m, &m.streams, model.KindStreams, name)
}

// Cache implements Store.
func (m *Memory) Cache(ctx context.Context, name model.ResourceName) (model.Cache, error) {
	return one(ctx, m, &m.caches, model.KindCaches, name)
}

// Streams implements Store.
func (m *Memory) Streams(ctx context.Context, tenant, namespace, after string, limit int) ([]model.Stream, error) {
	return listResources(ctx, m, &m.streams, "list streams", model.ResourceName{Tenant: tenant, Namespace: namespace}, after, limit)
}

// Caches implements Store.
func (m *Memory) Caches(ctx context.Context, tenant, namespace, after string, limit int) ([]model.Cache, error) {
	return listResources(ctx, m, &m.caches, "list caches", model.ResourceName{Tenant: tenant, Namespace: namespace}, after, limit)
}

func listResources[R model.Record](ctx context.Context, m *Memory, t *table[R], operation string, scope model.ResourceName,
	after string, limit int) ([]R, error) {
	mustBePositive(limit)
	if err := m.enter(ctx); err != nil {
		return nil, wrap(operation, err)
	}
	defer m.mu.Unlock()
	if err := m.namespaceExists(scope.Tenant, scope.Namespace); err != nil {
		return nil, wrap(operation, err)
	}
	return t.page(scope, model.ResourceName{Tenant: scope.Tenant, Namespace: scope.Namespace, Name: after}, limit), nil
}

// PatchStream implements Store.
func (m *Memory) PatchStream(ctx context.Context, name model.ResourceName, p model.StreamPatch) (model.Stream, error) {
	return patchResource(ctx, m, &m.streams, model.KindStreams, name, func(s model.Stream) (model.Stream, error) {
		changed, err := p.Apply(s)
		if err != nil {
			return model.Stream{}, err
		}
		return changed, m.options.Capabilities.Check(changed)
	})
}

// PatchCache implements Store.
func (m *Memory) PatchCache(ctx context.Context, name model.ResourceName, p model.CachePatch) (model.Cache, error) {
	return patchResource(ctx, m, &m.caches, model.KindCaches, name, p.Apply)
}

// comparable records let a patch that changes nothing go unnumbered.
func patchResource[R interface {
	comparable
	model.Record
}](ctx context.Context, m *Memory, t *table[R], kind model.Kind, name model.ResourceName, apply func(R) (R, error)) (R, error) {
	var none R
	operation := "patch " + kind.Singular()
	if err := m.enter(ctx); err != nil {
		return none, wrap(operation, err)
	}
	defer m.mu.Unlock()
	old, ok := t.get(name)
	if !ok {
		return none, wrap(operation, &NotFoundError{Kind: kind, Key: name})
	}
	changed, err := apply(old)
	if err != nil {
		return none, wrap(operation, err)
	}
	if changed != old {
		t.put(changed)
		m.note(OpUpdated, changed)
	}
	return changed, nil
}

// DeleteStream implements Store.
func (m *Memory) DeleteStream(ctx context.Context, name model.ResourceName) error {
	return deleteResource(ctx, m, &m.streams, model.KindStreams, name)
}

// DeleteCache implements Store.
func (m *Memory) DeleteCache(ctx context.Context, name model.ResourceName) error {
	return deleteResource(ctx, m, &m.caches, model.KindCaches, name)
}

func deleteResource[R model.Record](ctx context.Context, m *Memory, t *table[R], kind model.Kind, name model.ResourceName) error {
	operation := "delete " + kind.Singular()
	if err := m.enter(ctx); err != nil {
		return wrap(operation, err)
	}
	defer m.mu.Unlock()
	r, ok := t.remove(name)
	if !ok {
		return wrap(operation, &NotFoundError{Kind: kind, Key: name})
	}
	m.note(OpDeleted, r)
	return nil
}
