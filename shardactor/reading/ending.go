package reading

import "time"

// Entries of a log-backed cache that have ended are absent for readers at once; their deletes follow, as records that watches see, at most
// ExpirePass of them every ExpireEvery: a thousand a second, so that many that end together do not hold up writes.
const (
	ExpirePass  = 256
	ExpireEvery = 250 * time.Millisecond
	// ClockLook is how long a shard whose entries end may trust that the wall clock goes as timers do: when it was set forward, ends that it
	// went over are met by then.
	ClockLook = time.Minute
	// ExpireRetry is the pause after deletes that could not be written.
	ExpireRetry = time.Second
	// expireBatch bounds one batch of such deletes in records and in bytes, as one publish is bounded.
	expireBatch      = 64
	expireBatchBytes = 64 << 10
)

// Ending decides when the ends of entries are written, and in which batches. One pass at a time is under way: the next begins after the outcome
// of each of its batches, and ExpireEvery after its begin.
type Ending struct {
	open int       // batches without an outcome
	next time.Time // no pass before
}

// Due reports whether a pass is to begin now, the first end being at endMillis if any entry ends at all. If not, again is when to ask once more:
// zero if that will be after an outcome, or when an entry comes that ends.
func (x *Ending) Due(now time.Time, endMillis uint64, any bool) (due bool, again time.Time) {
	if x.open > 0 || !any {
		return false, time.Time{}
	}
	// An end is known by the wall clock, and when the last pass began by what has passed since: as times the two cannot be compared.
	if left := max(leftUntil(now, endMillis), x.next.Sub(now)); left > 0 {
		return false, lookIn(now, left)
	}
	x.next = now.Add(ExpireEvery)
	return true, time.Time{}
}

// leftUntil is how far ahead of now an end is, by the wall clock.
func leftUntil(now time.Time, endMillis uint64) time.Duration {
	return time.UnixMilli(int64(endMillis)).Sub(now)
}

// lookIn is when to look whether what is left has passed: at the latest when the clock may have been set. It goes by what passes from now on, as
// timers do, whatever the wall clock is set to: who compares it with other times of that kind finds the earlier one.
func lookIn(now time.Time, left time.Duration) time.Time { return now.Add(min(left, ClockLook)) }

// Batches splits the deletes of a pass into batches, each of which has an outcome from now on.
func (x *Ending) Batches(list []Record) (batches [][]Record) {
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && n < expireBatch && (n == 0 || bytes+len(list[n].Key) <= expireBatchBytes) {
			bytes += len(list[n].Key)
			n++
		}
		batches = append(batches, list[:n:n])
		list = list[n:]
	}
	x.open += len(batches)
	return batches
}

// Outcome notes what became of a batch: whether it could not be written.
func (x *Ending) Outcome(refused bool) {
	if x.open == 0 {
		panic("reading: an outcome of a batch of ends that nobody made")
	}
	x.open--
	if refused {
		x.next = x.next.Add(ExpireRetry)
	}
}

// Next is when the next pass may begin, for who made no batch in this one; zero while one is under way.
func (x *Ending) Next() time.Time {
	if x.open > 0 {
		return time.Time{}
	}
	return x.next
}

// MemoryExpirePass is how many ended entries of an in-memory cache one turn removes: a bound on how long a pass keeps the cache locked.
const MemoryExpirePass = 1024

// MemoryEnding decides when ended entries of an in-memory cache are removed.
type MemoryEnding struct {
	next uint64 // when the next entry ends, in milliseconds since the Unix epoch; 0 is never
}

// Put notes the end of an entry that was put, 0 for none.
func (m *MemoryEnding) Put(endMillis uint64) {
	if endMillis != 0 && (m.next == 0 || endMillis < m.next) {
		m.next = endMillis
	}
}

// Due reports whether entries are to be removed now; if not, again is when to ask once more, zero for when an entry comes that ends.
func (m *MemoryEnding) Due(now time.Time) (due bool, again time.Time) {
	if m.next == 0 {
		return false, time.Time{}
	}
	if left := leftUntil(now, m.next); left > 0 {
		return false, lookIn(now, left)
	}
	return true, time.Time{}
}

// Passed notes when the next entry ends after a pass, 0 for never, and returns when to ask again.
func (m *MemoryEnding) Passed(now time.Time, nextMillis uint64) (again time.Time) {
	if m.next = nextMillis; nextMillis == 0 {
		return time.Time{}
	}
	return lookIn(now, leftUntil(now, nextMillis))
}
