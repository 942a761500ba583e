package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

// While a write is being saved nobody sees it and everybody can read; another write waits, as long as its caller does.
func TestAWriteIsSeenWhenItIsSavedAndNotBefore(t *testing.T) {
	saving, saved := make(chan store.Catalog), make(chan struct{})
	m := store.NewMemory(store.MemoryOptions{Save: func(c store.Catalog) error {
		saving <- c
		<-saved
		return nil
	}})
	ctx, done := t.Context(), make(chan error, 1)
	go func() { done <- m.CreateTenant(ctx, model.Tenant{TenantID: "t", DisplayName: "T"}) }()
	if c := <-saving; len(c.Tenants) != 1 || c.Seq != 1 {
		t.Fatalf("saved %+v", c)
	}
	if _, err := m.Tenant(ctx, "t"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("read before it is saved: %v", err)
	}
	if s, err := m.Snapshot(ctx, model.KindTenants); err != nil || s.Seq != 0 {
		t.Fatalf("followed before it is saved: %+v, %v", s, err)
	}
	ended, cancel := context.WithCancel(ctx)
	second := make(chan error, 1)
	go func() { second <- m.CreateTenant(ended, model.Tenant{TenantID: "u", DisplayName: "U"}) }()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Fatalf("a write whose caller has gone: %v", err)
	}
	close(saved)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := m.Tenant(ctx, "t"); err != nil {
		t.Fatal(err)
	}
}

func TestWhatChangesNothingIsNotSaved(t *testing.T) {
	saves := 0
	m := store.NewMemory(store.MemoryOptions{Save: func(store.Catalog) error { saves++; return nil }})
	ctx := namespaceIn(t, m)
	if _, _, err := m.CreateStream(ctx, streamNamed("s")); err != nil {
		t.Fatal(err)
	}
	before := saves
	if _, _, err := m.CreateStream(ctx, streamNamed("s")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.PatchStream(ctx, streamNamed("s").Key(), model.StreamPatch{}); err != nil {
		t.Fatal(err)
	}
	if err := m.DeleteStream(ctx, streamNamed("none").Key()); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if saves != before || before != 3 {
		t.Fatalf("%d saves for three writes, then %d more", before, saves-before)
	}
}

func TestAnImpossibleCatalogIsNamed(t *testing.T) {
	tenant := model.Tenant{TenantID: "t", DisplayName: "T"}
	ns := model.Namespace{TenantID: "t", Namespace: "n"}
	s := streamNamed("s")
	s.Routing = model.RoutingModulo
	good := store.Catalog{Tenants: []model.Tenant{tenant}, Namespaces: []model.Namespace{ns}, Streams: []model.Stream{s}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*store.Catalog){
		"twice":             func(c *store.Catalog) { c.Tenants = []model.Tenant{tenant, tenant} },
		"without tenant":    func(c *store.Catalog) { c.Tenants = nil },
		"without namespace": func(c *store.Catalog) { c.Namespaces = nil },
		"without routing":   func(c *store.Catalog) { c.Streams = []model.Stream{streamNamed("s")} },
		"invalid":           func(c *store.Catalog) { c.Tenants = []model.Tenant{{TenantID: "t"}} },
	} {
		bad := good
		if change(&bad); bad.Validate() == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
