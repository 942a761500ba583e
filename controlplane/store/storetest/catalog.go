package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

func is(err, target error) bool { return errors.Is(err, target) }

func scopesNotRepeated(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	want(t, "create the same tenant", s.CreateTenant(ctx, tenant("t1")), store.ErrExists)
	want(t, "create the same namespace", s.CreateNamespace(ctx, namespace("t1", "a")), store.ErrExists)
	got, err := s.Tenant(ctx, "t1")
	want(t, "read tenant", err, nil)
	if got != tenant("t1") {
		t.Fatalf("read %+v", got)
	}
	ns, err := s.Namespace(ctx, "t1", "a")
	want(t, "read namespace", err, nil)
	if ns != namespace("t1", "a") {
		t.Fatalf("read %+v", ns)
	}
}

func parentsMustExist(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	want(t, "namespace of an unknown tenant", s.CreateNamespace(ctx, namespace("t9", "a")), store.ErrNotFound)
	_, _, err := s.CreateStream(ctx, stream(name("t2", "b", "s"), 1))
	want(t, "stream of an unknown namespace", err, store.ErrNotFound)
	_, _, err = s.CreateCache(ctx, cache(name("t2", "b", "c"), 1))
	want(t, "cache of an unknown namespace", err, store.ErrNotFound)
	_, err = s.Namespaces(ctx, "t9", "", 10)
	want(t, "list namespaces of an unknown tenant", err, store.ErrNotFound)
	_, err = s.Streams(ctx, "t2", "b", "", 10)
	want(t, "list streams of an unknown namespace", err, store.ErrNotFound)
	_, err = s.Caches(ctx, "t2", "b", "", 10)
	want(t, "list caches of an unknown namespace", err, store.ErrNotFound)
}

func missingIsNotFound(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	before := last(ctx, t, s)
	for _, n := range []model.ResourceName{name("t1", "a", "x"), name("t1", "a", ""), name("t1", "", ""), name("", "", ""),
		name("t1\x00a", "x", "y"), name("t1/a", "x", "y")} {
		_, err := s.Stream(ctx, n)
		want(t, "read stream", err, store.ErrNotFound)
		_, err = s.Cache(ctx, n)
		want(t, "read cache", err, store.ErrNotFound)
		_, err = s.PatchStream(ctx, n, model.StreamPatch{})
		want(t, "patch stream", err, store.ErrNotFound)
		_, err = s.PatchCache(ctx, n, model.CachePatch{})
		want(t, "patch cache", err, store.ErrNotFound)
		want(t, "delete stream", s.DeleteStream(ctx, n), store.ErrNotFound)
		want(t, "delete cache", s.DeleteCache(ctx, n), store.ErrNotFound)
	}
	_, err := s.Tenant(ctx, "t")
	want(t, "read tenant", err, store.ErrNotFound)
	_, err = s.Namespace(ctx, "t1", "c")
	want(t, "read namespace", err, store.ErrNotFound)
	want(t, "delete tenant", s.DeleteTenant(ctx, "t9"), store.ErrNotFound)
	want(t, "delete namespace", s.DeleteNamespace(ctx, "t2", "b"), store.ErrNotFound)
	if after := last(ctx, t, s); after != before {
		t.Fatalf("operations that found nothing took numbers %d..%d", before+1, after)
	}
}

func invalidRefused(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	before := last(ctx, t, s)
	want(t, "tenant", s.CreateTenant(ctx, model.Tenant{TenantID: "a/b", DisplayName: "x"}), store.ErrInvalid)
	want(t, "namespace", s.CreateNamespace(ctx, namespace("t1", "*")), store.ErrInvalid)
	_, _, err := s.CreateStream(ctx, stream(name("t1", "a", "s"), 0))
	want(t, "stream without incarnation", err, store.ErrInvalid)
	bad := cache(name("t1", "a", "c"), 1)
	bad.Shards = model.ShardsMax + 1
	_, _, err = s.CreateCache(ctx, bad)
	want(t, "cache with too many shards", err, store.ErrInvalid)
	mustCreateStream(ctx, t, s, name("t1", "a", "s"), 1)
	_, err = s.PatchStream(ctx, name("t1", "a", "s"), model.StreamPatch{Retention: &model.RetentionPatch{MaxAgeSeconds: model.SetBound(0)}})
	want(t, "patch to retention zero", err, store.ErrInvalid)
	_, err = s.Snapshot(ctx, "nodes")
	want(t, "snapshot of an unknown kind", err, store.ErrInvalid)
	_, err = s.Changes(ctx, "nodes", 0, 1)
	want(t, "changes of an unknown kind", err, store.ErrInvalid)
	if after := last(ctx, t, s); after != before+1 {
		t.Fatalf("one valid write moved the sequence from %d to %d", before, after)
	}
}

