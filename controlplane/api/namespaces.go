package api

import (
	"net/http"

	"github.com/felixd/felixd/controlplane/auth"
	"github.com/felixd/felixd/controlplane/model"
)

// listNamespaces serves GET .../namespaces, filtered to what the caller may manage.
func (a *api) listNamespaces(c *call) (reply, error) {
	tenant := c.r.PathValue("tenant")
	who, err := c.ofTenant()
	if err != nil {
		return reply{}, err
	}
	if err := mustSomewhere(who, auth.NamespaceManage, auth.TenantObject(tenant)); err != nil {
		return reply{}, err
	}
	w, err := parseWindow(c.r.URL)
	if err != nil {
		return reply{}, err
	}
	list := func(after string, limit int) ([]model.Namespace, error) {
		return a.Store.Namespaces(c.ctx, tenant, after, limit)
	}
	page, err := fill(w, list, func(n model.Namespace) string { return n.Namespace }, func(n model.Namespace) bool {
		return who.Permissions.Allows(auth.NamespaceManage, auth.NamespaceObject(tenant, n.Namespace))
	})
	return reply{http.StatusOK, page}, err
}

// createNamespace serves POST .../namespaces.
func (a *api) createNamespace(c *call) (reply, error) {
	tenant := c.r.PathValue("tenant")
	who, err := c.ofTenant()
	if err != nil {
		return reply{}, err
	}
	if err := mustSomewhere(who, auth.NamespaceManage, auth.TenantObject(tenant)); err != nil {
		return reply{}, err
	}
	var spec model.NamespaceSpec
	may := func(name string) error {
		return must(who, auth.NamespaceManage, auth.NamespaceObject(tenant, name))
	}
	if err := c.decodeNamed("namespace", &spec, may); err != nil {
		return reply{}, err
	}
	n, err := spec.Record(tenant)
	if err != nil {
		return reply{}, err
	}
	if err := may(n.Namespace); err != nil {
		return reply{}, err
	}
	return reply{http.StatusCreated, n}, a.Store.CreateNamespace(c.ctx, n)
}

// decodeNamed reads the body of a create: first only the name it gives, which may judges, then all of it into dst.
// Callers judge the name of the finished record again: that is the one that is written.
func (c *call) decodeNamed(key string, dst any, may func(name string) error) error {
	body, err := c.readBody()
	if err != nil {
		return err
	}
	if name := named(body, key); name != "" {
		if err := may(name); err != nil {
			return err
		}
	}
	return decode(body, dst)
}

// manageNamespace checks that the caller may manage the namespace of the path.
func (c *call) manageNamespace() (tenant, namespace string, err error) {
	tenant, namespace = c.r.PathValue("tenant"), c.r.PathValue("namespace")
	who, err := c.ofTenant()
	if err != nil {
		return "", "", err
	}
	return tenant, namespace, must(who, auth.NamespaceManage, auth.NamespaceObject(tenant, namespace))
}

// getNamespace serves GET .../namespaces/{namespace}.
func (a *api) getNamespace(c *call) (reply, error) {
	tenant, namespace, err := c.manageNamespace()
	if err != nil {
		return reply{}, err
	}
	n, err := a.Store.Namespace(c.ctx, tenant, namespace)
	return reply{http.StatusOK, n}, err
}

// deleteNamespace serves DELETE .../namespaces/{namespace}, with everything inside.
func (a *api) deleteNamespace(c *call) (reply, error) {
	tenant, namespace, err := c.manageNamespace()
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, a.Store.DeleteNamespace(c.ctx, tenant, namespace)
}
