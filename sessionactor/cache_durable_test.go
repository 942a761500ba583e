package sessionactor

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/wire"
)

// From the client's bytes to the disk and back, over a restart: values, versions, conditions and counters.
//
// matrix G1, H6
func TestACacheOnDiskOutlivesTheBroker(t *testing.T) {
	d := newSiteDisk()
	for life := range 2 {
		x := d.caching(t, setting{})
		l := dial(t, x.connect(), today())
		answered := func(m wire.Message, want string) {
			t.Helper()
			if f := l.ask(m); string(f.payload) != want {
				t.Errorf("life %d: %s was answered %s, want %s", life, m.MessageType(), f.payload, want)
			}
		}
		if life == 0 {
			l.put("users", "k", "v")
			l.put("users", "gone", "x")
			answered(deleteFrom("users", "gone"), `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"users","key":"gone","value":"eA==","request_id":1}`)
			answered(addTo("users", "n", 5), `{"type":"counter_value","value":5,"request_id":1}`)
			answered(addTo("users", "n", -5), `{"type":"counter_value","value":0,"request_id":1}`)
			answered(addTo("users", "k", 7), `{"type":"counter_value","value":7,"request_id":1}`)
		}
		answered(getFrom("users", "k"), `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"users","key":"k","value":"dg==","request_id":1,"version":0}`)
		answered(getFrom("users", "gone"), `{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"users","key":"gone","value":null,"request_id":1}`)
		answered(&wire.CounterGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "n", RequestID: 2}, `{"type":"counter_value","value":0,"request_id":2}`)
		answered(&wire.CounterGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", RequestID: 2}, `{"type":"counter_value","value":7,"request_id":2}`)
		answered(&wire.CounterGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "never", RequestID: 2}, `{"type":"counter_value","request_id":2}`)
		x.close()
	}
}

// field case CAC-07: never answered and then absent at once, in either kind of cache.
func TestATimeToLiveOfZeroIsRefused(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	l := dial(t, x.connect(), today())
	for _, name := range []string{"users", "temp"} {
		for _, m := range []wire.Message{
			&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: name, Key: "k", Value: []byte("v"), TTLMillis: wire.Some(uint64(0)), RequestID: wire.Some(uint64(1))},
			&wire.CachePutIf{TenantID: tenant, Namespace: namespace, Cache: name, Key: "k", Value: []byte("v"), TTLMillis: wire.Some(uint64(0)), RequestID: 1},
		} {
			if f := refused(t, l.ask(m)); f.Code != wire.CodeInvalidRequest || !strings.Contains(f.Message, "ttl_ms") {
				t.Errorf("%T to %s: %+v", m, name, f)
			}
		}
	}
}

