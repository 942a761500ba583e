package shardactor

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage/vfs"
)

// setClock is a clock as a machine has it: timers and differences go by a monotonic clock, which moves when it is told to, and the wall clock
// beside it can be set.
type setClock struct {
	*actors.ManualClock
	ahead atomic.Int64 // nanoseconds by which the wall clock was set
}

// newSetClock returns a clock that stands at the beginning of a millisecond.
func newSetClock() *setClock {
	now := time.Now()
	return &setClock{ManualClock: actors.NewManualClock(now.Add(-time.Duration(now.Nanosecond() % int(time.Millisecond))))}
}

// Now is the time that is seen: its difference to an earlier one is what passed, whatever the wall clock was set to in between.
func (c *setClock) Now() time.Time {
	return withWall(c.ManualClock.Now(), time.Duration(c.ahead.Load()))
}

// set sets the wall clock forward, or back.
func (c *setClock) set(by time.Duration) { c.ahead.Add(int64(by)) }

// withWall is t with another wall clock and the same monotonic reading, which only the runtime makes otherwise: the first word of a Time with
// such a reading is a flag, 33 bits of seconds and 30 of nanoseconds.
func withWall(t time.Time, by time.Duration) time.Time {
	const nanoBits, flag = 30, 1 << 63
	word := (*uint64)(unsafe.Pointer(&t))
	nanos := int64(*word&(1<<nanoBits-1)) + int64(by%time.Second)
	seconds := int64(*word&^uint64(flag)>>nanoBits) + int64(by/time.Second)
	for ; nanos < 0; nanos += int64(time.Second) {
		seconds--
	}
	for ; nanos >= int64(time.Second); nanos -= int64(time.Second) {
		seconds++
	}
	*word = flag | uint64(seconds)<<nanoBits | uint64(nanos)
	return t
}

func TestAClockThatIsSetMeasuresWhatPassed(t *testing.T) {
	c := newSetClock()
	for _, by := range []time.Duration{time.Hour, -2 * time.Hour, 1, -1, 1500 * time.Millisecond, -700 * time.Millisecond} {
		before := c.Now()
		c.set(by)
		c.Advance(time.Millisecond)
		if after := c.Now(); after.Sub(before) != time.Millisecond || after.UnixNano()-before.UnixNano() != int64(by+time.Millisecond) {
			t.Fatalf("set by %v, it goes from %v to %v, %v later", by, before, after, after.Sub(before))
		}
	}
}

// timedWorld is a disk world whose wall clock can be set.
type timedWorld struct {
	*diskWorld
	time *setClock
}

func newTimedWorld(t testing.TB, clock *setClock, mem *vfs.Mem, change ...func(*diskSetup)) *timedWorld {
	t.Helper()
	build := func(t testing.TB, f func(*world, *HostOptions)) *world {
		return newWorldOn(t, clock.ManualClock, clock, f)
	}
	return &timedWorld{newDiskWorldOver(t, mem, build, change...), clock}
}

// millis is what the wall clock shows.
func (w *timedWorld) millis() uint64 { return uint64(w.time.Now().UnixMilli()) }

// turn lets the shard take a turn, after what its timers told it: it removes a key that is not there.
func (w *timedWorld) turn(h *Handle) {
	w.t.Helper()
	if a := ask(w.t, h, &CacheDelete{Key: "no such key"}); a.Refusal != nil || a.Found {
		w.t.Fatalf("%+v", a)
	}
}

// armed lets the shard take turns until its timer is armed for what it waits for, if that is ahead. A turn arms it after its answers have left, when
// the test may have moved the clock on, and leaves one alone that is armed for earlier.
func (w *timedWorld) armed(h *Handle) {
	w.t.Helper()
	w.turn(h)
	w.turn(h) // the one before is over
	w.time.Advance(0)
	w.turn(h) // one that was armed for what is past has rung
}

// pass lets time pass in small steps, and the shard work in each.
func (w *timedWorld) pass(h *Handle, d time.Duration) {
	w.t.Helper()
	const small = 10 * time.Millisecond
	for ; d > 0; d -= small {
		w.time.Advance(min(d, small))
		w.turn(h)
	}
}
