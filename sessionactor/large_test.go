package sessionactor

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// largeRecord is more than a feed may have in hand uncounted.
var largeRecord = strings.Repeat("r", 2*writeBytes)

// largeSite has n large records in "orders", most of which are on disk alone. A connection may hold two of them, the node four.
func largeSite(t *testing.T, n int, clock actors.Clock) *site {
	x := newSiteDisk().stored(t, setting{ringBatches: 2, ringBytes: 4 << 20, clock: clock, change: func(o *Options) {
		o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 5 * writeBytes, Node: 10 * writeBytes})
	}})
	l := dial(t, x.connect(), today())
	for i := range n {
		l.publish("orders", fmt.Sprint(i, largeRecord))
	}
	return x
}

// stuckReader is a subscriber from the oldest record on a connection that takes no whole record.
func (x *site) stuckReader(c *memConn) subscription {
	x.t.Helper()
	return dial(x.t, c, today()).subscribe(c, subscribeTo("orders", wire.StartEarliest))
}

func takesNothing(c *memConn) { c.window = 128 }

// reads expects those records of "orders", each by itself.
func (s subscription) reads(from, to int) {
	s.t.Helper()
	for i := from; i < to; i++ {
		f := s.next()
		e, err := wire.DecodeEventBatch(f.flags, f.payload)
		if p, _, _ := e.Next(); err != nil || e.HasOffset && e.BaseOffset != id.Offset(i) || string(p) != fmt.Sprint(i, largeRecord) {
			s.t.Fatalf("record %d: %d bytes at %d that begin %.10q, %v", i, len(p), e.BaseOffset, p, err)
		}
	}
}

// brokenOff wants the stream to end without an end.
func (s subscription) brokenOff() {
	s.t.Helper()
	for {
		if _, err := s.read(); err != nil {
			if !errors.Is(err, errReset) {
				s.t.Errorf("the stream ended with %v", err)
			}
			return
		}
	}
}

// largeHeld waits until event streams hold so many large records, and others wait.
func (x *site) largeHeld(pages, waiting int) {
	x.t.Helper()
	eventually(x.t, fmt.Sprintf("%d large records are held, %d streams wait", pages, waiting), func() bool {
		used := x.opts.Large.Used()
		if used > x.opts.Large.Limit() {
			x.t.Fatalf("%d bytes are held of %d", used, x.opts.Large.Limit())
		}
		return used/len(largeRecord) == pages && x.opts.Large.Waiting() == waiting
	})
}

// Clients that do not read hold large records up to a bound of the node, however many they are. Whoever comes then waits for seconds, and those
// that do not read make room: they lose their streams, and nothing of what the log has.
func TestClientsThatDoNotReadLargeRecordsHoldABoundedPartOfTheNode(t *testing.T) {
	const n = 6
	clock := manual()
	x := largeSite(t, n, clock)
	var stuck []subscription
	for i := range 6 {
		stuck = append(stuck, x.stuckReader(x.connect(takesNothing)))
		x.largeHeld(min(i+1, 4), max(0, i-3))
	}
	c := x.connect()
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartEarliest))
	x.largeHeld(4, 3)
	clock.Advance(2 * time.Second)
	x.largeHeld(4, 3)
	if got := x.metric("felix_event_streams_stuck_total"); got != 0 {
		t.Errorf("%v streams were ended within their time", got)
	}
	clock.Advance(time.Second) // more than a second and an eighth for each
	s.reads(0, n)
	l.publish("orders", fmt.Sprint(n, largeRecord))
	s.reads(n, n+1)
	x.largeHeld(3, 0) // of the six that do not read
	if got := x.metric("felix_event_streams_stuck_total"); got != 3 {
		t.Errorf("%v streams were ended for three that waited", got)
	}
	stuck[0].brokenOff() // it had its record longest
	again := x.connect()
	dial(t, again, today()).subscribe(again, subscribeTo("orders", wire.StartEarliest)).reads(0, n+1)
}

