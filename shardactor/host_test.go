package shardactor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// world is a Host with everything around it.
type world struct {
	t       testing.TB
	clock   *actors.ManualClock
	sys     *actors.System
	table   *Table
	host    actors.Ref[HostMessage]
	metrics *Metrics
	tails   *storage.Budget
	readers *storage.Readers
	applied chan uint64
	version uint64
	events  *eventLog
}

func newWorld(t *testing.T, wrap func(route.Name, uint32, actors.Actor) actors.Actor) *world {
	return newWorldWith(t, func(_ *world, o *HostOptions) { o.Wrap = wrap })
}

// newWorldWith is a world whose host has other options.
func newWorldWith(t testing.TB, change func(*world, *HostOptions)) *world {
	clock := actors.NewManualClock(time.UnixMilli(1_700_000_000_000))
	return newWorldOn(t, clock, clock, change)
}

// newWorldOn is a world whose timers go by clock, and whose actors are told the time by seen.
func newWorldOn(t testing.TB, clock *actors.ManualClock, seen actors.Clock, change func(*world, *HostOptions)) *world {
	w := &world{
		t: t, clock: clock, table: route.NewTable[*Handle](),
		tails: storage.NewBudget(64 << 20), applied: make(chan uint64, 16), events: &eventLog{},
	}
	w.sys = actors.NewSystem(actors.Options{Name: "test", Clock: seen})
	caches := reading.NewCachePool(64 << 20)
	w.readers = storage.NewReaders(storage.ReaderOptions{WindowBytes: 8 << 20, Budget: storage.NewBudget(64 << 20)})
	w.metrics = NewMetrics(prometheus.NewRegistry(), w.tails, caches, w.readers)
	o := HostOptions{
		Table: w.table, Tails: w.tails, Caches: caches, Readers: w.readers, RingBatches: 1024, RingBytes: 8 << 20, Events: w.events,
		Metrics: w.metrics, Rand: func() uint64 { return 1 }, Applied: func(v uint64) { w.applied <- v },
	}
	change(w, &o)
	var err error
	if w.host, err = SpawnHost(w.sys, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.sys.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

func stream(name string, incarnation id.Incarnation, shards uint32) route.Assignment {
	return route.Assignment{Name: route.Name{Kind: route.Stream, Tenant: "t1", Namespace: "default", Name: name}, Incarnation: incarnation, Generation: 1, Shards: shards}
}

func cache(name string) route.Assignment {
	return route.Assignment{Name: route.Name{Kind: route.Cache, Tenant: "t1", Namespace: "default", Name: name}, Incarnation: 1, Generation: 1, Shards: 1}
}

// desire tells the host what to host and waits until the table says so.
func (w *world) desire(want ...route.Assignment) {
	w.t.Helper()
	w.version++
	w.host.Signal(actors.Cell{Kind: DesiredCell, Value: route.Desired{Version: w.version, Assignments: want}})
	for {
		select {
		case v := <-w.applied:
			if v == w.version {
				return
			}
		case <-time.After(patience):
			w.t.Fatal("the host did not apply what is desired")
		}
	}
}

// shard waits until a shard of the resource is there and returns it.
func (w *world) shard(n route.Name, index uint32, not *Handle) *Handle {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		if e := w.table.Get(n); e != nil {
			if target, ok := e.Shard(index); ok && target.State == route.Local && target.Shard != not {
				return target.Shard
			}
		}
		select {
		case <-deadline:
			w.t.Fatalf("no shard %d of %s", index, n)
		default:
			yield()
		}
	}
}

// replies counts answers, each token by itself.
type replies struct {
	mu  sync.Mutex
	got map[shardcore.Token][]Answer
	ch  chan shardcore.Token
}

func newReplies() *replies {
	return &replies{got: map[shardcore.Token][]Answer{}, ch: make(chan shardcore.Token, 1<<16)}
}

func (r *replies) Answer(t shardcore.Token, a Answer) {
	r.mu.Lock()
	r.got[t] = append(r.got[t], a)
	r.mu.Unlock()
	r.ch <- t
}

func (r *replies) Flush() {}

func (r *replies) wait(t testing.TB, token shardcore.Token) Answer {
	t.Helper()
	for {
		r.mu.Lock()
		a := r.got[token]
		r.mu.Unlock()
		if len(a) > 1 {
			t.Fatalf("request %d was answered %d times", token, len(a))
		}
		if len(a) == 1 {
			return a[0]
		}
		select {
		case <-r.ch:
		case <-time.After(patience):
			t.Fatalf("request %d was not answered", token)
		}
	}
}

func publish(h *Handle, r Reply, token shardcore.Token, records uint32) error {
	m := &Publish{Batch: batch.Batch{Count: records, Kind: batch.Records, Body: make([]byte, 8)}}
	m.To(r, token)
	return h.Ref.TrySend(m, m.Batch.Size())
}

func TestPublishesGetConsecutiveOffsetsAndAreReadable(t *testing.T) { // mission 207, 222
	w := newWorld(t, nil)
	a := stream("orders", 1, 2)
	w.desire(a)
	h, r := w.shard(a.Name, 1, nil), newReplies()
	for i := range shardcore.Token(100) {
		if err := publish(h, r, i, 3); err != nil {
			t.Fatal(err)
		}
	}
	for i := range shardcore.Token(100) {
		if a := r.wait(t, i); a.Refusal != nil || a.Offset != id.Offset(3*i) {
			t.Fatalf("publish %d: %+v", i, a)
		}
	}
	if oldest, end := h.Log.Bounds(); oldest != 0 || end != 300 {
		t.Fatalf("log holds [%d, %d)", oldest, end)
	}
}

func TestAPutIsVisibleBeforeItsAnswer(t *testing.T) { // decision 35
	w := newWorld(t, nil)
	a := cache("users")
	w.desire(a)
	h, r := w.shard(a.Name, 0, nil), newReplies()
	m := &CachePut{Key: "k", Value: []byte("v"), TTLMillis: 1000, HasTTL: true}
	m.To(r, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	r.wait(t, 1)
	now := uint64(w.clock.Now().UnixMilli())
	if v, ok := h.Cache.Get("k", now); !ok || string(v.Value) != "v" || v.Version < id.Offset(1_700_000_000_000_000) {
		t.Fatalf("get: %+v, %v; a version begins at the clock in microseconds", v, ok)
	}
	if _, ok := h.Cache.Get("k", now+1001); ok {
		t.Fatal("alive at its end")
	}
	w.clock.Advance(1100 * time.Millisecond)
	for h.Cache.(*reading.MemoryCache).Len() != 0 { // the shard's own sweep, once it has armed its timer
		w.clock.Advance(time.Millisecond)
		yield()
	}
	d := &CacheDelete{Key: "k"}
	d.To(r, 2)
	if err := h.Ref.TrySend(d, Size(d)); err != nil {
		t.Fatal(err)
	}
	if a := r.wait(t, 2); a.Found {
		t.Fatalf("deleted %q, which had expired", a.Value)
	}
}

func TestADeletedStreamEndsItsReadersAndItsNameWorksAgainAtOnce(t *testing.T) { // decision 13
	w := newWorld(t, nil)
	a, other := stream("orders", 1, 1), stream("ticks", 1, 1)
	w.desire(a, other)
	h, keep := w.shard(a.Name, 0, nil), w.shard(other.Name, 0, nil)
	r := newReplies()
	if err := publish(h, r, 1, 1); err != nil {
		t.Fatal(err)
	}
	r.wait(t, 1)
	again := a
	again.Incarnation = 2
	w.desire(again, other)
	fresh := w.shard(a.Name, 0, h)
	if _, end := fresh.Log.Bounds(); end != 0 {
		t.Fatalf("the new stream shows %d old records", end)
	}
	rang := make(chan struct{}, 1)
	old, err := h.Log.Register(storage.CursorOptions{Capacity: 1, Ring: func() { rang <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	if old.Arm(1, 1) { // the shard has not stopped yet
		select {
		case <-rang:
		case <-time.After(patience):
			t.Fatal("old readers wait for ever")
		}
	}
	var closed *storage.ClosedError
	if _, err := old.Take(context.Background(), 1, 1, nil); !errors.As(err, &closed) || closed.Reason != storage.ClosedDeleted {
		t.Fatalf("old readers get %v", err)
	}
	if w.shard(other.Name, 0, nil) != keep {
		t.Fatal("another stream was touched")
	}
	w.desire(other)
	if w.table.Get(a.Name) != nil {
		t.Fatal("the deleted stream is still routed to")
	}
}

// faulty is a shard that panics when told to.
type faulty struct {
	actors.Actor
	when  actors.Lifecycle
	armed *atomic.Bool
}

type panicNow struct{}

func (*panicNow) shardMessage() {}

func (f *faulty) Receive(t *actors.Turn) {
	if t.Lifecycle() != actors.None {
		if f.armed.Load() && t.Lifecycle() == f.when && f.armed.CompareAndSwap(true, false) {
			panic("injected into " + t.Lifecycle().String())
		}
		f.Actor.Receive(t)
		return
	}
	for _, m := range t.Messages() {
		if _, ok := m.(*panicNow); ok {
			panic("injected into a turn")
		}
	}
	f.Actor.Receive(t)
}

// Panics at each lifecycle message: Terminated once (the host brings exactly one shard up again), the name free again, and
// every accepted request answered once.
func TestPanicsAtAnyLifecycleLoseNoAnswer(t *testing.T) {
	rounds := effort.Size("actor_panic_rounds")
	if testing.Short() {
		rounds /= 10
	}
	for _, when := range []actors.Lifecycle{actors.Started, actors.None, actors.Stopping, actors.Stopped} {
		t.Run(when.String(), func(t *testing.T) {
			var armed atomic.Bool
			w := newWorld(t, func(_ route.Name, _ uint32, a actors.Actor) actors.Actor {
				return &faulty{Actor: a, when: when, armed: &armed}
			})
			a := stream("orders", 1, 1)
			w.desire(a)
			h, r := w.shard(a.Name, 0, nil), newReplies()
			token := shardcore.Token(0)
			send := func(n int) {
				for range n {
					if publish(h, r, token, 1) == nil {
						token++
					}
				}
			}
			// serving returns the shard that came up after old and answers a publish; one that dies over it is passed over.
			serving := func(old *Handle) *Handle {
				for {
					next := w.shard(a.Name, 0, old)
					if publish(next, r, token, 1) != nil {
						yield()
						continue
					}
					token++
					if r.wait(t, token-1).Refusal == nil {
						return next
					}
				}
			}
			for range rounds {
				send(3)
				switch when {
				case actors.None:
					_ = h.Ref.TrySend(&panicNow{}, 1)
				case actors.Started: // the next incarnation fails while it starts, and the one after it lives
					armed.Store(true)
					_ = h.Ref.TrySend(&panicNow{}, 1)
				default:
					armed.Store(true)
					a.Incarnation++ // the shard is stopped in good order, and fails at it
				}
				send(3)
				if when == actors.Stopping || when == actors.Stopped {
					w.desire(a)
				}
				h = serving(h)
				w.clock.Advance(time.Minute) // never three failures in one minute
			}
			for i := range token {
				r.wait(t, i)
			}
			send(1)
			if a := r.wait(t, token-1); a.Refusal != nil {
				t.Fatalf("the last shard does not serve: %v", a.Refusal)
			}
			if live := w.table.Get(a.Name).Shards(); len(live) != 1 {
				t.Fatalf("%d shards", len(live))
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			for i, a := range r.got {
				if len(a) != 1 {
					t.Fatalf("request %d was answered %d times", i, len(a))
				}
			}
		})
	}
}

func TestThreeFailuresInAMinuteQuarantineAShardAndItComesBack(t *testing.T) {
	w := newWorld(t, func(_ route.Name, _ uint32, a actors.Actor) actors.Actor {
		return &faulty{Actor: a, armed: new(atomic.Bool)}
	})
	a := stream("orders", 1, 2)
	w.desire(a)
	h, healthy := w.shard(a.Name, 0, nil), w.shard(a.Name, 1, nil)
	for i := range 3 {
		if err := h.Ref.TrySend(&panicNow{}, 1); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			h = w.shard(a.Name, 0, h)
		}
	}
	for testutil.ToFloat64(w.metrics.Quarantined) != 1 {
		yield()
	}
	target, _ := w.table.Get(a.Name).Shard(0)
	for ; target.State == route.Local; target, _ = w.table.Get(a.Name).Shard(0) { // the table is told at the end of that turn
		yield()
	}
	if target.State != route.Refused || target.Reason != wire.ReasonNotReady {
		t.Fatalf("a quarantined shard resolves to %+v", target)
	}
	if w.shard(a.Name, 1, nil) != healthy {
		t.Fatal("the other shard was touched")
	}
	back := h
	for back == nil || back == h {
		w.clock.Advance(time.Second) // the host may not have armed its timer yet
		yield()
		target, _ = w.table.Get(a.Name).Shard(0)
		back = target.Shard
	}
	r := newReplies()
	if err := publish(back, r, 1, 1); err != nil {
		t.Fatal(err)
	}
	if a := r.wait(t, 1); a.Refusal != nil {
		t.Fatal(a.Refusal)
	}
	for testutil.ToFloat64(w.metrics.Quarantined) != 0 {
		yield()
	}
}

func TestDrainFinishesEveryShardAndThenSaysSo(t *testing.T) {
	w := newWorld(t, nil)
	a, c := stream("orders", 1, 8), cache("users")
	w.desire(c, a)
	r := newReplies()
	for i := range uint32(8) {
		if err := publish(w.shard(a.Name, i, nil), r, shardcore.Token(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	if err := w.host.TrySend(&DrainAll{Done: func() { close(done) }}, 0); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("not drained")
	}
	for i := range shardcore.Token(8) {
		r.wait(t, i)
	}
	if w.tails.Used() != 0 {
		t.Fatalf("%d bytes of records are still booked", w.tails.Used())
	}
	second := make(chan struct{})
	if err := w.host.TrySend(&DrainAll{Done: func() { close(second) }}, 0); err != nil {
		t.Fatal(err)
	}
	select {
	case <-second:
	case <-time.After(patience):
		t.Fatal("a second drain is not answered")
	}
}

func TestARequestAnsweredTwiceIsABrokenInvariant(t *testing.T) {
	m := &Publish{}
	m.To(newReplies(), 1)
	m.settle(Answer{})
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	m.settle(Answer{})
}

func TestSizesCountWhatAMessageKeepsAlive(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want int
	}{
		{&Publish{Batch: batch.Batch{Body: make([]byte, 1000)}}, 1000 + batch.Overhead},
		{&CachePut{Key: "key", Value: make([]byte, 100)}, reading.RecordSize(reading.OpPut, 3, 100) + batch.Overhead},
		{&CacheDelete{Key: "key"}, reading.RecordSize(reading.OpDelete, 3, 0) + batch.Overhead},
	} {
		if got := Size(c.m); got != c.want {
			t.Errorf("%T: %d, want %d", c.m, got, c.want)
		}
	}
}
