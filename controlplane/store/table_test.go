package store

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/controlplane/model"
)

// TestTableAgreesWithASlice compares the sorted table with a slice and loops, over keys that are prefixes of each other.
func TestTableAgreesWithASlice(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "a-", "a.a", "aa", "b", "A"})
	rapid.Check(t, func(t *rapid.T) {
		var tab table[model.Cache]
		var twin []model.Cache
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			key := model.ResourceName{Tenant: part.Draw(t, "tenant"), Namespace: part.Draw(t, "namespace"), Name: part.Draw(t, "name")}
			row := model.Cache{TenantID: key.Tenant, Namespace: key.Namespace, Cache: key.Name, Shards: rapid.Uint32().Draw(t, "value")}
			same := func(r model.Cache) bool { return r.Key() == key }
			inside := func(r model.Cache) bool { return r.TenantID == key.Tenant && r.Namespace == key.Namespace }
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				tab.put(row)
				twin = append(slices.DeleteFunc(twin, same), row)
			case 2:
				_, had := tab.remove(key)
				if had != slices.ContainsFunc(twin, same) {
					t.Fatalf("remove %v says %v", key, had)
				}
				twin = slices.DeleteFunc(twin, same)
			case 3:
				scope := model.ResourceName{Tenant: key.Tenant, Namespace: key.Namespace}
				compareRows(t, "take", tab.take(scope), filter(twin, inside))
				twin = slices.DeleteFunc(twin, inside)
			case 4:
				limit := rapid.IntRange(1, 4).Draw(t, "limit")
				rows := filter(twin, func(r model.Cache) bool { return inside(r) && r.Cache > key.Name })
				scope := model.ResourceName{Tenant: key.Tenant, Namespace: key.Namespace}
				compareRows(t, "page", tab.page(scope, key, limit), rows[:min(limit, len(rows))])
				compareRows(t, "tenant", tab.inside(model.ResourceName{Tenant: key.Tenant}),
					filter(twin, func(r model.Cache) bool { return r.TenantID == key.Tenant }))
			}
			compareRows(t, "all", tab.rows, filter(twin, func(model.Cache) bool { return true }))
		}
	})
}

func filter(rows []model.Cache, keep func(model.Cache) bool) []model.Cache {
	var out []model.Cache
	for _, r := range rows {
		if keep(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b model.Cache) int { return a.Key().Compare(b.Key()) })
	return out
}

func compareRows(t *rapid.T, what string, got, want []model.Cache) {
	if !slices.Equal(got, want) {
		t.Fatalf("%s: table has %v, slice has %v", what, got, want)
	}
}