func TestAConditionThatDoesNotHoldIsAnAnswerWithTheVersionThatIsThere(t *testing.T) {
	for _, name := range []string{"users", "temp"} {
		x := newSiteDisk().caching(t, setting{})
		l := dial(t, x.connect(), today())
		putIf := func(value string, version wire.Opt[uint64]) *wire.CacheConditionResult {
			t.Helper()
			f := l.ask(&wire.CachePutIf{TenantID: tenant, Namespace: namespace, Cache: name, Key: "k", Value: []byte(value), Condition: wire.CacheCondition{Version: version}, RequestID: 3})
			m, ok := f.message.(*wire.CacheConditionResult)
			if !ok || m.RequestID != 3 {
				t.Fatalf("answered %s", f.payload)
			}
			return m
		}
		deleteIf := func(version uint64) *wire.CacheConditionResult {
			t.Helper()
			m, ok := l.ask(&wire.CacheDeleteIf{TenantID: tenant, Namespace: namespace, Cache: name, Key: "k", Version: version, RequestID: 4}).message.(*wire.CacheConditionResult)
			if !ok || m.RequestID != 4 {
				t.Fatal("no result")
			}
			return m
		}
		first := putIf("a", wire.Opt[uint64]{})
		if !first.Applied || !first.Version.Set {
			t.Fatalf("%s: the first is %+v", name, first)
		}
		if again := putIf("b", wire.Opt[uint64]{}); again.Applied || again.Version != first.Version {
			t.Errorf("%s: put of what is there: %+v", name, again)
		}
		second := putIf("c", first.Version)
		if !second.Applied || second.Version.V <= first.Version.V {
			t.Errorf("%s: put of the version: %+v after %+v", name, second, first)
		}
		if m, ok := l.ask(getFrom(name, "k")).message.(*wire.CacheValue); !ok || string(m.Value.V) != "c" || m.Version != second.Version {
			t.Errorf("%s: get: %+v", name, m)
		}
		if r := deleteIf(first.Version.V); r.Applied || r.Version != second.Version {
			t.Errorf("%s: delete of an old version: %+v", name, r)
		}
		if r := deleteIf(second.Version.V); !r.Applied || r.Version.Set {
			t.Errorf("%s: delete of the version: %+v", name, r)
		}
		if r := deleteIf(second.Version.V); r.Applied || r.Version.Set {
			t.Errorf("%s: delete of nothing: %+v", name, r)
		}
		x.close()
	}
}

// matrix G20
func TestOfManyWhoPutWhatIsAbsentOneDoes(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	results := make(chan *wire.CacheConditionResult, 16)
	var all sync.WaitGroup
	for i := range 16 {
		l := dial(t, c, today())
		all.Go(func() {
			m, _ := l.ask(&wire.CachePutIf{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: fmt.Append(nil, i), RequestID: 1}).message.(*wire.CacheConditionResult)
			results <- m
		})
	}
	all.Wait()
	applied, version := 0, wire.Opt[uint64]{}
	for range 16 {
		m := <-results
		if m == nil || !m.Version.Set || version.Set && m.Version != version {
			t.Fatalf("a result %+v beside version %+v", m, version)
		}
		if version = m.Version; m.Applied {
			applied++
		}
	}
	if applied != 1 {
		t.Errorf("%d were applied", applied)
	}
}

// Who did not offer conditional writes is not shown versions: it might not know the member.
func TestOnlyWhoAskedForVersionsIsShownThem(t *testing.T) {
	plain := today()
	plain.ClientFeatures.V &^= wire.FeatureCacheConditional
	x := newSiteDisk().caching(t, setting{})
	for _, name := range []string{"users", "temp"} {
		c := x.connect()
		dial(t, c, today()).put(name, "k", "v")
		for auth, shown := range map[*wire.Auth]bool{today(): true, plain: false} {
			m, ok := dial(t, c, auth).ask(getFrom(name, "k")).message.(*wire.CacheValue)
			if !ok || string(m.Value.V) != "v" || m.Version.Set != shown {
				t.Errorf("%s: %+v, want a version: %t", name, m, shown)
			}
		}
	}
}

// Values that memory does not hold come from the log, in the order of the requests, and while compactions move them about.
func TestLongValuesAreReadFromTheLogWhateverCompactionDoes(t *testing.T) {
	d := newSiteDisk()
	d.inline = 8
	x := d.caching(t, setting{})
	c := x.connect()
	writer, reader := dial(t, c, today()), dial(t, c, today())
	text := func(i int) string { return strings.Repeat(fmt.Sprintf("%04d", i), 50) }
	for i := range 30 {
		writer.put("users", fmt.Sprint("cold-", i), text(i))
	}
	writer.put("users", "warm", "w")
	filler := strings.Repeat("f", 60<<10)
	log := x.cacheShard(t, "users", 0).Log
	compacted := func() bool { oldest, _ := log.Bounds(); return oldest > 40 }
	for deadline := time.Now().Add(patience); !compacted() && time.Now().Before(deadline); {
		writer.send(putTo("users", "filler", filler))
		for i := range 30 {
			reader.send(getFrom("users", fmt.Sprint("cold-", i)))
		}
		reader.send(getFrom("users", "warm"))
		for i := range 30 {
			m, ok := reader.next().message.(*wire.CacheValue)
			if !ok || string(m.Value.V) != text(i) || m.Version != wire.Some(uint64(i)) {
				t.Fatalf("cold-%d is %+v", i, m)
			}
		}
		if m, ok := reader.next().message.(*wire.CacheValue); !ok || string(m.Value.V) != "w" {
			t.Fatalf("warm is %+v", m)
		}
		writer.next()
	}
	if !compacted() {
		t.Error("nothing was ever compacted")
	}
	if f := reader.ask(deleteFrom("users", "cold-3")); !strings.Contains(string(f.payload), `"key":"cold-3","value":"`) {
		t.Errorf("a delete of a value that is not in memory was answered %.200s", f.payload)
	}
}

