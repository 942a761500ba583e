package sessionactor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// stuckSite is a site whose watches may hold n values at most, with keys of that number, and the offset of the first.
func stuckSite(t *testing.T, n, size int, s setting) (x *site, first id.Offset) {
	s.change = func(o *Options) { o.NodeSnapshots = NewSnapshots(int64(n * (valueCost + 4 + size))) }
	x = newSiteDisk().caching(t, s)
	l := dial(t, x.connect(), today())
	for i := range n {
		l.put("users", fmt.Sprintf("a%03d", i), strings.Repeat("v", size))
	}
	first, _ = x.cacheShard(t, "users", 0).Log.Bounds()
	return x, first
}

// held waits until the watches of the site hold so many times what one of them may.
func (x *site) held(times int64) {
	x.t.Helper()
	eventually(x.t, fmt.Sprint(times, " times what one may"), func() bool { return x.opts.NodeSnapshots.Held() == times*x.opts.NodeSnapshots.Largest() })
}

// A client that does not read has its share of what the node holds of current values, and no other client waits for it.
func TestAClientThatNeverReadsKeepsNoOtherFromCurrentValues(t *testing.T) {
	const n = 8
	x, _ := stuckSite(t, n, 1000, setting{clock: manual()})
	c := x.connect(func(c *memConn) { c.window = 128 })
	for range snapshotsOfConn {
		dial(t, c, today()).watch(c, watchOf("users", ofPrefix("a"), retained))
	}
	if f := refused(t, dial(t, c, today()).ask(watchOf("users", ofKey("a001"), retained))); f.Code != wire.CodeOverloaded || f.Reason != wire.ReasonWatchSnapshots || f.RetryAfterMS == 0 {
		t.Errorf("one more of the connection was answered %+v", f)
	}
	x.held(snapshotsOfConn)
	other := x.connect()
	w := dial(t, other, today()).watch(other, watchOf("users", ofPrefix("a"), retained))
	for i := range n {
		if e := w.change(); e.Key != fmt.Sprintf("a%03d", i) {
			t.Errorf("got %s, want a%03d", e.Key, i)
		}
	}
}

// Who takes nothing for a while is told where to go on, and holds nothing meanwhile. From there it misses nothing.
func TestAClientThatTakesNoValuesLetsGoOfThemAndMissesNothing(t *testing.T) {
	const n, size = 200, 1000 // more than is written at a time
	clock := manual()
	x, first := stuckSite(t, n, size, setting{clock: clock})
	_, w := x.slowWatch(watchOf("users", ofPrefix("a"), retained))
	if w.started.RetainedCount != wire.Some(uint64(n)) {
		t.Fatalf("started %+v", w.started)
	}
	eventually(t, "it stands in its first values", w.h.stands)
	x.held(1)
	clock.Advance(snapshotPatience - 1)
	x.held(1)
	clock.Advance(1)
	x.held(0)
	if got := x.metric("felix_cache_watches_stuck_total"); got != 1 {
		t.Errorf("%v are counted", got)
	}
	next := first
	for {
		f := w.next()
		if e, is := f.message.(*wire.CacheEvent); is {
			if e.Offset != next || len(e.Value.V) != size {
				t.Fatalf("got %.20s at %d, want %d", e.Key, e.Offset, next)
			}
			next++
			continue
		}
		if m, is := f.message.(*wire.CacheWatchLagged); !is || m.ResumeFrom != next || next == first || next == first+n {
			t.Fatalf("%s after values below %d", f.payload, next)
		}
		break
	}
	w.over()
	c := x.connect()
	again := dial(t, c, today()).watch(c, watchOf("users", ofPrefix("a"), since(next)))
	for ; next < first+n; next++ {
		if e := again.change(); e.Offset != next {
			t.Fatalf("then %.20s at %d, want %d", e.Key, e.Offset, next)
		}
	}
}

// One that takes its values slowly is given all of them: each piece counts.
func TestAClientThatTakesItsValuesSlowlyIsGivenAllOfThem(t *testing.T) {
	const n, size = 500, 1000
	clock := manual()
	x, first := stuckSite(t, n, size, setting{clock: clock})
	_, w := x.slowWatch(watchOf("users", ofPrefix("a"), retained))
	for i := range n {
		if e := w.change(); e.Offset != first+id.Offset(i) {
			t.Fatalf("got %.20s at %d, want %d", e.Key, e.Offset, first+id.Offset(i))
		}
		if i%50 == 49 { // a piece is less than that, and 128 bytes of the next are on their way
			clock.Advance(snapshotPatience * 2 / 5)
		}
	}
	dial(t, x.connect(), today()).put("users", "a000", "new")
	w.expect(fmt.Sprintf("a000=new at %d", first+n))
	x.held(0)
}

// One whose client does not even let the event stream begin holds no values for long.
func TestAWatchWhoseStreamTakesNothingAtAllLetsGoOfItsValues(t *testing.T) {
	clock := manual()
	x, _ := stuckSite(t, 8, 1000, setting{clock: clock})
	c := x.connect()
	l := dial(t, c, today())
	c.window = 0
	l.send(watchOf("users", ofPrefix("a"), retained))
	eventually(t, "it stands in its hello", want(t, c.toClient, "the event stream").stands) // its patience has begun
	x.held(1)
	clock.Advance(snapshotPatience)
	x.held(0)
	c.leave()
}
