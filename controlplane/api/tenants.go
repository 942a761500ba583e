package api

import (
	"net/http"

	"github.com/felixd/felixd/controlplane/model"
)

// listTenants serves GET /v1/tenants.
func (a *api) listTenants(c *call) (reply, error) {
	if err := c.mustManageTenants(); err != nil {
		return reply{}, err
	}
	w, err := parseWindow(c.r.URL)
	if err != nil {
		return reply{}, err
	}
	list := func(after string, limit int) ([]model.Tenant, error) { return a.Store.Tenants(c.ctx, after, limit) }
	page, err := fill(w, list, func(t model.Tenant) string { return t.TenantID }, func(model.Tenant) bool { return true })
	return reply{http.StatusOK, page}, err
}

// createTenant serves POST /v1/tenants.
func (a *api) createTenant(c *call) (reply, error) {
	if err := c.mustManageTenants(); err != nil {
		return reply{}, err
	}
	body, err := c.readBody()
	if err != nil {
		return reply{}, err
	}
	var spec model.TenantSpec
	if err := decode(body, &spec); err != nil {
		return reply{}, err
	}
	t, err := spec.Record()
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusCreated, t}, a.Store.CreateTenant(c.ctx, t)
}

// getTenant serves GET /v1/tenants/{tenant}.
func (a *api) getTenant(c *call) (reply, error) {
	if err := c.mustManageTenants(); err != nil {
		return reply{}, err
	}
	t, err := a.Store.Tenant(c.ctx, c.r.PathValue("tenant"))
	return reply{http.StatusOK, t}, err
}

// deleteTenant serves DELETE /v1/tenants/{tenant}. The tenant's own admin may not.
func (a *api) deleteTenant(c *call) (reply, error) {
	if err := c.mustManageTenants(); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, a.Store.DeleteTenant(c.ctx, c.r.PathValue("tenant"))
}
