package sessionactor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// largeRecord is more than a feed may have in hand uncounted, and several pieces long.
var largeRecord = strings.Repeat("0123456789abcde\n", 5*pieceBytes/32)

// largeLimits are room for so many large records of a connection, and of the node.
func largeLimits(conn, node int) func(*Options) {
	const each = 3 * pieceBytes
	return func(o *Options) {
		o.Large = NewLargePages(sessioncore.LargeLimits{Conn: conn * each, Node: node * each})
	}
}

// largeSite has n large records in "orders", most of which are on disk alone.
func largeSite(t *testing.T, n int, change func(*Options)) *site {
	x := newSiteDisk().stored(t, setting{ringBatches: 2, ringBytes: 4 << 20, change: change})
	l := dial(t, x.connect(), today())
	for i := range n {
		l.publish("orders", fmt.Sprint(i, largeRecord))
	}
	return x
}

// fromTheFirst is a subscriber from the oldest record on.
func (x *site) fromTheFirst(c *memConn) subscription {
	x.t.Helper()
	return dial(x.t, c, today()).subscribe(c, subscribeTo("orders", wire.StartEarliest))
}

func takesNothing(c *memConn) { c.window = 128 }

// reads expects those records of "orders", each by itself. It says what is wrong, and may be called from anywhere.
func (s subscription) reads(from, to int) error {
	for i := from; i < to; i++ {
		f, err := s.read()
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		e, err := wire.DecodeEventBatch(f.flags, f.payload)
		if p, _, _ := e.Next(); err != nil || e.HasOffset && e.BaseOffset != id.Offset(i) || e.SkippedBefore != 0 || string(p) != fmt.Sprint(i, largeRecord) {
			return fmt.Errorf("record %d: %d bytes at %d that begin %.10q, %d skipped, %w", i, len(p), e.BaseOffset, p, e.SkippedBefore, errors.Join(err))
		}
	}
	return nil
}

