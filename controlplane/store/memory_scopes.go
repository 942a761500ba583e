package store

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/controlplane/model"
)

// CreateTenant implements Store.
func (m *Memory) CreateTenant(ctx context.Context, t model.Tenant) error {
	if err := t.Validate(); err != nil {
		return wrap("create tenant", err)
	}
	return m.write(ctx, "create tenant", func(s *state) error {
		if _, taken := s.tenants.get(t.Key()); taken {
			return &ExistsError{Kind: model.KindTenants, Key: t.Key()}
		}
		if err := s.roomForScope(); err != nil {
			return err
		}
		s.tenants.put(t)
		s.note(OpCreated, t)
		return nil
	})
}

// CreateNamespace implements Store.
func (m *Memory) CreateNamespace(ctx context.Context, n model.Namespace) error {
	if err := n.Validate(); err != nil {
		return wrap("create namespace", err)
	}
	return m.write(ctx, "create namespace", func(s *state) error {
		if err := s.tenantExists(n.TenantID); err != nil {
			return err
		}
		if _, taken := s.namespaces.get(n.Key()); taken {
			return &ExistsError{Kind: model.KindNamespaces, Key: n.Key()}
		}
		if err := s.roomForScope(); err != nil {
			return err
		}
		s.namespaces.put(n)
		s.note(OpCreated, n)
		return nil
	})
}

// Tenant implements Store.
func (m *Memory) Tenant(ctx context.Context, tenant string) (model.Tenant, error) {
	return one(ctx, m, &m.state.tenants, model.KindTenants, model.ResourceName{Tenant: tenant})
}

// Namespace implements Store.
func (m *Memory) Namespace(ctx context.Context, tenant, namespace string) (model.Namespace, error) {
	return one(ctx, m, &m.state.namespaces, model.KindNamespaces, model.ResourceName{Tenant: tenant, Namespace: namespace})
}

// one reads a single record.
func one[R model.Record](ctx context.Context, m *Memory, t *table[R], kind model.Kind, k model.ResourceName) (R, error) {
	var none R
	if err := m.enter(ctx); err != nil {
		return none, wrap("read "+kind.Singular(), err)
	}
	defer m.mu.Unlock()
	r, ok := t.get(k)
	if !ok {
		return none, wrap("read "+kind.Singular(), &NotFoundError{Kind: kind, Key: k})
	}
	return r, nil
}

// Tenants implements Store.
func (m *Memory) Tenants(ctx context.Context, after string, limit int) ([]model.Tenant, error) {
	mustBePositive(limit)
	if err := m.enter(ctx); err != nil {
		return nil, wrap("list tenants", err)
	}
	defer m.mu.Unlock()
	rows := m.state.tenants.rows
	i, found := m.state.tenants.find(model.ResourceName{Tenant: after})
	if found {
		i++
	}
	return append([]model.Tenant(nil), rows[i:min(i+limit, len(rows))]...), nil
}

// Namespaces implements Store.
func (m *Memory) Namespaces(ctx context.Context, tenant, after string, limit int) ([]model.Namespace, error) {
	mustBePositive(limit)
	if err := m.enter(ctx); err != nil {
		return nil, wrap("list namespaces", err)
	}
	defer m.mu.Unlock()
	if err := m.state.tenantExists(tenant); err != nil {
		return nil, wrap("list namespaces", err)
	}
	scope := model.ResourceName{Tenant: tenant}
	return m.state.namespaces.page(scope, model.ResourceName{Tenant: tenant, Namespace: after}, limit), nil
}

// DeleteTenant implements Store.
func (m *Memory) DeleteTenant(ctx context.Context, tenant string) error {
	return m.write(ctx, "delete tenant", func(s *state) error {
		if err := s.tenantExists(tenant); err != nil {
			return err
		}
		scope := model.ResourceName{Tenant: tenant}
		s.deleteInside(scope)
		noteDeleted(s, s.namespaces.take(scope))
		t, _ := s.tenants.remove(scope)
		s.note(OpDeleted, t)
		return nil
	})
}

// DeleteNamespace implements Store.
func (m *Memory) DeleteNamespace(ctx context.Context, tenant, namespace string) error {
	return m.write(ctx, "delete namespace", func(s *state) error {
		if err := s.namespaceExists(tenant, namespace); err != nil {
			return err
		}
		scope := model.ResourceName{Tenant: tenant, Namespace: namespace}
		s.deleteInside(scope)
		n, _ := s.namespaces.remove(scope)
		s.note(OpDeleted, n)
		return nil
	})
}

// wrap puts the operation first. It keeps nil.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}
