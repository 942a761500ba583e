// Package storetest is the contract of store.Store as tests. Every implementation runs the whole suite.
package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/controlplane/model"
	"github.com/felixd/felixd/controlplane/store"
)

// Run runs the suite. Each call of fresh returns an empty store of its own that supports durable streams.
func Run(t *testing.T, fresh func() store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"TenantAndNamespaceCreationIsNeverRepeated", scopesNotRepeated},
		{"ParentsMustExist", parentsMustExist},
		{"EveryOperationOnWhatIsNotThereSaysSo", missingIsNotFound},
		{"InvalidRecordsAreRefusedAndNotNumbered", invalidRefused},
		{"CreateIsConditional", createIsConditional},
		{"CreateDefaultsRoutingAndComparesItOnlyWhenNamed", routingRule},
		{"PatchChangesOnlyWhatItNames", patchNamed},
		{"LogsAreKeptWithTheIncarnationThatTheyWereReportedFor", logsReported},
		{"LogsOfCachesAreKeptLikeThoseOfStreams", cacheLogsReported},
		{"ADeletedNameIsUsableAtOnceAsAnotherIncarnation", recreate},
		{"DeleteNamespaceTakesItsContentAlongChildrenFirst", cascadeNamespace},
		{"DeleteTenantTakesItsContentAlongChildrenFirst", cascadeTenant},
		{"PagesFollowKeysNotPositions", pages},
		{"OneSequenceNumbersEveryWriteWithoutGaps", sequence},
		{"SnapshotJoinsChanges", snapshotJoins},
		{"WatchersAgreeOnTheOrderOfConcurrentWriters", oneOrder},
		{"WaitChangesWakesOnAWriteAndEndsWithItsContext", waiting},
		{"APositionAheadOfTheStoreIsRefused", aheadRefused},
		{"OldChangesAreRefusedOnceTheyLeaveTheHistory", compaction},
		{"AnEndedContextHasNoEffect", endedContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh()) })
	}
}

// patience bounds every wait for an event that must come.
const patience = time.Minute

// want fails the test unless err matches.
func want(t *testing.T, what string, err, target error) {
	t.Helper()
	if target == nil && err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !is(err, target) {
		t.Fatalf("%s: got error %v, want one that matches %v", what, err, target)
	}
}

func tenant(id string) model.Tenant { return model.Tenant{TenantID: id, DisplayName: "Tenant " + id} }

func namespace(t, ns string) model.Namespace { return model.Namespace{TenantID: t, Namespace: ns} }

func name(t, ns, n string) model.ResourceName {
	return model.ResourceName{Tenant: t, Namespace: ns, Name: n}
}

// stream is a valid record as a request without options makes it.
func stream(n model.ResourceName, i model.Incarnation) model.Stream {
	return model.Stream{TenantID: n.Tenant, Namespace: n.Namespace, Stream: n.Name, Incarnation: i, Kind: model.StreamKindStream,
		Shards: 1, ReplicationFactor: 1, Consistency: model.ConsistencyLeader, Delivery: model.DeliveryAtLeastOnce}
}

func cache(n model.ResourceName, i model.Incarnation) model.Cache {
	return model.Cache{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Incarnation: i, Shards: 1, ReplicationFactor: 1,
		Consistency: model.ConsistencyLeader}
}

// seed creates tenant t1 with namespaces a and b, and tenant t2 with namespace a: five writes.
func seed(t *testing.T, s store.Store) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	for _, id := range []string{"t1", "t2"} {
		want(t, "create tenant", s.CreateTenant(ctx, tenant(id)), nil)
	}
	for _, n := range []model.Namespace{namespace("t1", "a"), namespace("t1", "b"), namespace("t2", "a")} {
		want(t, "create namespace", s.CreateNamespace(ctx, n), nil)
	}
	return ctx
}

func mustCreateStream(ctx context.Context, t *testing.T, s store.Store, n model.ResourceName, i model.Incarnation) model.Stream {
	t.Helper()
	r, outcome, err := s.CreateStream(ctx, stream(n, i))
	if err != nil || outcome != store.Created {
		t.Fatalf("create stream %v: %v, %v", n, outcome, err)
	}
	return r
}

func mustCreateCache(ctx context.Context, t *testing.T, s store.Store, n model.ResourceName, i model.Incarnation) model.Cache {
	t.Helper()
	r, outcome, err := s.CreateCache(ctx, cache(n, i))
	if err != nil || outcome != store.Created {
		t.Fatalf("create cache %v: %v, %v", n, outcome, err)
	}
	return r
}

// last returns the position of the store.
func last(ctx context.Context, t *testing.T, s store.Store) uint64 {
	t.Helper()
	snap, err := s.Snapshot(ctx, model.KindTenants)
	want(t, "snapshot", err, nil)
	return snap.Seq
}

// history merges the changes of all kinds after since into one list by number.
func history(ctx context.Context, t *testing.T, s store.Store, since uint64) []store.Change {
	t.Helper()
	bySeq := make(map[uint64]store.Change)
	end := since
	for _, kind := range model.Kinds() {
		for at := since; ; {
			page, err := s.Changes(ctx, kind, at, 7)
			want(t, "changes", err, nil)
			for _, c := range page.Items {
				if _, twice := bySeq[c.Seq]; twice {
					t.Fatalf("two changes have the number %d", c.Seq)
				}
				bySeq[c.Seq] = c
			}
			at, end = page.Seq, max(end, page.Seq)
			if len(page.Items) < 7 {
				break
			}
		}
	}
	var all []store.Change
	for seq := since + 1; seq <= end; seq++ {
		c, ok := bySeq[seq]
		if !ok {
			t.Fatalf("no change has the number %d, the last is %d", seq, end)
		}
		all = append(all, c)
	}
	return all
}

// tell renders a change as "op kind key" for comparison.
func tell(c store.Change) string {
	return fmt.Sprintf("%s %s %s", c.Op, c.Record.RecordKind().Singular(), c.Record.Key())
}
