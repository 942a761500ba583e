package sessionactor

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// stackBytes is what the stacks of all goroutines take now.
func stackBytes() int64 {
	runtime.GC() // what ended gives its stack back
	s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// mission 245: what waits costs what it takes to wait, not what its last request took.
func TestStreamsThatRestKeepTheSmallestStackAndAreServedAfterwards(t *testing.T) {
	const streams, bytes = 500, 2<<10 + 512 // the smallest stack of a goroutine, and what others have
	x := open(t, setting{})
	c := x.connect(func(c *memConn) { c.window = 4 << 10 })
	before := stackBytes()
	var all []*line
	for range streams {
		all = append(all, dial(t, c, today()))
	}
	for round := range 2 {
		for i, l := range all {
			l.publish("orders", fmt.Sprintf("%d.%d", round, i))
		}
		eventually(t, fmt.Sprintf("in round %d streams that rest take %d bytes of stack each", round, bytes), func() bool {
			return (stackBytes()-before)/streams <= bytes || poolSlack > 0 // the race detector's frames are larger
		})
	}
	if n := x.metric("felix_published_records_total"); int(n) != 2*streams {
		t.Errorf("%v records were published", n)
	}
}

// A connection looks after its lanes only while one of them was busy, and those that are used meanwhile keep their goroutine.
func TestAConnectionLooksAfterItsLanesOnlyUntilTheyRest(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x := open(t, setting{clock: clock})
	before := clock.Pending()
	c := x.connect()
	idle, used := dial(t, c, today()), dial(t, c, today())
	armed := clock.Pending()
	for range 5 { // a look each
		clock.Advance(restAfter)
		used.publish("orders", "a")
		if n := clock.Pending(); n != armed {
			t.Errorf("%d timers are armed while a lane is used, %d before", n, armed)
		}
	}
	clock.Advance(2 * restAfter)
	if n := clock.Pending(); n != armed-1 {
		t.Errorf("%d timers are armed when all lanes rest, %d before the connection and %d while one was used", n, before, armed)
	}
	for _, l := range []*line{idle, used} {
		l.publish("orders", "b")
	}
	if n := clock.Pending(); n != armed {
		t.Errorf("%d timers are armed when lanes are used again, and %d were", n, armed)
	}
}

// Half a request is there when the lane rests, and the other half comes later; what is open on it is answered in order.
func TestALaneRestsInTheMiddleOfAFrameAndOverWhatIsOpen(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x, _ := durable(t, setting{clock: clock})
	l := dial(t, x.connect(), today())
	entered := x.sabotage.hold("orders/0")
	l.raw(batchTo("orders", 1, wire.AckPerBatch, "a"))
	want(t, entered, "the shard stands still")
	x.counts("felix_published_records_total", 1)
	second := batchTo("orders", 2, wire.AckPerBatch, "b")
	for _, part := range [][]byte{second[:5], second[5:]} {
		clock.Advance(2 * restAfter)
		l.raw(part)
	}
	x.counts("felix_published_records_total", 2)
	clock.Advance(2 * restAfter)
	x.sabotage.release()
	for i := range uint64(2) {
		if f := l.next(); f.ack.RequestID != i+1 || f.ack.Refusal != nil || f.ack.Offset != id.Offset(i) {
			t.Errorf("answer %d: %+v", i, f.ack)
		}
	}
	x.balanced()
}