// mission 297: stream definitions with tenant, namespace, name and retention are stored and come back whole.
func createIsConditional(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	asked := stream(name("t1", "a", "orders"), 11)
	asked.Retention = model.Retention{MaxAgeSeconds: 60, MaxSizeBytes: 1 << 20}
	asked.Durable, asked.Region, asked.Routing = true, "eu", model.RoutingJumpHash
	made, outcome, err := s.CreateStream(ctx, asked)
	if err != nil || outcome != store.Created || made != asked {
		t.Fatalf("create: %+v, %v, %v", made, outcome, err)
	}
	before := last(ctx, t, s)
	again := asked
	again.Incarnation = 12
	found, outcome, err := s.CreateStream(ctx, again)
	if err != nil || outcome != store.Unchanged || found != asked {
		t.Fatalf("create again: %+v, %v, %v; want the first record unchanged", found, outcome, err)
	}
	again.Shards, again.Durable = 2, false
	_, _, err = s.CreateStream(ctx, again)
	want(t, "create differently", err, store.ErrExists)
	var exists *store.ExistsError
	if !errors.As(err, &exists) || !slices.Equal(exists.Differs, []string{"shards", "durable"}) {
		t.Fatalf("the error does not name what differs: %v", err)
	}
	made2, outcome, err := s.CreateCache(ctx, cache(name("t1", "a", "orders"), 13)) // a cache may share the name
	if err != nil || outcome != store.Created {
		t.Fatalf("create cache: %v, %v", outcome, err)
	}
	found2, outcome, err := s.CreateCache(ctx, cache(name("t1", "a", "orders"), 14))
	if err != nil || outcome != store.Unchanged || found2 != made2 {
		t.Fatalf("create cache again: %+v, %v, %v", found2, outcome, err)
	}
	differs := cache(name("t1", "a", "orders"), 14)
	differs.Consistency = model.ConsistencyQuorum
	_, _, err = s.CreateCache(ctx, differs)
	want(t, "create cache differently", err, store.ErrExists)
	got, err := s.Stream(ctx, asked.Key())
	if err != nil || got != asked || last(ctx, t, s) != before+1 {
		t.Fatalf("after refused creates the stream is %+v (%v) at %d", got, err, last(ctx, t, s))
	}
}

func routingRule(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	plain := mustCreateStream(ctx, t, s, name("t1", "a", "plain"), 1)
	if plain.Routing != model.RoutingModulo {
		t.Fatalf("routing of a stream that names none: %q", plain.Routing)
	}
	hashed := stream(name("t1", "a", "hashed"), 2)
	hashed.Routing = model.RoutingJumpHash
	if _, _, err := s.CreateStream(ctx, hashed); err != nil {
		t.Fatal(err)
	}
	unnamed := stream(name("t1", "a", "hashed"), 3)
	if got, outcome, err := s.CreateStream(ctx, unnamed); err != nil || outcome != store.Unchanged || got.Routing != model.RoutingJumpHash {
		t.Fatalf("create again without naming a routing: %+v, %v, %v", got, outcome, err)
	}
	unnamed.Routing = model.RoutingModulo
	_, _, err := s.CreateStream(ctx, unnamed)
	want(t, "create again naming another routing", err, store.ErrExists)
}

func patchNamed(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	n := name("t1", "a", "s")
	old := mustCreateStream(ctx, t, s, n, 5)
	quorum := model.ConsistencyQuorum
	got, err := s.PatchStream(ctx, n, model.StreamPatch{Consistency: &quorum, Retention: &model.RetentionPatch{MaxSizeBytes: model.SetBound(9)}})
	want(t, "patch", err, nil)
	old.Consistency, old.Retention.MaxSizeBytes = quorum, 9
	if got != old {
		t.Fatalf("patched to %+v, want %+v", got, old)
	}
	before := last(ctx, t, s)
	if got, err = s.PatchStream(ctx, n, model.StreamPatch{Consistency: &quorum}); err != nil || got != old {
		t.Fatalf("patch to the same: %+v, %v", got, err)
	}
	if after := last(ctx, t, s); after != before {
		t.Fatalf("a patch that changes nothing took number %d", after)
	}
	if got, err = s.PatchStream(ctx, n, model.StreamPatch{Retention: &model.RetentionPatch{MaxSizeBytes: model.ClearBound()}}); err != nil || got.Retention != (model.Retention{}) {
		t.Fatalf("clearing a bound: %+v, %v", got, err)
	}
	mustCreateCache(ctx, t, s, n, 6)
	label := "Sessions"
	c, err := s.PatchCache(ctx, n, model.CachePatch{DisplayName: &label})
	want(t, "patch cache", err, nil)
	if stored, err := s.Cache(ctx, n); err != nil || stored != c || c.DisplayName != label {
		t.Fatalf("patched cache is %+v, %v", stored, err)
	}
}

func recreate(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	n := name("t1", "a", "s")
	mustCreateStream(ctx, t, s, n, 1)
	mustCreateCache(ctx, t, s, n, 2)
	start := last(ctx, t, s)
	want(t, "delete stream", s.DeleteStream(ctx, n), nil)
	want(t, "delete cache", s.DeleteCache(ctx, n), nil)
	wider := stream(n, 3)
	wider.Shards = 4 // another configuration is no conflict once the name is free
	if got, outcome, err := s.CreateStream(ctx, wider); err != nil || outcome != store.Created || got.Incarnation != 3 {
		t.Fatalf("create again: %+v, %v, %v", got, outcome, err)
	}
	changes := history(ctx, t, s, start)
	if len(changes) != 3 || changes[0].Record.(model.Stream).Incarnation != 1 || changes[2].Record.(model.Stream).Incarnation != 3 {
		t.Fatalf("the feed does not tell the incarnations apart: %+v", changes)
	}
}

