package sessionactor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// slowWatch is a watch on a connection whose windows take no whole change: its pump stands still in the first write.
func (x *site) slowWatch(m *wire.CacheWatch) (*memConn, watching) {
	x.t.Helper()
	c := x.connect(func(c *memConn) { c.window = 128 })
	return c, dial(x.t, c, today()).watch(c, m)
}

// A client that does not read gets what was queued for it and is told what it missed first. From there it misses nothing.
//
// matrix G23
func TestAWatchThatFallsBehindIsToldWhereToResumeAndMissesNothing(t *testing.T) {
	const n = 60
	x := newSiteDisk().caching(t, setting{change: func(o *Options) { o.Delivery.CapacityMax = 4 }})
	l := dial(t, x.connect(), today())
	_, w := x.slowWatch(watchOf("users", ofPrefix("k")))
	value := strings.Repeat("v", 200)
	for i := range n {
		l.put("users", fmt.Sprint("k", i), value)
		l.put("users", "other", value)
		if i == 0 {
			eventually(t, "it stands in its first change", w.h.stands) // one that has not begun is not slow, and goes back to what it missed
		}
	}
	next := id.Offset(0)
	for {
		f := w.next()
		if e, is := f.message.(*wire.CacheEvent); is {
			if e.Offset != next {
				t.Fatalf("got %.20s at %d, want %d", e.Key, e.Offset, next)
			}
			next += 2
			continue
		}
		lagged, is := f.message.(*wire.CacheWatchLagged)
		if !is || lagged.ResumeFrom > next || lagged.ResumeFrom+1 < next || next >= 2*n {
			t.Fatalf("%s after changes below %d", f.payload, next)
		}
		w.over()
		next = lagged.ResumeFrom
		break
	}
	if got := x.metric("felix_cache_watches_lagged_total"); got != 1 {
		t.Errorf("%v are counted as lagging", got)
	}
	c := x.connect()
	again := dial(t, c, today()).watch(c, watchOf("users", ofPrefix("k"), since(next)))
	for next += next % 2; next < 2*n; next += 2 {
		if e := again.change(); e.Offset != next {
			t.Fatalf("then %s at %d, want %d", e.Key, e.Offset, next)
		}
	}
}

// That what the transport has must leave first is no sign that the client is slow. What found no room in the watch's window meanwhile it reads again.
func TestAWatchIsNotSlowBecauseWhatItTriedHasNotBeenSent(t *testing.T) {
	const n = 60
	x := newSiteDisk().caching(t, setting{change: func(o *Options) { o.Delivery.CapacityMax, o.Clock = 4, manual() }})
	conn := x.connect(func(m *memConn) { m.window, m.unsent = 128, true })
	w := dial(t, conn, today()).watch(conn, watchOf("users", ofPrefix("k")))
	l := dial(t, x.connect(), today())
	l.put("users", "k0", strings.Repeat("v", 200))
	eventually(t, "it stands in its first change", w.h.stands)
	for i := range n {
		l.put("users", fmt.Sprint("k", i+1), "v")
	}
	for i := range n + 1 {
		if e := w.change(); e.Offset != id.Offset(i) {
			t.Fatalf("got %.20s at %d, want %d", e.Key, e.Offset, i)
		}
	}
	if x.metric("felix_cache_watches_lagged_total") != 0 {
		t.Error("it was counted as lagging")
	}
}

// However what is tried and what is written come to alternate: a client that takes no more is found slow by its window, not after a while.
func TestAWatchWhoseClientTakesNoMoreIsSlowWhereverThatMeetsIt(t *testing.T) {
	const puts, value, frame, tried = 30, 60 << 10, 80 << 10, 200 << 10 // a frame is a little longer than 80 KiB, and each third one has to wait for those before it
	for _, frames := range []int{2, 3, 4, 5, 6, 7} {
		t.Run(fmt.Sprint(frames), func(t *testing.T) {
			x := newSiteDisk().caching(t, setting{ringBatches: 8, ringBytes: 1 << 20, change: func(o *Options) { o.Delivery.CapacityMax, o.Clock = 1, manual() }})
			conn := x.connect(func(m *memConn) { m.window, m.mostTried = frames*frame+frame/2, tried })
			w := dial(t, conn, today()).watch(conn, watchOf("users", ofPrefix("k")))
			l := dial(t, x.connect(), today())
			for i := range puts {
				l.put("users", fmt.Sprint("k", i), strings.Repeat("v", value))
				if i <= frames { // one at a time, until no more is taken
					eventually(t, "it is written, or stands", func() bool { return w.h.holds() > (i+1)*frame || w.h.stands() })
				}
			}
			f, given := w.next(), 0
			for ; ; f = w.next() {
				if _, is := f.message.(*wire.CacheWatchLagged); is {
					break
				}
				if e, is := f.message.(*wire.CacheEvent); !is || e.Offset != id.Offset(given) {
					t.Fatalf("want the change at %d, got %.40s", given, f.payload)
				}
				if given++; given == puts {
					t.Fatal("it was given all that it had missed")
				}
			}
			if got := x.metric("felix_cache_watches_lagged_total"); got != 1 {
				t.Errorf("%v are counted as lagging", got)
			}
		})
	}
}

