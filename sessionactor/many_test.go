package sessionactor

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/felixd/felixd/wire"
)

// idleBytes is what one idle subscription may cost, in bytes of heap and stack, with the client's end of the test's streams.
const idleBytes = 16 << 10

// memoryInUse is what live objects and stacks take.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one finished with
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func TestTenThousandSubscriptionsOnOneNodeAllGetEveryPublish(t *testing.T) {
	connections, each := 10, 1000
	if testing.Short() || poolSlack > 0 {
		each = 100 // the race detector allows 8000 goroutines
	}
	x := open(t, setting{ringBatches: 64, ringBytes: 1 << 20})
	l := dial(t, x.connect(), today())
	for range 10 {
		l.publish("orders", "warm")
	}
	before := memoryInUse()
	var subs []subscription
	for range connections {
		c := x.connect(func(c *memConn) { c.window = 4 << 10 })
		asks := dial(t, c, today())
		for range each {
			s := asks.subscribe(c, subscribeTo("orders", wire.StartLatest))
			s.b, s.c = nil, nil // what the test read the hello with
			subs = append(subs, s)
		}
	}
	per := (memoryInUse() - before) / int64(len(subs))
	t.Logf("%d idle subscriptions: %d bytes each, the client's end in memory included", len(subs), per)
	if per > idleBytes && poolSlack == 0 { // the race detector keeps books of its own
		t.Errorf("an idle subscription costs %d bytes, at most %d allowed", per, idleBytes)
	}
	const publishes = 5
	for i := range publishes {
		l.publish("orders", fmt.Sprint(i)+strings.Repeat("-", 100))
	}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := w; i < len(subs); i += 8 {
				subs[i].c = make([]byte, 1<<10)
				got, _, _ := subs[i].events(publishes)
				for n, e := range got {
					if !strings.HasPrefix(e, fmt.Sprint(n)) {
						t.Errorf("subscription %d: %.3q where %d was due", i, e, n)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if n := x.metric("felix_subscribers"); int(n) != len(subs) {
		t.Errorf("%v subscriptions are open", n)
	}
	if n := x.metric("felix_subscribe_dropped_total"); n != 0 {
		t.Errorf("%v records were lost", n)
	}
	// The bound of a list holds for it, and the pages together are everything.
	q, listed := &wire.SubscriptionsList{Limit: wire.Some(^uint32(0))}, 0
	for {
		page := x.list(q)
		if len(page.Subscriptions) > wire.MaxInspectPage {
			t.Fatalf("a page of %d", len(page.Subscriptions))
		}
		listed += len(page.Subscriptions)
		if !page.NextCursor.Set {
			break
		}
		q.Cursor = page.NextCursor
	}
	if listed != len(subs) {
		t.Errorf("%d subscriptions are listed", listed)
	}
}
