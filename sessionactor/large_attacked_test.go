package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// keepsNoPage keeps no large page.
func keepsNoPage(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) }

// hoarder is a stream as QUIC's with a client whose window is large and that acknowledges nothing: what is tried is taken, a write waits.
type hoarder struct {
	SendStream
	tried int
}

func (h *hoarder) TryWriteAll(p []byte) error  { h.tried += len(p); return nil }
func (h *hoarder) Write(p []byte) (int, error) { return 0, errReset }
func (h *hoarder) Context() context.Context    { return context.Background() }

type nearCursor struct{ storage.Cursor }

func (nearCursor) Behind() bool { return false }

// A page of several batches whose overhead makes it large.
func TestAPageOfSeveralBatchesIsWrittenWithoutRoom(t *testing.T) {
	x := newSiteDisk().stored(t, setting{ringBatches: 2, ringBytes: 4 << 20, change: keepsNoPage})
	l := dial(t, x.connect(), today())
	var want []string
	for i := range 70 {
		p := fmt.Sprintf("%d/%s", i, strings.Repeat("x", 1010))
		l.publish("orders", p)
		want = append(want, p)
	}
	c := x.connect(func(c *memConn) { c.window = 1000 })
	s := dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartEarliest))
	at := 0
	for at < len(want) {
		f, err := s.read()
		if err != nil {
			t.Fatalf("at %d: %v, %v read failures, %v aside", at, err, x.metric("felix_log_read_failures_total"), x.metric("felix_large_pages_put_aside_total"))
		}
		for _, p := range eventsOf(t, f) {
			if p != want[at] {
				t.Fatalf("at %d", at)
			}
			at++
		}
	}
}

// Delivered is counted once for frames that are made for one subscriber.
func TestRecordsOfMadeFramesAreCountedOnceWithoutRoom(t *testing.T) {
	for name, auth := range map[string]*wire.Auth{"json": nothing(), "timestamps": flags(wire.FlagEventBatch | wire.FlagEventTimestamps)} {
		t.Run(name, func(t *testing.T) {
			x := newSiteDisk().stored(t, setting{ringBatches: 2, ringBytes: 4 << 20, change: keepsNoPage})
			l := dial(t, x.connect(), today())
			var want []string
			for i := range 3 {
				var list []string
				for j := range 300 {
					list = append(list, fmt.Sprintf("%d/%d/%s", i, j, strings.Repeat("x", 1000)))
				}
				l.publish("orders", list...)
				want = append(want, list...)
			}
			c := x.connect(func(c *memConn) { c.window = 1000 })
			s := dial(t, c, auth).subscribe(c, subscribeTo("orders", wire.StartEarliest))
			at := 0
			for at < len(want) {
				for _, p := range eventsOf(t, s.next()) {
					if p != want[at] {
						t.Fatalf("at %d", at)
					}
					at++
				}
			}
			c.Close(CloseShutdown)
			eventually(t, "ended", func() bool { return x.metric("felix_subscribers") == 0 })
			if got := x.metric("felix_delivered_records_total"); got != float64(len(want)) {
				t.Errorf("%v delivered of %d, %v aside", got, len(want), x.metric("felix_large_pages_put_aside_total"))
			}
		})
	}
}

// A client that takes a long value slowly, with pauses shorter than the patience, is given all of them, also when there is room from some piece on.
func TestAClientThatTakesALongValueSlowlyIsGivenAllOfIt(t *testing.T) {
	const n = 3
	clock := manual()
	x := newSiteDisk().caching(t, setting{clock: clock, change: largeLimits(5, 5)})
	l := dial(t, x.connect(), today())
	for i := range n {
		l.put("users", fmt.Sprint("k", i), fmt.Sprint(i, largeRecord))
	}
	_, one := x.slowWatch(watchOf("users", ofKey("k1"), retained))
	eventually(t, "the value of one key is kept", func() bool { return x.opts.Large.Used() > len(largeRecord) })
	_, w := x.slowWatch(watchOf("users", ofPrefix("k"), retained))
	eventually(t, "has no room and stands", func() bool { return x.metric("felix_large_pages_put_aside_total") == 1 && w.h.stands() })
	one.change()
	const chunk = 64 << 10 // each 4 s
	var raw []byte
	for len(raw) < len(largeRecord) { // less than the frame
		b, err := w.bytes(chunk)
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, b...)
		eventually(t, "it stands", w.h.stands)
		clock.Advance(snapshotPatience * 2 / 5)
	}
	if got := x.metric("felix_cache_watches_stuck_total"); got != 0 {
		t.Errorf("%v stuck though it took %d bytes each 4 s", got, chunk)
	}
}

