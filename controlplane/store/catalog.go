package store

import (
	"fmt"

	"github.com/felixd/felixd/controlplane/model"
)

// Catalog is everything a store holds, at one instant. A store that keeps its records elsewhere writes it there and
// starts from it.
type Catalog struct {
	Epoch string // identity of the sequence that Seq belongs to; empty in a catalog that nothing was written to
	Seq   uint64 // of the last write it reflects

	// The records, each family in key order.
	Tenants    []model.Tenant
	Namespaces []model.Namespace
	Streams    []model.Stream
	Caches     []model.Cache
}

// Validate returns what makes the catalog impossible: a record that breaks a rule of the model, two records of one key or
// records out of order, or a record without its parent.
func (c Catalog) Validate() error {
	var s state
	s.load(c)
	if err := checkRows(c.Tenants, func(model.Tenant) error { return nil }); err != nil {
		return err
	}
	if err := checkRows(c.Namespaces, func(n model.Namespace) error { return s.tenantExists(n.TenantID) }); err != nil {
		return err
	}
	if err := checkRows(c.Streams, func(r model.Stream) error {
		if r.Routing == "" {
			return &model.FieldError{Field: "routing", Problem: "is missing", Advice: "a stored stream names it"}
		}
		return s.namespaceExists(r.TenantID, r.Namespace)
	}); err != nil {
		return err
	}
	return checkRows(c.Caches, func(r model.Cache) error { return s.namespaceExists(r.TenantID, r.Namespace) })
}

func checkRows[R interface {
	model.Record
	Validate() error
}](rows []R, parent func(R) error) error {
	for i, r := range rows {
		where := r.RecordKind().Singular() + " " + keyText(r.Key())
		if err := r.Validate(); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if i > 0 && rows[i-1].Key().Compare(r.Key()) >= 0 {
			return fmt.Errorf("%s: it does not come after the one before it", where)
		}
		if err := parent(r); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}