// A client that reads nothing is slow, also when the bound on what its connection has unsent is used up so that no try ever meets its window.
func TestAWatchWhoseClientReadsNothingLagsAlsoWhenNothingIsTakenBeforeItWasSent(t *testing.T) {
	const n = 60
	clock, d := manual(), newSiteDisk()
	x := d.caching(t, setting{change: func(o *Options) { o.Delivery.CapacityMax = 4; o.Clock = clock }})
	conn := x.connect(func(m *memConn) { m.window, m.unsent = 128, true })
	w := dial(t, conn, today()).watch(conn, watchOf("users", ofPrefix("k")))
	l := dial(t, x.connect(), today())
	l.put("users", "k", strings.Repeat("v", 200))
	eventually(t, "it stands in its first change", w.h.stands)
	for i := range n {
		l.put("users", fmt.Sprint("k", i+1), "v")
	}
	clock.Advance(time.Minute)
	for {
		f := w.next()
		if e, is := f.message.(*wire.CacheEvent); is {
			if e.Offset == n {
				t.Fatal("it was given all that it had missed")
			}
			continue
		}
		if _, is := f.message.(*wire.CacheWatchLagged); !is {
			t.Fatalf("%s", f.payload)
		}
		break
	}
	if got := x.metric("felix_cache_watches_lagged_total"); got != 1 {
		t.Errorf("%v are counted as lagging", got)
	}
}

// A watch whose client takes all it is written does not lag because of others' keys: what its window had no room for it reads again.
func TestAWatchOfAQuietKeyOnABusyShardNeitherLagsNorMissesAnything(t *testing.T) {
	x := newSiteDisk().caching(t, setting{ringBatches: 8, ringBytes: 1 << 20, change: func(o *Options) { o.Delivery.CapacityMax = 1 }})
	c := x.connect()
	w := dial(t, c, today()).watch(c, watchOf("users", ofKey("quiet")))
	l := dial(t, x.connect(), today())
	for round := range 20 {
		for i := range 60 { // one after the other without waiting: they become readable many at a time
			l.send(putTo("users", fmt.Sprint("busy-", i), "x"))
		}
		l.send(putTo("users", "quiet", fmt.Sprint(round)))
		for range 61 {
			l.next()
		}
		if e := w.change(); string(e.Value.V) != fmt.Sprint(round) || e.Offset != id.Offset(61*round+60) {
			t.Fatalf("round %d: got %s", round, said(e))
		}
	}
	if x.metric("felix_cache_watches_lagged_total") != 0 {
		t.Error("it was counted as lagging")
	}
}