// A write to a log that does not answer in time is answered as unknown, as a publish is.
func TestACacheWriteWithoutOutcomeIsAnsweredAsUnknownInTime(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x := newSiteDisk().caching(t, setting{clock: clock})
	for _, m := range []wire.Message{
		putTo("users", "k", "v"), deleteFrom("users", "k"), addTo("users", "k", 1),
		&wire.CachePutIf{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", RequestID: 1},
		&wire.CacheDeleteIf{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", RequestID: 1},
	} {
		l := dial(t, x.connect(), today())
		before := x.metric("felix_cache_requests_total")
		entered := x.sabotage.hold("users/0")
		l.send(m)
		want(t, entered, "the shard stands still")
		x.counts("felix_cache_requests_total", before+1) // and its answer has a deadline
		clock.Advance(x.opts.AckWait)
		if r := refused(t, l.next()); r.Code != wire.CodeUnacknowledged || r.Retry != wire.RetryOutcomeUnknown {
			t.Errorf("%s was answered %+v", m.MessageType(), r)
		}
		x.sabotage.release()
		x.balanced()
	}
}

func TestCountersOfACacheInMemoryAreRefusedByName(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	l := dial(t, x.connect(), today())
	for _, m := range []wire.Message{addTo("temp", "n", 1), &wire.CounterGet{TenantID: tenant, Namespace: namespace, Cache: "temp", Key: "n", RequestID: 1}} {
		if r := refused(t, l.ask(m)); r.Code != wire.CodeInvalidRequest || r.Reason != "in_memory" {
			t.Errorf("%s was answered %+v", m.MessageType(), r)
		}
	}
	if r := refused(t, l.ask(addTo("none", "n", 1))); r.Code != wire.CodeNotFound {
		t.Errorf("answered %+v", r)
	}
	l.ask(addTo("users", "n", 1<<62))
	if r := refused(t, l.ask(addTo("users", "n", 1<<62))); r.Code != wire.CodeInvalidRequest {
		t.Errorf("an add that does not fit was answered %+v", r)
	}
	if f := l.ask(addTo("users", "n", -1)); string(f.payload) != fmt.Sprintf(`{"type":"counter_value","value":%d,"request_id":1}`, int64(1<<62-1)) {
		t.Errorf("then: %s", f.payload)
	}
}

// A cache on disk serves nothing while its shard is not there, and says so.
func TestACacheThatIsBeingReplacedRefusesToBeRepeated(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	l := dial(t, x.connect(), today())
	l.put("users", "k", "v")
	x.sabotage.panicNext("users/0")
	l.ask(putTo("users", "k", "lost"))
	eventually(t, "the value is there again", func() bool {
		f := l.ask(getFrom("users", "k"))
		if m, ok := f.message.(*wire.CacheValue); ok {
			return string(m.Value.V) == "v" && m.Version == wire.Some(uint64(0))
		}
		if r := refused(t, f); r.Code != wire.CodeShardUnavailable {
			t.Errorf("answered %+v", r)
		}
		return false
	})
}