// together has all of them read those records at the same time.
func together(t *testing.T, list []subscription, from, to int) {
	t.Helper()
	var reading sync.WaitGroup
	for i, s := range list {
		reading.Go(func() {
			if err := s.reads(from, to); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	reading.Wait()
}

// Clients that do not read keep large records up to a bound of the node and of their connection, however many they are. Others read meanwhile, and
// each gets all once it reads.
func TestClientsThatDoNotReadLargeRecordsKeepABoundedPartOfTheNode(t *testing.T) {
	const n = 5
	x := largeSite(t, n, largeLimits(2, 4))
	var stuck []subscription
	c := x.connect(takesNothing)
	for range 4 {
		stuck = append(stuck, x.fromTheFirst(c))
	}
	eventually(t, "a connection keeps its part, and two put theirs aside", func() bool {
		return x.opts.Large.Used() > 2*len(largeRecord) && x.metric("felix_large_pages_put_aside_total") == 2
	})
	for range 4 {
		stuck = append(stuck, x.fromTheFirst(x.connect(takesNothing)))
	}
	eventually(t, "the node keeps its part, and four put theirs aside", func() bool { return x.metric("felix_large_pages_put_aside_total") == 4 })
	if used := x.opts.Large.Used(); used > x.opts.Large.Limit() || used/len(largeRecord) != 4 {
		t.Errorf("%d bytes are kept of %d", used, x.opts.Large.Limit())
	}
	if err := x.fromTheFirst(x.connect()).reads(0, n); err != nil {
		t.Errorf("who reads beside them: %v", err)
	}
	together(t, stuck, 0, n)
	eventually(t, "nothing is kept any more", func() bool { return x.opts.Large.Used() == 0 })
}

// Without any room every record comes all the same, byte for byte, in each form that subscribers have; also to one that takes a few bytes at a time.
func TestLargeRecordsComeWholeWithoutAnyRoom(t *testing.T) {
	const n = 3
	x := largeSite(t, n, func(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) })
	var list []subscription
	for _, window := range []int{128, 4 << 10, 100 << 10, 300 << 10} {
		for _, auth := range []*wire.Auth{today(), flags(wire.FlagEventBatch), flags(wire.FlagEventBatch | wire.FlagEventTimestamps), nothing()} {
			c := x.connect(func(c *memConn) { c.window = window })
			list = append(list, dial(t, c, auth).subscribe(c, subscribeTo("orders", wire.StartEarliest)))
		}
	}
	var reading sync.WaitGroup
	for _, s := range list {
		reading.Go(func() {
			for i := range n {
				f, err := s.read()
				if err != nil {
					t.Error(err)
					return
				}
				if got := eventsOf(t, f); len(got) != 1 || got[0] != fmt.Sprint(i, largeRecord) {
					t.Errorf("record %d: %d events", i, len(got))
				}
			}
		})
	}
	reading.Wait()
	if used, aside := x.opts.Large.Used(), x.metric("felix_large_pages_put_aside_total"); used != 0 || aside == 0 {
		t.Errorf("%d bytes are kept, %v pages were put aside", used, aside)
	}
}

// A batch of many records goes on in the middle of a frame, behind what was written of it, and what is counted is counted once.
func TestABatchThatIsPutAsideGoesOnWhereItWas(t *testing.T) {
	x := newSiteDisk().stored(t, setting{ringBatches: 2, ringBytes: 4 << 20, change: func(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) }})
	l := dial(t, x.connect(), today())
	var want []string
	for i := range 3 {
		var list []string
		for j := range 700 {
			list = append(list, fmt.Sprintf("%d/%d/%s", i, j, strings.Repeat("x", j)))
		}
		l.publish("orders", list...)
		want = append(want, list...)
	}
	c := x.connect(func(c *memConn) { c.window = 1000 })
	s := dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartEarliest))
	for at := 0; at < len(want); {
		f := s.next()
		e, err := wire.DecodeEventBatch(f.flags, f.payload)
		if err != nil || int(e.BaseOffset) != at {
			t.Fatalf("at %d, want %d: %v", e.BaseOffset, at, err)
		}
		for p, _, ok := e.Next(); ok; p, _, ok = e.Next() {
			if string(p) != want[at] {
				t.Fatalf("record %d is %.20q", at, p)
			}
			at++
		}
	}
	eventually(t, "all is counted once", func() bool { return x.metric("felix_delivered_records_total") == float64(len(want)) })
	if got := x.metric("felix_subscribe_dropped_total"); got != 0 {
		t.Errorf("%v are counted as dropped", got)
	}
}

// A stream whose page is aside ends with its client, and with its connection.
func TestAStreamWhosePageIsAsideEnds(t *testing.T) {
	x := largeSite(t, 4, func(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) })
	c := x.connect(takesNothing)
	first := x.fromTheFirst(c)
	x.fromTheFirst(c)
	eventually(t, "both are aside", func() bool { return x.metric("felix_large_pages_put_aside_total") == 2 })
	first.h.CancelRead()
	eventually(t, "one has ended", func() bool { return x.metric("felix_subscribers") == 1 })
	c.Close(CloseShutdown)
	eventually(t, "both have ended", func() bool { return x.metric("felix_subscribers") == 0 })
}

// A record that cannot be read again in the middle of its frame ends its stream there, where nothing may be told any more, whether there is a word
// for it or not.
func TestARecordThatCannotBeReadAgainBreaksItsStreamOff(t *testing.T) {
	d := newSiteDisk()
	x := d.stored(t, setting{ringBatches: 2, ringBytes: 4 << 20, change: func(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) }})
	l := dial(t, x.connect(), today())
	for i := range 4 {
		l.publish("orders", fmt.Sprint(i, largeRecord))
	}
	s := x.fromTheFirst(x.connect(takesNothing))
	eventually(t, "its page is aside", func() bool { return x.metric("felix_large_pages_put_aside_total") == 1 && s.h.stands() })
	d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Err: syscall.EIO})
	f, err := s.read()
	if !errors.Is(err, errReset) {
		t.Errorf("the client got %.60q, %v", f.payload, err)
	}
	eventually(t, "it is told", func() bool { return x.metric("felix_log_read_failures_total") == 1 })
	d.fault.Set(nil)
}