func cascadeNamespace(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	for i, n := range []string{"y", "x"} {
		mustCreateStream(ctx, t, s, name("t1", "a", n), model.Incarnation(i+1))
		mustCreateCache(ctx, t, s, name("t1", "a", n), model.Incarnation(i+1))
		mustCreateStream(ctx, t, s, name("t1", "b", n), model.Incarnation(i+1))
		mustCreateStream(ctx, t, s, name("t2", "a", n), model.Incarnation(i+1))
	}
	start := last(ctx, t, s)
	want(t, "delete namespace", s.DeleteNamespace(ctx, "t1", "a"), nil)
	checkHistory(ctx, t, s, start, "deleted stream t1/a/x", "deleted stream t1/a/y", "deleted cache t1/a/x", "deleted cache t1/a/y",
		"deleted namespace t1/a/")
	for _, other := range []model.ResourceName{name("t1", "b", "x"), name("t2", "a", "x")} {
		_, err := s.Stream(ctx, other)
		want(t, "a stream of another namespace", err, nil)
	}
	_, err := s.Stream(ctx, name("t1", "a", "x"))
	want(t, "a stream of the deleted namespace", err, store.ErrNotFound)
	want(t, "create the namespace again", s.CreateNamespace(ctx, namespace("t1", "a")), nil)
	rows, err := s.Streams(ctx, "t1", "a", "", 10)
	if err != nil || len(rows) != 0 {
		t.Fatalf("the new namespace has old streams: %v, %v", rows, err)
	}
}

func cascadeTenant(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	mustCreateStream(ctx, t, s, name("t1", "b", "s"), 1)
	mustCreateStream(ctx, t, s, name("t1", "a", "s"), 2)
	mustCreateCache(ctx, t, s, name("t1", "a", "c"), 3)
	mustCreateCache(ctx, t, s, name("t2", "a", "c"), 4)
	start := last(ctx, t, s)
	want(t, "delete tenant", s.DeleteTenant(ctx, "t1"), nil)
	checkHistory(ctx, t, s, start, "deleted stream t1/a/s", "deleted stream t1/b/s", "deleted cache t1/a/c", "deleted namespace t1/a/",
		"deleted namespace t1/b/", "deleted tenant t1//")
	_, err := s.Cache(ctx, name("t2", "a", "c"))
	want(t, "a cache of another tenant", err, nil)
	_, err = s.Namespace(ctx, "t1", "a")
	want(t, "a namespace of the deleted tenant", err, store.ErrNotFound)
}

func checkHistory(ctx context.Context, t *testing.T, s store.Store, since uint64, expected ...string) {
	t.Helper()
	var told []string
	for _, c := range history(ctx, t, s, since) {
		told = append(told, tell(c))
	}
	if !slices.Equal(told, expected) {
		t.Fatalf("the feed tells\n  %q\nwant\n  %q", told, expected)
	}
}

func endedContext(t *testing.T, s store.Store) {
	ctx := seed(t, s)
	before := last(ctx, t, s)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	want(t, "create tenant", s.CreateTenant(ended, tenant("t3")), context.Canceled)
	want(t, "create namespace", s.CreateNamespace(ended, namespace("t1", "c")), context.Canceled)
	_, _, err := s.CreateStream(ended, stream(name("t1", "a", "s"), 1))
	want(t, "create stream", err, context.Canceled)
	want(t, "delete tenant", s.DeleteTenant(ended, "t1"), context.Canceled)
	want(t, "delete namespace", s.DeleteNamespace(ended, "t1", "a"), context.Canceled)
	_, err = s.Tenant(ended, "t1")
	want(t, "read tenant", err, context.Canceled)
	_, err = s.Tenants(ended, "", 1)
	want(t, "list tenants", err, context.Canceled)
	_, err = s.Namespaces(ended, "t1", "", 1)
	want(t, "list namespaces", err, context.Canceled)
	_, err = s.Streams(ended, "t1", "a", "", 1)
	want(t, "list streams", err, context.Canceled)
	_, err = s.Snapshot(ended, model.KindTenants)
	want(t, "snapshot", err, context.Canceled)
	_, err = s.Changes(ended, model.KindTenants, 0, 1)
	want(t, "changes", err, context.Canceled)
	_, err = s.PatchStream(ended, name("t1", "a", "s"), model.StreamPatch{})
	want(t, "patch stream", err, context.Canceled)
	want(t, "delete stream", s.DeleteStream(ended, name("t1", "a", "s")), context.Canceled)
	if after := last(ctx, t, s); after != before {
		t.Fatalf("operations with an ended context took numbers up to %d", after)
	}
}
