package model

import "strings"

// Tenant is the unit of isolation: names, keys, tokens and permissions never reach across it.
type Tenant struct {
	TenantID    string `json:"tenant_id"`    // key
	DisplayName string `json:"display_name"` // required; for people
	// Bootstrapped is set only together with a complete day-zero seed.
	Bootstrapped bool `json:"bootstrapped,omitempty"`
}

// RecordKind is KindTenants.
func (Tenant) RecordKind() Kind { return KindTenants }

// Key holds the tenant id alone.
func (t Tenant) Key() ResourceName { return ResourceName{Tenant: t.TenantID} }

func (Tenant) record() {}

// Validate returns a *NameError or *FieldError for the first rule the record breaks, else nil.
func (t Tenant) Validate() error {
	if err := CheckName("tenant_id", t.TenantID); err != nil {
		return err
	}
	if strings.TrimSpace(t.DisplayName) == "" {
		return &FieldError{Field: "display_name", Problem: "is blank", Advice: "give the tenant a name for people"}
	}
	return checkDisplayName(t.DisplayName)
}

// TenantSpec is the body that creates a tenant.
type TenantSpec struct {
	TenantID    string `json:"tenant_id"`
	DisplayName string `json:"display_name"`
}

// Record returns the tenant asked for, or the error of Tenant.Validate.
func (s TenantSpec) Record() (Tenant, error) {
	t := Tenant{TenantID: s.TenantID, DisplayName: s.DisplayName}
	return t, t.Validate()
}

// Namespace groups streams and caches of one tenant.
type Namespace struct {
	TenantID    string `json:"tenant_id"` // key, with Namespace
	Namespace   string `json:"namespace"`
	DisplayName string `json:"display_name,omitempty"` // optional; for people
}

// RecordKind is KindNamespaces.
func (Namespace) RecordKind() Kind { return KindNamespaces }

// Key holds tenant and namespace.
func (n Namespace) Key() ResourceName {
	return ResourceName{Tenant: n.TenantID, Namespace: n.Namespace}
}

func (Namespace) record() {}

// Validate returns a *NameError or *FieldError for the first rule the record breaks, else nil.
func (n Namespace) Validate() error {
	if err := CheckName("tenant_id", n.TenantID); err != nil {
		return err
	}
	if err := CheckName("namespace", n.Namespace); err != nil {
		return err
	}
	return checkDisplayName(n.DisplayName)
}

// NamespaceSpec is the body that creates a namespace. TenantID may be left out; where given it must repeat the path.
type NamespaceSpec struct {
	TenantID    string `json:"tenant_id,omitempty"`
	Namespace   string `json:"namespace"`
	DisplayName string `json:"display_name,omitempty"`
}

// Record returns the namespace asked for within tenant, or what is wrong with the request.
func (s NamespaceSpec) Record(tenant string) (Namespace, error) {
	if err := repeats("tenant_id", s.TenantID, tenant); err != nil {
		return Namespace{}, err
	}
	n := Namespace{TenantID: tenant, Namespace: s.Namespace, DisplayName: s.DisplayName}
	return n, n.Validate()
}

// repeats refuses a body that names another scope than the path it was sent to.
func repeats(field, body, path string) error {
	if body == "" || body == path {
		return nil
	}
	return &FieldError{Field: field, Problem: quote(body) + " is not the one in the path (" + quote(path) + ")",
		Advice: "leave it out or repeat the path"}
}