// What a watch may be given of current values is bounded, for one and for all of a node; the refusal says what to do.
func TestCurrentValuesOfWatchesAreBounded(t *testing.T) {
	const n, size = 8, 1000
	d := newSiteDisk()
	x := d.caching(t, setting{clock: manual(), change: func(o *Options) { o.NodeSnapshots = NewSnapshots(n * (valueCost + 2 + size)) }})
	largest := x.opts.NodeSnapshots.Largest()
	c := x.connect()
	l := dial(t, c, today())
	value := strings.Repeat("v", size)
	for i := range n {
		l.put("users", fmt.Sprint("a", i), value)
	}
	l.watch(c, watchOf("users", retained)) // all there is, to the byte
	eventually(t, "nothing is held for it", func() bool { return x.opts.NodeSnapshots.Held() == 0 })
	l.put("users", "b", "")
	unlucky := dial(t, x.connect(), today()) // event streams are opened for its watches before they are refused
	if r := refused(t, unlucky.ask(watchOf("users", retained))); r.Code != wire.CodeLimitExceeded || !strings.Contains(r.Message, "FELIX_CACHE_WATCH_SNAPSHOT_BYTES") || !strings.Contains(r.Message, "prefix") {
		t.Errorf("answered %+v", r)
	}
	l.watch(c, watchOf("users", ofPrefix("a"), retained))
	l.watch(c, watchOf("users")) // without values there is nothing to bound
	eventually(t, "nothing is held for them", func() bool { return x.opts.NodeSnapshots.Held() == 0 })
	var slow []watching
	var conns []*memConn
	const most = snapshotsHeld - 1 // the last share is for another tenant
	for range most {
		c, w := x.slowWatch(watchOf("users", ofPrefix("a"), retained))
		slow, conns = append(slow, w), append(conns, c)
	}
	if held := x.opts.NodeSnapshots.Held(); held != most*largest || x.opts.NodeSnapshots.Limit() != snapshotsHeld*largest {
		t.Errorf("%d bytes are held, want %d", held, most*largest)
	}
	if r := refused(t, unlucky.ask(watchOf("users", ofPrefix("b"), retained))); r.Code != wire.CodeOverloaded || r.Reason != wire.ReasonWatchSnapshots {
		t.Errorf("answered %+v", r)
	}
	for range n {
		slow[0].change()
	}
	eventually(t, "those of the one that reads are let go", func() bool {
		return x.opts.NodeSnapshots.Held() == (most-1)*largest
	})
	l.watch(c, watchOf("users", ofPrefix("b"), retained))
	for _, c := range conns {
		c.leave()
	}
	eventually(t, "those of connections that are gone, too", func() bool { return x.opts.NodeSnapshots.Held() == 0 })
	if got := x.metric("felix_cache_watches_refused_total"); got != 2 {
		t.Errorf("%v refusals are counted", got)
	}
}

// A watch that is being given its values for long holds nothing of the log, and loses nothing of it.
func TestChangesThatAreMadeWhileAWatchReadsItsValuesFollowThem(t *testing.T) {
	x := newSiteDisk().caching(t, setting{clock: manual(), ringBatches: 4, ringBytes: 1 << 20, change: func(o *Options) { o.Delivery.CapacityMax = 1 }})
	l := dial(t, x.connect(), today())
	value := strings.Repeat("v", 200)
	for i := range 10 {
		l.put("users", fmt.Sprint(i), value)
	}
	_, w := x.slowWatch(watchOf("users", retained))
	for i := range 50 {
		l.put("users", fmt.Sprint("later-", i), "x")
	}
	for i := range 60 {
		if e := w.change(); e.Offset != id.Offset(i) {
			t.Fatalf("got %.20s at %d, want %d", e.Key, e.Offset, i)
		}
		if i == 1 && len(x.cacheShard(t, "users", 0).Log.Cursors(0, 9)) != 0 {
			t.Error("it has a place in the log")
		}
	}
}

// outgrow puts until compaction has removed all that is below an offset.
func (x *site) outgrow(l *line, below id.Offset) {
	x.t.Helper()
	log, filler := x.cacheShard(x.t, "users", 0).Log, strings.Repeat("f", 60<<10)
	for n := 0; ; n++ {
		if oldest, _ := log.Bounds(); oldest > below {
			return
		}
		if n > 1000 {
			x.t.Fatal("nothing was ever compacted")
		}
		l.put("users", "filler", filler)
	}
}

// A value that was overwritten and removed from the log before a slow watch came to it can't be given any more. The watch ends there, and
// one that resumes there is given what has become of all of it.
func TestAWatchWhoseValuesWereRemovedUnderItResumesThere(t *testing.T) {
	const n, size = 12, 20 << 10
	d := newSiteDisk()
	d.inline = 8
	x := d.caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	for i := range n {
		l.put("users", fmt.Sprint("k", i), strings.Repeat("v", size))
	}
	_, w := x.slowWatch(watchOf("users", ofPrefix("k"), retained))
	if w.started.RetainedCount != wire.Some(uint64(n)) {
		t.Fatalf("started %+v", w.started)
	}
	l.put("users", fmt.Sprint("k", n-1), "new")
	for i := range n - 2 {
		l.ask(deleteFrom("users", fmt.Sprint("k", i+1)))
	}
	x.outgrow(l, n)
	for next := id.Offset(0); ; next++ {
		f := w.next()
		if e, is := f.message.(*wire.CacheEvent); is {
			if e.Offset != next || len(e.Value.V) != size || next == n-1 {
				t.Fatalf("got %.20s at %d, want %d", e.Key, e.Offset, next)
			}
			continue
		}
		if m, is := f.message.(*wire.CacheWatchLagged); !is || m.ResumeFrom != next || next == 0 {
			t.Fatalf("%s after values below %d", f.payload, next)
		}
		w.over()
		again := l.watch(c, watchOf("users", ofPrefix("k"), since(next)))
		if !again.started.Resnapshot {
			t.Errorf("started %+v", again.started)
		}
		if e := again.change(); e.Key != "k0" || e.Offset != 0 || len(e.Value.V) != size {
			t.Errorf("got %.20s at %d", e.Key, e.Offset)
		}
		if e := again.change(); said(e) != fmt.Sprintf("k%d=new at %d", n-1, n) {
			t.Errorf("got %.60s", said(e))
		}
		return
	}
}