// A reader that shares its connection with streams that nobody reads gets what those hold beyond the connection's part.
func TestALargeRecordIsReadBesideStreamsOfItsConnectionThatNobodyReads(t *testing.T) {
	clock := manual()
	x := largeSite(t, 4, clock)
	c := x.connect(takesNothing)
	first := x.stuckReader(c)
	x.largeHeld(1, 0)
	x.stuckReader(c)
	x.largeHeld(2, 0)
	third := x.stuckReader(c)
	x.largeHeld(2, 1)
	other := x.connect()
	dial(t, other, today()).subscribe(other, subscribeTo("orders", wire.StartEarliest)).reads(0, 4) // of another connection: it does not wait
	x.largeHeld(2, 1)                                                                               // it has given back its last
	clock.Advance(5 * time.Second)
	x.largeHeld(2, 0)
	third.reads(0, 1)
	first.brokenOff()
}

// A stream that waits for room holds nothing, and ends with its node, its client, its connection.
func TestAStreamThatWaitsForRoomEndsAndGivesUpItsPlace(t *testing.T) {
	x := largeSite(t, 4, manual())
	c := x.connect(takesNothing)
	x.stuckReader(c)
	x.stuckReader(c)
	gone := x.stuckReader(c)
	x.largeHeld(2, 1)
	gone.h.CancelRead()
	x.largeHeld(2, 0)
	x.stuckReader(c)
	x.largeHeld(2, 1)
	c.Close(CloseShutdown)
	x.largeHeld(0, 0)
}

// Frames that are made for one subscriber count, too, of streams in memory as well: nothing of those is let go of while it waits.
func TestLargeFramesThatAreMadeForOneSubscriberWaitAndLoseNothing(t *testing.T) {
	x := open(t, setting{clock: manual(), change: func(o *Options) {
		o.Large = NewLargePages(sessioncore.LargeLimits{Conn: writeBytes, Node: 2 * writeBytes})
	}})
	c := x.connect(takesNothing)
	var all []subscription
	for range 2 {
		all = append(all, dial(t, c, nothing()).subscribe(c, subscribeTo("orders", wire.StartLatest)))
	}
	dial(t, x.connect(), today()).publish("orders", largeRecord)
	eventually(t, "one is written, and one waits", func() bool { return x.opts.Large.Used() > 0 && x.opts.Large.Waiting() == 1 })
	done := make(chan []string, len(all))
	for _, s := range all {
		go func() {
			f, err := s.read()
			if err != nil {
				t.Error(err)
			}
			done <- eventsOf(t, f)
		}()
	}
	for range all {
		if got := want(t, done, "an event"); len(got) != 1 || got[0] != largeRecord {
			t.Errorf("got %d events", len(got))
		}
	}
	eventually(t, "all is given back", func() bool { return x.opts.Large.Used() == 0 })
}

// Current values that are read from the log are held one for each watch, and count as records do.
func TestWatchesThatAreNotReadHoldABoundedPartInLongValues(t *testing.T) {
	const n = 5
	clock := manual()
	x := newSiteDisk().caching(t, setting{clock: clock, change: func(o *Options) {
		o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 20 * writeBytes, Node: 20 * writeBytes}) // two values and their frames
	}})
	l := dial(t, x.connect(), today())
	for i := range n {
		l.put("users", fmt.Sprint("k", i), fmt.Sprint(i, largeRecord))
	}
	var stuck []watching
	for range 4 {
		_, w := x.slowWatch(watchOf("users", ofPrefix("k"), retained))
		stuck = append(stuck, w)
	}
	eventually(t, "two hold a value, and two wait", func() bool { return x.opts.Large.Waiting() == 2 })
	if used := x.opts.Large.Used(); used > x.opts.Large.Limit() {
		t.Errorf("%d bytes are held of %d", used, x.opts.Large.Limit())
	}
	var reading sync.WaitGroup
	for _, w := range stuck { // each gets all of it once it reads
		reading.Go(func() {
			for i := range n {
				f, err := w.read()
				if e, ok := f.message.(*wire.CacheEvent); !ok || e.Key != fmt.Sprint("k", i) || string(e.Value.V) != fmt.Sprint(i, largeRecord) {
					t.Errorf("got %.40q, %v, want k%d", f.payload, err, i)
					return
				}
			}
		})
	}
	reading.Wait()
	eventually(t, "all is given back", func() bool { return x.opts.Large.Used() == 0 && x.opts.Large.Waiting() == 0 })
}
