package store

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/controlplane/model"
)

// CreateTenant implements Store.
func (m *Memory) CreateTenant(ctx context.Context, t model.Tenant) error {
	err := m.createScope(ctx, t.Validate(), func() error {
		if _, taken := m.tenants.get(t.Key()); taken {
			return &ExistsError{Kind: model.KindTenants, Key: t.Key()}
		}
		if err := m.roomForScope(); err != nil {
			return err
		}
		m.tenants.put(t)
		m.note(OpCreated, t)
		return nil
	})
	return wrap("create tenant", err)
}

// CreateNamespace implements Store.
func (m *Memory) CreateNamespace(ctx context.Context, n model.Namespace) error {
	err := m.createScope(ctx, n.Validate(), func() error {
		if err := m.tenantExists(n.TenantID); err != nil {
			return err
		}
		if _, taken := m.namespaces.get(n.Key()); taken {
			return &ExistsError{Kind: model.KindNamespaces, Key: n.Key()}
		}
		if err := m.roomForScope(); err != nil {
			return err
		}
		m.namespaces.put(n)
		m.note(OpCreated, n)
		return nil
	})
	return wrap("create namespace", err)
}

// createScope runs write under the lock unless the record is invalid.
func (m *Memory) createScope(ctx context.Context, invalid error, write func() error) error {
	if invalid != nil {
		return invalid
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	return write()
}

func (m *Memory) roomForScope() error {
	if len(m.tenants.rows)+len(m.namespaces.rows) >= m.options.ScopesMax {
		return &FullError{What: "tenants and namespaces", Bound: m.options.ScopesMax}
	}
	return nil
}

func (m *Memory) tenantExists(tenant string) error {
	return exists(&m.tenants, model.KindTenants, model.ResourceName{Tenant: tenant})
}

func (m *Memory) namespaceExists(tenant, namespace string) error {
	return exists(&m.namespaces, model.KindNamespaces, model.ResourceName{Tenant: tenant, Namespace: namespace})
}

func exists[R model.Record](t *table[R], kind model.Kind, k model.ResourceName) error {
	if _, ok := t.get(k); !ok {
		return &NotFoundError{Kind: kind, Key: k}
	}
	return nil
}

// Tenant implements Store.
func (m *Memory) Tenant(ctx context.Context, tenant string) (model.Tenant, error) {
	return one(ctx, m, &m.tenants, model.KindTenants, model.ResourceName{Tenant: tenant})
}

// Namespace implements Store.
func (m *Memory) Namespace(ctx context.Context, tenant, namespace string) (model.Namespace, error) {
	return one(ctx, m, &m.namespaces, model.KindNamespaces, model.ResourceName{Tenant: tenant, Namespace: namespace})
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
	rows := m.tenants.rows
	i, found := m.tenants.find(model.ResourceName{Tenant: after})
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
	if err := m.tenantExists(tenant); err != nil {
		return nil, wrap("list namespaces", err)
	}
	scope := model.ResourceName{Tenant: tenant}
	return m.namespaces.page(scope, model.ResourceName{Tenant: tenant, Namespace: after}, limit), nil
}

// DeleteTenant implements Store.
func (m *Memory) DeleteTenant(ctx context.Context, tenant string) error {
	if err := m.enter(ctx); err != nil {
		return wrap("delete tenant", err)
	}
	defer m.mu.Unlock()
	if err := m.tenantExists(tenant); err != nil {
		return wrap("delete tenant", err)
	}
	scope := model.ResourceName{Tenant: tenant}
	m.deleteInside(scope)
	noteDeleted(m, m.namespaces.take(scope))
	t, _ := m.tenants.remove(scope)
	m.note(OpDeleted, t)
	return nil
}

// DeleteNamespace implements Store.
func (m *Memory) DeleteNamespace(ctx context.Context, tenant, namespace string) error {
	if err := m.enter(ctx); err != nil {
		return wrap("delete namespace", err)
	}
	defer m.mu.Unlock()
	if err := m.namespaceExists(tenant, namespace); err != nil {
		return wrap("delete namespace", err)
	}
	scope := model.ResourceName{Tenant: tenant, Namespace: namespace}
	m.deleteInside(scope)
	n, _ := m.namespaces.remove(scope)
	m.note(OpDeleted, n)
	return nil
}

// deleteInside removes streams and caches of a tenant or namespace, each family in key order.
func (m *Memory) deleteInside(scope model.ResourceName) {
	noteDeleted(m, m.streams.take(scope))
	noteDeleted(m, m.caches.take(scope))
}

func noteDeleted[R model.Record](m *Memory, taken []R) {
	for _, r := range taken {
		m.note(OpDeleted, r)
	}
}

// wrap puts the operation first. It keeps nil.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}
