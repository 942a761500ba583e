package reading

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Entries end, outcomes come or are refusals, and the clock goes: no two passes are under way, they begin ExpireEvery apart at least and never
// before an end, each batch is bounded, and all that ends is passed in time.
func TestPassesOfEndsAreBoundedAndMissNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Ending
		now := time.UnixMilli(1_000_000)
		last, retry := time.Time{}, time.Time{} // when the last pass began; no pass before
		open := 0
		end := uint64(now.UnixMilli())
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			any := rapid.IntRange(0, 5).Draw(t, "any") > 0
			due, again := x.Due(now, end, any)
			switch {
			case open > 0 || !any:
				if due || !again.IsZero() {
					t.Fatalf("with %d batches under way, and any end %v: due %v, again %v", open, any, due, again)
				}
			case due:
				if now.Before(time.UnixMilli(int64(end))) || !last.IsZero() && now.Sub(last) < ExpireEvery || now.Before(retry) {
					t.Fatalf("a pass at %v, the end is %d, the last was at %v, none before %v", now, end, last, retry)
				}
				last, retry = now, time.Time{}
				var list []Record
				for i := range rapid.IntRange(0, ExpirePass).Draw(t, "ended") {
					list = append(list, Record{Op: OpExpire, Key: make([]byte, rapid.SampledFrom([]int{1, 100, 40_000, 70_000}).Draw(t, "key")), Version: 0})
					list[i].Key[0] = byte(i)
				}
				checkBatches(t, x.Batches(list), list, &open)
				if next := x.Next(); open > 0 != next.IsZero() || open == 0 && next != now.Add(ExpireEvery) {
					t.Fatalf("the next pass is at %v", next)
				}
			case !again.After(now):
				t.Fatalf("not due at %v, and to be asked again at %v", now, again)
			case again.Sub(now) > ClockLook:
				t.Fatalf("to be asked again in %v, and the clock may be set", again.Sub(now))
			case !again.Before(time.UnixMilli(int64(end)).Add(ExpireEvery+ExpirePass*ExpireRetry)) && again.Sub(now) != ClockLook:
				t.Fatalf("the end is %d, and it is asked at %v", end, again)
			}
			if open > 0 && rapid.Bool().Draw(t, "outcome") {
				refused := rapid.IntRange(0, 3).Draw(t, "refused") == 0
				x.Outcome(refused)
				if open--; refused {
					retry = last.Add(ExpireEvery + ExpireRetry)
				}
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			end = uint64(now.UnixMilli() + int64(rapid.SampledFrom([]int{-1000, 0, 1, 300, 100_000}).Draw(t, "end")))
		}
	})
}

func checkBatches(t *rapid.T, batches [][]Record, list []Record, open *int) {
	n := 0
	for _, b := range batches {
		bytes := 0
		for _, r := range b {
			if &r.Key[0] != &list[n].Key[0] {
				t.Fatalf("record %d is another", n)
			}
			n++
			bytes += len(r.Key)
		}
		if len(b) == 0 || len(b) > expireBatch || len(b) > 1 && bytes > expireBatchBytes {
			t.Fatalf("a batch of %d records and %d bytes", len(b), bytes)
		}
	}
	if n != len(list) {
		t.Fatalf("%d of %d records are in batches", n, len(list))
	}
	*open = len(batches)
}

func TestEndsInMemoryAreMetWhenTheyComeAndWhenTheClockWasSet(t *testing.T) {
	at := func(millis int64) time.Time { return time.UnixMilli(millis) }
	var m MemoryEnding
	ask := func(millis int64) string {
		due, again := m.Due(at(millis))
		if again.IsZero() {
			return fmt.Sprint(due)
		}
		return fmt.Sprint(due, " ", again.UnixMilli())
	}
	look := ClockLook.Milliseconds()
	for i, c := range []struct {
		do   func()
		at   int64
		want string
	}{
		{func() {}, 0, "false"},
		{func() { m.Put(0) }, 0, "false"},
		{func() { m.Put(500) }, 0, "false 500"},
		{func() { m.Put(900) }, 499, "false 500"},
		{func() { m.Put(uint64(10 * look)) }, 500, "true"},
		{func() { m.Passed(at(500), 900) }, 500, "false 900"},
		{func() { m.Passed(at(900), uint64(10*look)) }, 900, fmt.Sprint("false ", 900+look)},
		{func() {}, 10 * look, "true"},
		{func() { m.Passed(at(10*look), 0) }, 10 * look, "false"},
	} {
		if c.do(); ask(c.at) != c.want {
			t.Fatalf("step %d, at %d: %s, want %s", i, c.at, ask(c.at), c.want)
		}
	}
}