// Frames that are made for one subscriber count, too, of streams in memory as well: who has no room for them makes them piece by piece, holds up no
// publisher longer than it reads, and loses nothing.
func TestLargeFramesThatAreMadeForOneSubscriberLoseNothingWithoutRoom(t *testing.T) {
	x := open(t, setting{change: func(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) }})
	c := x.connect(takesNothing)
	s := dial(t, c, nothing()).subscribe(c, subscribeTo("orders", wire.StartLatest))
	l := dial(t, x.connect(), today())
	const n = 3
	for i := range n {
		l.publish("orders", fmt.Sprint(i, largeRecord))
	}
	for i := range n {
		if got := eventsOf(t, s.next()); len(got) != 1 || got[0] != fmt.Sprint(i, largeRecord) {
			t.Errorf("record %d: %d events", i, len(got))
		}
	}
	if got := x.metric("felix_subscribe_dropped_total"); got != 0 {
		t.Errorf("%v were dropped", got)
	}
}

// Current values that are read from the log count as records do, of a prefix and of one key, and come whole without room for them.
func TestWatchesThatAreNotReadKeepABoundedPartInLongValues(t *testing.T) {
	const n = 3
	x := newSiteDisk().caching(t, setting{change: largeLimits(5, 5)}) // one value and its frame
	l := dial(t, x.connect(), today())
	for i := range n {
		l.put("users", fmt.Sprint("k", i), fmt.Sprint(i, largeRecord))
	}
	_, one := x.slowWatch(watchOf("users", ofKey("k1"), retained))
	eventually(t, "the value of one key is kept", func() bool { return x.opts.Large.Used() > len(largeRecord) })
	var stuck []watching
	for i := range 4 {
		_, w := x.slowWatch(watchOf("users", ofPrefix("k"), retained))
		stuck = append(stuck, w)
		eventually(t, "the next has no room", func() bool { return x.metric("felix_large_pages_put_aside_total") == float64(i+1) })
	}
	if used := x.opts.Large.Used(); used > x.opts.Large.Limit() {
		t.Errorf("%d bytes are kept of %d", used, x.opts.Large.Limit())
	}
	for _, w := range stuck { // each gets all of it once it reads
		for i := range n {
			if e := w.change(); e.Key != fmt.Sprint("k", i) || string(e.Value.V) != fmt.Sprint(i, largeRecord) {
				t.Fatalf("got %s with %d bytes, want k%d", e.Key, len(e.Value.V), i)
			}
		}
	}
	if e := one.change(); string(e.Value.V) != fmt.Sprint(1, largeRecord) {
		t.Errorf("the watch of one key got %d bytes", len(e.Value.V))
	}
	eventually(t, "nothing is kept any more", func() bool { return x.opts.Large.Used() == 0 })
}

