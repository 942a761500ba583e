package sessionactor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// scribbler writes to a cache at random and knows what is in it.
type scribbler struct {
	*line
	rand *rand.Rand
	has  map[string]string
	n    int
}

// scribble makes so many writes, and returns the offset behind the last of them.
func (s *scribbler) scribble(writes int) id.Offset {
	s.t.Helper()
	put := func(key, value string) {
		s.put("users", key, value)
		s.has[key] = value
	}
	for range writes {
		key := fmt.Sprint("k", s.rand.IntN(12))
		if s.rand.IntN(5) == 0 {
			s.ask(deleteFrom("users", key))
			delete(s.has, key)
			continue
		}
		put(key, fmt.Sprint(s.n, strings.Repeat("v", s.rand.IntN(8000))))
		s.n++
	}
	put("last", fmt.Sprint(s.n))
	m, ok := s.ask(getFrom("users", "last")).message.(*wire.CacheValue)
	if !ok {
		s.t.Fatal("what was put is not there")
	}
	return id.Offset(m.Version.V + 1)
}

// follower keeps a copy of a cache by watching it, again and again: each watch ends after some changes, because it lags, or because the
// follower leaves it.
type follower struct {
	x     *site
	rand  *rand.Rand
	has   map[string]string
	next  wire.Opt[id.Offset] // unset: it has nothing yet
	lags  int
	again int // resnapshots
}

// follow makes one watch, has something written before it reads, and returns when the watch has ended, when it has read enough, or when it
// has come to what was written last.
func (f *follower) follow(t *testing.T, s *scribbler, writes, changes int) {
	t.Helper()
	c := f.x.connect(func(c *memConn) { c.window = 64 + f.rand.IntN(16<<10) })
	defer c.leave()
	m := watchOf("users", retained)
	if f.next.Set {
		m = watchOf("users", since(f.next.V))
	}
	w := dial(t, c, today()).watch(c, m)
	to := s.scribble(writes)
	if w.started.Resnapshot {
		f.again++
	}
	if w.started.Resnapshot || !f.next.Set {
		clear(f.has) // a key that is not among the values is gone
		f.next = wire.Some(id.Offset(0))
	}
	for ; changes > 0 && f.next.V < to; changes-- {
		frame := w.next()
		e, is := frame.message.(*wire.CacheEvent)
		if !is {
			lagged, is := frame.message.(*wire.CacheWatchLagged)
			if !is || f.next.V > lagged.ResumeFrom {
				t.Fatalf("%s, and the next is to be %d", frame.payload, f.next.V)
			}
			f.next = wire.Some(lagged.ResumeFrom)
			f.lags++
			return
		}
		if e.Offset < f.next.V {
			t.Fatalf("%.60s comes again: the next is to be %d", said(e), f.next.V)
		}
		if delete(f.has, e.Key); e.Value.Set {
			f.has[e.Key] = string(e.Value.V)
		}
		f.next = wire.Some(e.Offset + 1)
	}
}

// Whoever watches on from the last offset it saw, or from the one it was told, has the same as the cache in the end, however often it
// lagged, left in the middle, and came too late for what compaction had removed.
//
// matrix G22, G23, G24
//
// field case CAC-09
func TestWhoeverWatchesOnHasWhatTheCacheHas(t *testing.T) {
	d := newSiteDisk()
	d.inline = 600
	x := d.caching(t, setting{ringBatches: 64, ringBytes: 1 << 20, change: func(o *Options) { o.Delivery.CapacityMax = 16 }})
	s := &scribbler{line: dial(t, x.connect(), today()), rand: rand.New(rand.NewPCG(1, 2)), has: map[string]string{}}
	var followers []*follower
	for i := range uint64(3) {
		followers = append(followers, &follower{x: x, rand: rand.New(rand.NewPCG(7, i)), has: map[string]string{}})
	}
	lags, again := 0, 0
	// A compaction that the machine lets wait may come when all would be over.
	for round, late := 0, time.Now().Add(patience); round < 12 || (lags == 0 || again == 0) && time.Now().Before(late); round++ {
		lags, again = 0, 0
		for _, f := range followers {
			f.follow(t, s, f.rand.IntN(60), 1+f.rand.IntN(90))
			lags, again = lags+f.lags, again+f.again
		}
	}
	for i, f := range followers {
		for tries := 0; tries < 20 && !maps.Equal(f.has, s.has); tries++ { // it may lag, and come too late, a few times more
			f.follow(t, s, 0, 1<<20)
		}
		if !maps.Equal(f.has, s.has) {
			t.Errorf("follower %d has %d keys and the cache %d, after %d lags", i, len(f.has), len(s.has), f.lags)
		}
	}
	if lags == 0 || again == 0 {
		t.Errorf("%d watches lagged, %d began with values because their history was gone: not what is to be tested", lags, again)
	}
}
