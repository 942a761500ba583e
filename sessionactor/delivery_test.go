package sessionactor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// countingRuntime counts the rings of the gates that are made while it counts: those of subscriptions, when no lane is opened.
type countingRuntime struct {
	Runtime
	counts *atomic.Bool
	rings  *atomic.Int64
}

func newCountingRuntime() countingRuntime {
	return countingRuntime{Goroutines(), &atomic.Bool{}, &atomic.Int64{}}
}

type countingGate struct {
	Gate
	rings *atomic.Int64
}

func (r countingRuntime) NewGate() Gate {
	if !r.counts.Load() {
		return r.Runtime.NewGate()
	}
	return countingGate{r.Runtime.NewGate(), r.rings}
}

func (g countingGate) Ring() {
	g.rings.Add(1)
	g.Gate.Ring()
}

// messages is how many messages actors other than shards were given. Cells are no messages.
func (x *site) messages() (n float64) {
	for _, f := range must(x.registry.Gather())(x.t) {
		if f.GetName() != "felixd_actor_messages_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if !slices.ContainsFunc(m.GetLabel(), func(l *labelPair) bool { return l.GetValue() == "shard" || l.GetValue() == "cell" }) {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// One commit costs each subscription that waits one wake, and no actor a message.
func TestACommitIsOneWakeForEachWaitingReaderAndNoMessage(t *testing.T) {
	runtime := newCountingRuntime()
	x := open(t, setting{change: func(o *Options) { o.Runtime = runtime }})
	c := x.connect()
	l := dial(t, c, today())
	runtime.counts.Store(true)
	const readers, commits = 20, 30
	var subs []subscription
	for range readers {
		subs = append(subs, l.subscribe(c, subscribeTo("orders", wire.StartLatest)))
	}
	runtime.counts.Store(false)
	waiting := func() bool {
		states := x.log().Cursors(0, readers)
		return len(states) == readers && !slices.ContainsFunc(states, func(s storage.CursorState) bool { return !s.Waiting })
	}
	eventually(t, "all wait", waiting)
	const setUp = 1 + readers // a connection for the listener, subscribes for the session; they are counted when their turn has ended
	eventually(t, "all is set up", func() bool { return x.messages() == setUp })
	rings := runtime.rings.Load()
	for n := range commits {
		l.publish("orders", "a", "b")
		for _, s := range subs {
			s.events(2)
		}
		eventually(t, "all wait again", waiting)
		if got := runtime.rings.Load() - rings; got != int64((n+1)*readers) {
			t.Fatalf("%d rings after %d commits to %d readers", got, n+1, readers)
		}
	}
	if got := x.messages() - setUp; got != 0 {
		t.Errorf("%v messages beside those to the shard", got)
	}
}

// log is that of the stream orders.
func (x *site) log() storage.Reader {
	return x.opts.Table.Get(stream("orders", 1).Name).Shards()[0].Shard.Log
}

// loop is one delivery over a log and a clock that the test moves, without a session around it.
type loop struct {
	t     *testing.T
	clock *actors.ManualClock
	log   *storage.MemLog
	d     *delivery
	wrote chan int // events of one write
	gate  *testGate
	over  chan error
}

// testGate tells when its pump waits.
type testGate struct {
	Gate
	waits chan struct{}
}

func (g *testGate) Wait(until ...context.Context) bool {
	select {
	case g.waits <- struct{}{}:
	case <-until[0].Done():
	}
	return g.Gate.Wait(until...)
}

// writes is a stream that tells how many event frames each write joins.
type writes struct {
	SendStream
	wrote chan int
}

func (w writes) Write(p []byte) (int, error) {
	n := 0
	for rest := p; len(rest) > 0; n++ {
		h, err := wire.ParseHeader(rest, wire.MaxPayload)
		if err != nil {
			return 0, err
		}
		rest = rest[wire.HeaderSize+int(h.Length):]
	}
	w.wrote <- n
	return len(p), nil
}

func newLoop(t *testing.T, delay time.Duration) *loop {
	x := &loop{t: t, clock: actors.NewManualClock(time.Unix(1_700_000_000, 0)), wrote: make(chan int), over: make(chan error, 1)}
	readers := storage.NewReaders(storage.ReaderOptions{WindowBytes: 1 << 30, Budget: storage.NewBudget(1 << 30)})
	x.log = storage.NewMemLog(0, storage.MemLogOptions{MaxBatches: 1000, MaxBytes: 1 << 30, Readers: readers})
	x.gate = &testGate{Goroutines().NewGate(), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	o := &Options{Clock: x.clock, Delivery: DefaultDelivery(), Metrics: NewMetrics(newRegistry())}
	o.Delivery.MaxDelay = delay
	half := newHalf(t.Context(), actors.RealClock(), 1<<20)
	x.d = newFeed(o, ctx, 1, writes{half, x.wrote}, requested(512, false, wire.Grant{Flags: wire.FlagEventBatchShared}))
	x.d.gate = x.gate
	x.d.cursor, _ = x.log.Register(storage.CursorOptions{Capacity: 512, Ring: x.gate.Ring}) // the latest is never refused
	go func() { x.over <- x.d.deliver(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := want(t, x.over, "the end of the loop"); err == nil && ctx.Err() == nil {
			t.Error("the loop ended by itself")
		}
	})
	return x
}

// waits lets the loop wait once: afterwards it does until something rings it.
func (x *loop) waits() {
	x.t.Helper()
	want(x.t, x.gate.waits, "the loop waits")
}

func (x *loop) publish(n int) {
	var list []*batch.Batch
	for range n {
		b := &batch.Batch{Base: x.log.Tail().Add(uint64(len(list))), Count: 1, Kind: batch.Records}
		x.d.session.opts.Delivery.frame(b, append(make([]byte, wire.SharedEventHeaderSize), wire.AppendPayload(nil, []byte("event"))...))
		list = append(list, b)
	}
	x.log.Append(list)
	x.log.SetReadable(x.log.Tail())
}

func (x *loop) wants(events, timers int) {
	x.t.Helper()
	if n := x.clock.Pending(); n != timers {
		x.t.Errorf("%d timers are armed, want %d", n, timers)
	}
	if n := want(x.t, x.wrote, "a write"); n != events {
		x.t.Errorf("a write of %d events, want %d", n, events)
	}
}

// mission 224, mission 227: a trickle arms no timer, however long the delay is; each event leaves by itself, at once.
func TestALoneEventLeavesAtOnceAndArmsNoTimer(t *testing.T) {
	x := newLoop(t, 10*time.Millisecond)
	for range 5 {
		x.waits()
		x.publish(1)
		x.wants(1, 0)
	}
	x.waits()
}

// mission 227, STR-10: in a burst the events behind a write that found more than one wait for others, once, and no longer than the delay
// from the first of them.
func TestInABurstEventsWaitForOthersNoLongerThanTheDelayFromTheFirst(t *testing.T) {
	const delay = 250 * time.Microsecond
	x := newLoop(t, delay)
	x.waits()
	x.publish(3)
	x.wants(3, 0) // nothing was known of a burst when they came
	for range 3 {
		x.waits()
		x.publish(1)
		x.waits() // for others
		x.clock.Advance(delay / 2)
		x.publish(1) // does not move the deadline
		x.clock.Advance(delay/2 - 1)
		if n := x.clock.Pending(); n != 1 {
			t.Fatalf("%d timers just before the deadline", n)
		}
		x.clock.Advance(1)
		x.wants(2, 0)
	}
	x.waits()
	x.publish(1)
	x.waits()
	x.clock.Advance(delay)
	x.wants(1, 0) // nobody came: the burst is over
	x.waits()
	x.publish(1)
	x.wants(1, 0)
	x.waits()
}

// STR-10: what comes after a pause is alone, however busy it was before.
func TestALoneEventAfterAPauseDoesNotWaitForABurstThatIsOver(t *testing.T) {
	const delay = 250 * time.Microsecond
	x := newLoop(t, delay)
	x.waits()
	x.publish(3)
	x.wants(3, 0)
	x.waits()
	x.clock.Advance(delay + 1)
	x.publish(1)
	x.wants(1, 0)
	x.waits()
}

// What fills a write leaves before the deadline, and the timer with it.
func TestEnoughEventsForAWriteDoNotWaitForTheDeadline(t *testing.T) {
	x := newLoop(t, time.Hour)
	x.waits()
	x.publish(2)
	x.wants(2, 0)
	x.waits()
	x.publish(1)
	x.waits()
	x.publish(wire.EventBatchMaxEvents - 1)
	if n := want(t, x.wrote, "a write"); n != wire.EventBatchMaxEvents {
		t.Errorf("a write of %d events", n)
	}
	x.waits()
	if n := x.clock.Pending(); n != 0 {
		t.Errorf("%d timers are left", n)
	}
}

func TestADelayOfZeroArmsNoTimerInABurstEither(t *testing.T) {
	x := newLoop(t, 0)
	for range 3 {
		x.waits()
		x.publish(5)
		x.wants(5, 0)
	}
	x.waits()
}

// mission 225, mission 226: the settings of the frames hold for readers of every form.
func TestFramesAreAsSmallAsTheSettingsSay(t *testing.T) {
	x := open(t, setting{change: func(o *Options) { o.Delivery.MaxEvents, o.Delivery.MaxBytes = 3, 100 }})
	l := dial(t, x.connect(), today())
	for name, auth := range map[string]*wire.Auth{"shared": today(), "legacy": flags(wire.FlagEventBatch), "json": nothing()} {
		c := x.connect()
		s := dial(t, c, auth).subscribe(c, subscribeTo("orders", wire.StartLatest))
		l.publish("orders", "1", "2", "3", "4", "5", "6", "7")
		if _, frames, _ := s.events(7); !slices.Equal(frames, []int{3, 3, 1}) {
			t.Errorf("%s: frames of %v events", name, frames)
		}
		l.publish("orders", strings.Repeat("x", 60), strings.Repeat("y", 60), strings.Repeat("z", 200))
		if _, frames, _ := s.events(3); !slices.Equal(frames, []int{1, 1, 1}) {
			t.Errorf("%s: frames of %v events", name, frames)
		}
	}
}

// mission 192, mission 217: a reader that stands still costs the others nothing, whatever it has lost.
func TestAReaderThatStandsStillBesideTwentyCostsThemNoRecord(t *testing.T) {
	x := open(t, setting{ringBatches: 8, ringBytes: 1 << 20, windowBytes: 64 << 10})
	x.stalled(asking("orders", wire.StartLatest, 4))
	c := x.connect()
	l := dial(t, c, today())
	var readers []subscription
	for range 20 {
		readers = append(readers, dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartLatest)))
	}
	// A hundred at a time: what a window holds, so that a reader which the machine lets wait loses nothing for that.
	const batches, stretch = 300, 100
	for from := 0; from < batches; from += stretch {
		for _, r := range numbered(from, stretch) {
			l.publish("orders", r)
		}
		var all sync.WaitGroup
		for _, s := range readers {
			all.Go(func() {
				got, _, _ := s.events(stretch)
				for i, e := range got {
					if !strings.HasPrefix(e, fmt.Sprintf("%06d", from+i)) {
						t.Errorf("%.6q where %d was due", e, from+i)
						return
					}
				}
			})
		}
		all.Wait()
	}
	if n := x.metric("felix_subscribe_dropped_total"); n != batches-4 {
		t.Errorf("%v records were lost, want those that the one could not hold", n)
	}
}

// STR-09: whatever a subscription had is given back, however it ended.
func TestNothingOfASubscriptionIsLeftBehind(t *testing.T) {
	x := open(t, setting{ringBatches: 2, ringBytes: 1 << 20})
	publisher := dial(t, x.connect(), today())
	for round := range 40 {
		c := x.connect(func(c *memConn) { c.window = 128 })
		l := dial(t, c, today())
		s := l.subscribe(c, asking("orders", wire.StartEarliest, 8))
		for _, r := range numbered(0, 10) {
			publisher.publish("orders", r)
		}
		if round%2 == 0 {
			c.leave()
		} else {
			s.h.CancelRead()
		}
		eventually(t, "it is gone", func() bool { return len(x.log().Cursors(0, 1)) == 0 })
	}
	for _, name := range []string{"felix_subscribers", "felix_sub_lagging", "felix_sub_reader_bytes"} {
		eventually(t, name+" is 0", func() bool { return x.metric(name) == 0 })
	}
}