// What is written later to a watch comes without room as well: changes that are read from the log.
func TestLongChangesComeWholeToAWatchWithoutRoom(t *testing.T) {
	const n = 4
	x := newSiteDisk().caching(t, setting{ringBatches: 2, ringBytes: 4 << 20, change: func(o *Options) {
		o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1})
	}})
	_, w := x.slowWatch(watchOf("users", ofPrefix("k")))
	l := dial(t, x.connect(), today())
	for i := range n {
		l.put("users", fmt.Sprint("k", i), fmt.Sprint(i, largeRecord))
		if i == 0 {
			eventually(t, "it stands in its first change", w.h.stands) // and falls behind what follows
		}
	}
	seen := 0
	for ; seen < n; seen++ {
		f := w.next()
		if _, lagged := f.message.(*wire.CacheWatchLagged); lagged {
			break
		}
		if e, is := f.message.(*wire.CacheEvent); !is || string(e.Value.V) != fmt.Sprint(seen, largeRecord) {
			t.Fatalf("change %d: %.60q", seen, f.payload)
		}
	}
	if seen == 0 || x.metric("felix_large_pages_put_aside_total") == 0 {
		t.Errorf("%d changes came, %v pages were put aside", seen, x.metric("felix_large_pages_put_aside_total"))
	}
	eventually(t, "each is counted", func() bool { return x.metric("felix_cache_watch_events_total") >= float64(seen) })
	if got := x.metric("felix_cache_watch_events_total"); got > n {
		t.Errorf("%v changes are counted", got)
	}
}

// Whatever is put aside and read again, by readers of every form, while more is published: each has every record once and in order.
func TestReadersWhosePagesArePutAsideHaveEveryRecordOnceAndInOrder(t *testing.T) {
	const n, readers = 18, 9
	for _, policy := range []storage.Policy{storage.CatchUp, storage.Block} {
		chance := rand.New(rand.NewPCG(7, 7))
		d := newSiteDisk()
		x := d.stored(t, setting{policy: policy, ringBatches: 2, ringBytes: 4 << 20, change: func(o *Options) {
			o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 5 * writeBytes, Node: 7 * writeBytes})
		}})
		l := dial(t, x.connect(), today())
		long := strings.Repeat("r", 3*writeBytes)
		record := func(i int) string {
			if i%3 == 1 {
				return fmt.Sprint(i)
			}
			return fmt.Sprint(i, long)
		}
		put := func(from, to int) {
			for i := from; i < to; {
				var list []string
				for range 1 + chance.IntN(3) {
					if i < to {
						list = append(list, record(i))
						i++
					}
				}
				l.publish("orders", list...)
			}
		}
		put(0, n/2)
		var all sync.WaitGroup
		var conns []*memConn
		for range 4 {
			conns = append(conns, x.connect(func(c *memConn) { c.window = 20_000 }))
		}
		for r := range readers {
			c := conns[r%len(conns)]
			auth, start := today(), r
			switch r / 4 % 3 {
			case 1:
				auth = nothing()
			case 2:
				auth.ClientFlags = wire.Some(wire.FlagEventBatch | wire.FlagEventOffsets | wire.FlagEventTimestamps | wire.FlagEventSkipped)
			}
			m := asking("orders", wire.StartEarliest, uint32(1+r%3))
			if r/4%3 == 1 {
				start = 0
			} else {
				m.Start = wire.Some(wire.Start{Kind: wire.StartOffset, Offset: id.Offset(start)})
			}
			s := dial(t, c, auth).subscribe(c, m)
			all.Go(func() {
				for i := start; i < n; {
					f, err := s.read()
					if err != nil {
						t.Errorf("reader %d at %d: %v", r, i, err)
						return
					}
					if f.message == nil {
						e, err := wire.DecodeEventBatch(f.flags, f.payload)
						if err != nil || e.HasOffset && (e.BaseOffset != id.Offset(i) || e.SkippedBefore != 0) {
							t.Errorf("reader %d at %d: base %d, skipped %d, %v", r, i, e.BaseOffset, e.SkippedBefore, err)
							return
						}
					}
					for _, p := range eventsOf(t, f) {
						if p != record(i) {
							t.Errorf("reader %d at %d: got %.12q of %d", r, i, strings.TrimRight(p, "r"), len(p))
							return
						}
						i++
					}
				}
			})
		}
		put(n/2, n)
		all.Wait()
		eventually(t, "all is given back", func() bool { return x.opts.Large.Used() == 0 })
		if lost := x.metric("felix_subscribe_dropped_total"); lost != 0 {
			t.Errorf("%v lost", lost)
		}
		x.close()
	}
}
