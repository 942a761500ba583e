package store

import (
	"context"
	"errors"
	"fmt"

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
	return createResource(ctx, m, streamsOf, stored, func(existing model.Stream) []string { return existing.Differences(s) })
}

// CreateCache implements Store.
func (m *Memory) CreateCache(ctx context.Context, c model.Cache) (model.Cache, Outcome, error) {
	if err := c.Validate(); err != nil {
		return model.Cache{}, 0, wrap("create cache", err)
	}
	return createResource(ctx, m, cachesOf, c, func(existing model.Cache) []string { return existing.Differences(c) })
}

func streamsOf(s *state) *table[model.Stream] { return &s.streams }
func cachesOf(s *state) *table[model.Cache]   { return &s.caches }

// createResource is the conditional create: new, or there with the same configuration, or in the way.
func createResource[R model.Record](ctx context.Context, m *Memory, of func(*state) *table[R], r R, differences func(R) []string) (R, Outcome, error) {
	var none R
	kind, key := r.RecordKind(), r.Key()
	stored, outcome := r, Created
	err := m.write(ctx, "create "+kind.Singular(), func(s *state) error {
		if err := s.namespaceExists(key.Tenant, key.Namespace); err != nil {
			return err
		}
		if existing, taken := of(s).get(key); taken {
			if d := differences(existing); len(d) > 0 {
				return &ExistsError{Kind: kind, Key: key, Differs: d}
			}
			stored, outcome = existing, Unchanged
			return nil
		}
		if err := s.roomForResource(); err != nil {
			return err
		}
		of(s).put(r)
		s.note(OpCreated, r)
		return nil
	})
	if err != nil {
		return none, 0, err
	}
	return stored, outcome, nil
}

// Stream implements Store.
func (m *Memory) Stream(ctx context.Context, name model.ResourceName) (model.Stream, error) {
	return one(ctx, m, &m.state.streams, model.KindStreams, name)
}

// Cache implements Store.
func (m *Memory) Cache(ctx context.Context, name model.ResourceName) (model.Cache, error) {
	return one(ctx, m, &m.state.caches, model.KindCaches, name)
}

// Streams implements Store.
func (m *Memory) Streams(ctx context.Context, tenant, namespace, after string, limit int) ([]model.Stream, error) {
	return listResources(ctx, m, &m.state.streams, "list streams", model.ResourceName{Tenant: tenant, Namespace: namespace}, after, limit)
}

// Caches implements Store.
func (m *Memory) Caches(ctx context.Context, tenant, namespace, after string, limit int) ([]model.Cache, error) {
	return listResources(ctx, m, &m.state.caches, "list caches", model.ResourceName{Tenant: tenant, Namespace: namespace}, after, limit)
}

func listResources[R model.Record](ctx context.Context, m *Memory, t *table[R], operation string, scope model.ResourceName,
	after string, limit int) ([]R, error) {
	mustBePositive(limit)
	if err := m.enter(ctx); err != nil {
		return nil, wrap(operation, err)
	}
	defer m.mu.Unlock()
	if err := m.state.namespaceExists(scope.Tenant, scope.Namespace); err != nil {
		return nil, wrap(operation, err)
	}
	return t.page(scope, model.ResourceName{Tenant: scope.Tenant, Namespace: scope.Namespace, Name: after}, limit), nil
}

// PatchStream implements Store.
func (m *Memory) PatchStream(ctx context.Context, name model.ResourceName, p model.StreamPatch) (model.Stream, error) {
	return changeResource(ctx, m, "patch stream", streamsOf, model.KindStreams, name, func(s model.Stream) (model.Stream, error) {
		changed, err := p.Apply(s)
		if err != nil {
			return model.Stream{}, err
		}
		return changed, m.options.Capabilities.Check(changed)
	})
}

// SetLogs implements Store.
func (m *Memory) SetLogs(ctx context.Context, name model.ResourceName, incarnation model.Incarnation, logs []model.ShardLog) (model.Stream, error) {
	return changeResource(ctx, m, "set logs of stream", streamsOf, model.KindStreams, name, func(s model.Stream) (model.Stream, error) {
		if s.Incarnation != incarnation {
			return model.Stream{}, anotherOne(model.KindStreams)
		}
		return conflicting(s.WithLogs(logs))
	})
}

// SetCacheLogs implements Store.
func (m *Memory) SetCacheLogs(ctx context.Context, name model.ResourceName, incarnation model.Incarnation, logs []model.ShardLog) (model.Cache, error) {
	return changeResource(ctx, m, "set logs of cache", cachesOf, model.KindCaches, name, func(c model.Cache) (model.Cache, error) {
		if c.Incarnation != incarnation {
			return model.Cache{}, anotherOne(model.KindCaches)
		}
		return conflicting(c.WithLogs(logs))
	})
}

func anotherOne(kind model.Kind) error {
	return fmt.Errorf("%w: it is another %s of that name", ErrConflict, kind.Singular())
}

// conflicting marks a report that contradicts the record as a conflict.
func conflicting[R model.Record](changed R, err error) (R, error) {
	if errors.Is(err, model.ErrLogDiffers) {
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return changed, err
}

// PatchCache implements Store.
func (m *Memory) PatchCache(ctx context.Context, name model.ResourceName, p model.CachePatch) (model.Cache, error) {
	return changeResource(ctx, m, "patch cache", cachesOf, model.KindCaches, name, p.Apply)
}

// changeResource stores what change makes of a record; a change to the same goes unnumbered, which takes comparable
// records.
func changeResource[R interface {
	comparable
	model.Record
}](ctx context.Context, m *Memory, operation string, of func(*state) *table[R], kind model.Kind, name model.ResourceName, change func(R) (R, error)) (R, error) {
	var none, changed R
	err := m.write(ctx, operation, func(s *state) error {
		old, ok := of(s).get(name)
		if !ok {
			return &NotFoundError{Kind: kind, Key: name}
		}
		var err error
		if changed, err = change(old); err != nil {
			return err
		}
		if changed != old {
			of(s).put(changed)
			s.note(OpUpdated, changed)
		}
		return nil
	})
	if err != nil {
		return none, err
	}
	return changed, nil
}

// DeleteStream implements Store.
func (m *Memory) DeleteStream(ctx context.Context, name model.ResourceName) error {
	return deleteResource(ctx, m, streamsOf, model.KindStreams, name)
}

// DeleteCache implements Store.
func (m *Memory) DeleteCache(ctx context.Context, name model.ResourceName) error {
	return deleteResource(ctx, m, cachesOf, model.KindCaches, name)
}

func deleteResource[R model.Record](ctx context.Context, m *Memory, of func(*state) *table[R], kind model.Kind, name model.ResourceName) error {
	return m.write(ctx, "delete "+kind.Singular(), func(s *state) error {
		r, ok := of(s).remove(name)
		if !ok {
			return &NotFoundError{Kind: kind, Key: name}
		}
		s.note(OpDeleted, r)
		return nil
	})
}
