package sessionactor

import (
	"fmt"
	"runtime"
	"runtime/debug"
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

// mission 245: what waits costs what it takes to wait, not what its last request took. How large a stack is that a goroutine begins with is decided
// at each collection, by what all goroutines used in that moment: one in the middle of a round gives all that rest after it twice as much, and so may
// what ran before this test. Then another round shows what they take.
func TestStreamsThatRestKeepTheSmallestStackAndAreServedAfterwards(t *testing.T) {
	const streams, bytes, rounds = 500, 2<<10 + 512, 2 // the smallest stack of a goroutine, and what others have
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	x := open(t, setting{})
	c := x.connect(func(c *memConn) { c.window = 4 << 10 })
	before := stackBytes()
	var all []*line
	for range streams {
		all = append(all, dial(t, c, today()))
	}
	each := func() int64 { return (stackBytes() - before) / streams }
	small, round := 0, 0
	for began := time.Now(); small < rounds; round++ {
		for i, l := range all {
			l.publish("orders", fmt.Sprintf("%d.%d", round, i))
		}
		over, look := time.After(time.Second), time.NewTicker(20*time.Millisecond)
		for waits := true; waits && poolSlack == 0 && each() > bytes; { // the race detector's frames are larger
			select {
			case <-look.C:
			case <-over:
				waits = false
			}
		}
		look.Stop()
		if poolSlack > 0 || each() <= bytes {
			small++
		} else if time.Since(began) > patience {
			t.Fatalf("in %d rounds streams that rest take %d bytes of stack each, want %d", round+1, each(), bytes)
		}
	}
	if n := x.metric("felix_published_records_total"); int(n) != round*streams {
		t.Errorf("%v records were published in %d rounds", n, round)
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