// A value that is overwritten and deleted between its pieces comes as it was, and the change after it.
func TestAValueThatIsOverwrittenBetweenItsPiecesComesAsItWasOrIsFollowedByTheNext(t *testing.T) {
	x := newSiteDisk().caching(t, setting{ringBatches: 2, ringBytes: 4 << 20, change: func(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) }})
	l := dial(t, x.connect(), today())
	for i := range 3 {
		l.put("users", fmt.Sprint("k", i), fmt.Sprint(i, largeRecord))
	}
	_, w := x.slowWatch(watchOf("users", ofPrefix("k"), retained))
	eventually(t, "aside", func() bool { return x.metric("felix_large_pages_put_aside_total") == 1 && w.h.stands() })
	for i := range 3 {
		l.put("users", fmt.Sprint("k", i), fmt.Sprint("new", i, largeRecord))
	}
	last := map[string]string{}
	for range 6 {
		f := w.next()
		e, is := f.message.(*wire.CacheEvent)
		if !is {
			t.Fatalf("%.80q", f.payload)
		}
		last[e.Key] = string(e.Value.V)
	}
	for i := range 3 {
		if last[fmt.Sprint("k", i)] != fmt.Sprint("new", i, largeRecord) {
			t.Errorf("k%d", i)
		}
	}
}

func TestAStreamThatIsRemovedWhileAPieceWaitsIsNoFailureOfReading(t *testing.T) {
	x := largeSite(t, 4, func(o *Options) { o.Large = NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1}) })
	s := x.fromTheFirst(x.connect(takesNothing))
	eventually(t, "aside", func() bool { return x.metric("felix_large_pages_put_aside_total") == 1 && s.h.stands() })
	h := x.shardOf("orders", 0).History
	x.desire(stream("wide", 4))
	eventually(t, "gone", func() bool {
		_, err := h.Read(t.Context(), 0, 1, 1, 1, nil)
		return errors.As(err, new(*storage.ClosedError))
	})
	_, err := s.read()
	for err == nil {
		_, err = s.read()
	}
	eventually(t, "ended", func() bool { return x.metric("felix_subscribers") == 0 })
	if got := x.metric("felix_log_read_failures_total"); got != 0 {
		t.Errorf("%v read failures", got)
	}
	if !errors.Is(err, errReset) {
		t.Errorf("the client saw %v", err)
	}
}

func TestAFeedWithoutRoomHandsTheTransportABoundedPart(t *testing.T) {
	out := &hoarder{}
	o := (&Options{Delivery: DefaultDelivery(), Large: NewLargePages(sessioncore.LargeLimits{Conn: 1, Node: 1})})
	f := newFeed(o, t.Context(), 1, out, requested(8, false, wire.Grant{}))
	f.cursor = nearCursor{}
	for range 200 {
		region := append([]byte{0, 1, 0x90, 0}, strings.Repeat("x", 100<<10)...)
		b := &batch.Batch{Kind: batch.Records, Base: 0, Count: 1, Body: region}
		if err := f.passOn(t.Context(), storage.Page{Batches: []*batch.Batch{b}, Next: 1}); err != nil {
			break
		}
	}
	if out.tried > 2*pieceBytes {
		t.Errorf("the transport keeps %d bytes", out.tried)
	}
}