// A node that stops does not wait until a slow watch has read its values: where it goes on is the first that it was not given.
func TestADrainEndsAWatchInTheMiddleOfItsValues(t *testing.T) {
	const n, size = 12, 20 << 10
	x := newSiteDisk().caching(t, setting{clock: manual()})
	l := dial(t, x.connect(), today())
	for i := range n {
		l.put("users", fmt.Sprint("k", i), strings.Repeat("v", size))
	}
	c, w := x.slowWatch(watchOf("users", retained))
	idle := dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartLatest))
	if e := w.change(); e.Offset != 0 { // it has begun
		t.Fatalf("got %.20s at %d first", e.Key, e.Offset)
	}
	done := x.drain()
	idle.over() // its session knows
	for next := id.Offset(1); ; next++ {
		f := w.next()
		if e, is := f.message.(*wire.CacheEvent); is {
			if e.Offset != next {
				t.Fatalf("got %.20s at %d, want %d", e.Key, e.Offset, next)
			}
			continue
		}
		if m, is := f.message.(*wire.ShardMoved); !is || m.ResumeFrom != wire.Some(next) || next == n {
			t.Fatalf("%s after values below %d", f.payload, next)
		}
		break
	}
	w.over()
	x.drained(done, x.conns...)
}

// What can't be decoded ends a watch as damage ends a subscription: broken off, and the operator is told.
func TestDamageUnderAWatchBreaksItOff(t *testing.T) {
	events := &told{}
	opts := &Options{Metrics: NewMetrics(newRegistry()), Events: events}
	out := newHalf(t.Context(), actors.RealClock(), 1<<20)
	w := newWatch(&session{opts: opts}, 1, watchRequest{asked: asked{entry: newEntry(cache("users", 1), true)}, scope: watchScope{prefix: true}})
	w.stream = out
	good := recordsAt(5, reading.Record{Op: reading.OpPut, Key: []byte("k")})
	bad := recordsAt(6, reading.Record{Op: reading.OpPut, Key: []byte("k")})
	bad.Body[4] = 99
	if err := w.page(storage.Page{Batches: []*batch.Batch{good, bad}}); err == nil || !strings.Contains(err.Error(), "offset 6") {
		t.Errorf("got %v", err)
	}
	if _, err := out.Write([]byte("x")); err == nil {
		t.Error("the event stream goes on")
	}
	if events.of("log_read_failed") != 1 {
		t.Error("the operator was not told")
	}
}

// dropping counts what a reader could not pass on.
type dropping struct {
	storage.Cursor
	n uint64
}

func (d *dropping) Drop(records uint64) { d.n += records }

// A change that is longer as an event than it was as a put, and than any frame may be, is counted and costs no other.
func TestAChangeThatNoFrameCanHoldIsCountedAsDropped(t *testing.T) {
	w := newWatch(&session{opts: &Options{Metrics: NewMetrics(newRegistry())}}, 1, watchRequest{scope: watchScope{prefix: true}})
	cursor := &dropping{}
	w.cursor = cursor
	buf, err := w.event(nil, &wire.CacheEvent{Key: "small"})
	before := len(buf)
	if err == nil {
		buf, err = w.event(buf, &wire.CacheEvent{Key: "large", Value: wire.Some(make([]byte, wire.MaxPayload))})
	}
	if err != nil || len(buf) != before || cursor.n != 1 {
		t.Errorf("%d bytes after %d, %d dropped, %v", len(buf), before, cursor.n, err)
	}
}

// holds is how many bytes were written that nobody has read.
func (h *half) holds() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.buf) - h.read
}
