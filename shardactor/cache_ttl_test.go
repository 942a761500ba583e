package shardactor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// recordMargin is how long after its end the delete of an entry is written, when no more than reading.ExpirePass end together.
const recordMargin = reading.ExpireEvery

// putFor puts a value that lives so many milliseconds.
func putFor(t testing.TB, h *Handle, key string, ttlMillis uint64) id.Offset {
	t.Helper()
	a := ask(t, h, &CachePut{Key: key, Value: []byte(key), TTLMillis: ttlMillis, HasTTL: true})
	if a.Refusal != nil {
		t.Fatalf("put %s: %v", key, a.Refusal)
	}
	return a.Offset
}

// putMany puts many keys that live so many milliseconds, with many requests under way.
func putMany(t testing.TB, h *Handle, n int, key func(int) string, ttlMillis uint64) {
	t.Helper()
	const together = 500 // less than a mailbox holds
	for from := 0; from < n; from += together {
		r := newReplies()
		to := min(n, from+together)
		for i := from; i < to; i++ {
			m := &CachePut{Key: key(i), Value: []byte("v"), TTLMillis: ttlMillis, HasTTL: true}
			m.To(r, shardcore.Token(i))
			if err := h.Ref.TrySend(m, Size(m)); err != nil {
				t.Fatal(err)
			}
		}
		for i := from; i < to; i++ {
			if a := r.wait(t, shardcore.Token(i)); a.Refusal != nil {
				t.Fatalf("put %s: %v", key(i), a.Refusal)
			}
		}
	}
}

func withNumber(prefix string) func(int) string {
	return func(i int) string { return fmt.Sprint(prefix, i) }
}

// ends are the keys whose end is recorded at and after an offset, with the version that ended.
func ends(t testing.TB, h *Handle, from id.Offset) map[string]id.Offset {
	t.Helper()
	found := map[string]id.Offset{}
	_, end := h.History.Bounds()
	for from < end {
		page, err := h.History.Read(t.Context(), from, end, 256, 1<<20, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page {
			for r, err := range reading.Records(b.Body) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Op != reading.OpExpire {
					continue
				}
				if _, twice := found[string(r.Key)]; twice {
					t.Fatalf("the end of %s is recorded twice", r.Key)
				}
				found[string(r.Key)] = r.Version
			}
			from = b.End()
		}
	}
	return found
}

// tail is where the log of a shard ends for readers.
func tail(h *Handle) id.Offset {
	_, end := h.Log.Bounds()
	return end
}

// bothCaches runs a test on a log-backed cache and on one in memory.
func bothCaches(t *testing.T, test func(t *testing.T, w *timedWorld, h *Handle)) {
	t.Helper()
	t.Run("log-backed", func(t *testing.T) {
		w := newTimedWorld(t, newSetClock(), vfs.NewMem())
		test(t, w, w.cacheShard("users"))
	})
	t.Run("in memory", func(t *testing.T) {
		w := newTimedWorld(t, newSetClock(), vfs.NewMem())
		a := cache("users")
		w.desire(a)
		test(t, w, w.shard(a.Name, 0, nil))
	})
}

// life is what a test knows of an entry.
type life struct {
	there   bool
	version id.Offset
	end     uint64
	ended   bool // the clock has shown its end since it was put
}

// The clock is set forward and back at random, by little and by hours, while entries are put, removed and end. An entry is there exactly as
// long as the clock says, and one that was removed, by a client or because it had ended, never comes back.
//
// matrix G11, G12; field case CAC-04
func TestNoStepOfTheClockBringsAnEntryBack(t *testing.T) {
	bothCaches(t, func(t *testing.T, w *timedWorld, h *Handle) {
		rng := rand.New(rand.NewPCG(11, 12))
		lives := make([]life, 8)
		for step := range unlessRaced(3000, 800) {
			n := rng.IntN(len(lives))
			key, x := fmt.Sprint("k", n), &lives[n]
			switch rng.IntN(8) {
			case 0, 1, 2:
				ttl := []uint64{1, 10, 300, 5000, 60_000, 3_600_000}[rng.IntN(6)]
				now := w.millis()
				*x = life{there: true, version: putFor(t, h, key, ttl), end: now + ttl + 1}
			case 3:
				a := ask(t, h, &CacheDelete{Key: key})
				if live := x.there && w.millis() < x.end; a.Refusal != nil || a.Found != live && !(x.ended && !a.Found) {
					t.Fatalf("step %d: delete %s: %+v, %+v at %d", step, key, a, x, w.millis())
				}
				x.there = false
			case 4, 5, 6:
				w.time.Advance(time.Duration(rng.IntN(400)) * time.Millisecond)
			default:
				by := time.Duration(rng.Int64N(int64(200*time.Millisecond))) - 100*time.Millisecond
				if rng.IntN(2) == 0 {
					by = time.Duration(rng.Int64N(int64(4*time.Hour))) - 2*time.Hour
				}
				w.time.set(by)
			}
			for i := range lives {
				lives[i].ended = lives[i].ended || w.millis() >= lives[i].end
			}
			if rng.IntN(3) == 0 {
				w.turn(h)
			}
			for i := range lives {
				lives[i].check(t, h, fmt.Sprint("k", i), w.millis())
			}
		}
	})
}

// check looks an entry up as it is now, and notes it if its end was made final.
func (x *life) check(t *testing.T, h *Handle, key string, now uint64) {
	t.Helper()
	stands, any := h.Cache.Get(key, 0) // also when it has ended
	got, ok := h.Cache.Get(key, now)
	switch {
	case !x.there && (any || ok):
		t.Fatalf("%s was removed and is back: %+v", key, stands)
	case !x.there:
	case any && (stands.Version != x.version || stands.ExpiresAtMillis != x.end):
		t.Fatalf("%s is %+v, want %+v", key, stands, x)
	case !any && !x.ended:
		t.Fatalf("%s is gone, its end %d has not come: %d", key, x.end, now)
	case !any:
		x.there = false
	case ok && now >= x.end || !ok && now < x.end && !x.ended:
		t.Fatalf("at %d %s is there: %v, it ends at %d", now, key, ok, x.end)
	case ok && (got.ExpiresAtMillis <= now || got.ExpiresAtMillis > now+4*3_600_000+3_600_000):
		t.Fatalf("at %d %s says that it ends at %d", now, key, got.ExpiresAtMillis)
	}
}

// The clock jumps an hour forward: what ends in that hour is absent at once, and recorded within the time that a shard trusts its timers.
// The clock goes back: what was recorded stays gone, everything else lives on, and what is put from then on ends in its time.
//
// matrix G11
func TestAClockThatJumpsAnHourForwardAndBackEndsForGoodOnlyWhatWasRecorded(t *testing.T) {
	w := newTimedWorld(t, newSetClock(), vfs.NewMem(), func(x *diskSetup) { x.disk.RetentionInterval = 24 * time.Hour }) // the janitor tells it nothing
	h := w.cacheShard("users")
	minute := uint64(60_000)
	putFor(t, h, "half an hour", 30*minute)
	putFor(t, h, "two hours", 120*minute)
	w.time.Advance(5 * time.Minute) // until its log rests, and tells it nothing more
	w.armed(h)
	w.time.set(time.Hour)
	if got := w.lives(h, "half an hour", "two hours"); got != "[two hours]" {
		t.Fatalf("after the jump %s live", got)
	}
	w.time.set(-time.Hour) // nobody had a turn in between
	if got := w.lives(h, "half an hour", "two hours"); got != "[half an hour two hours]" {
		t.Fatalf("what was not recorded is back when the clock is: %s", got)
	}
	w.time.set(time.Hour)
	from := tail(h)
	w.time.Advance(reading.ClockLook) // no request comes: the shard looks by itself
	w.await("the end is recorded", func() bool { return tail(h) == from+1 })
	w.time.set(-time.Hour)
	putFor(t, h, "a second", 1000)
	for range 20 {
		w.pass(h, 100*time.Millisecond)
		if got := w.lives(h, "half an hour", "two hours"); got != "[two hours]" {
			t.Fatalf("after the way back %s live", got)
		}
	}
	w.await("the short one's end is recorded", func() bool { return len(ends(t, h, from)) == 2 })
	if _, any := h.Cache.Get("a second", 0); any {
		t.Fatal("what was put after the way back has not ended")
	}
	w.time.Advance(113*time.Minute - 2*time.Second)
	if got := w.lives(h, "two hours"); got != "[two hours]" {
		t.Fatal("two hours have not passed")
	}
	w.time.Advance(time.Minute + time.Millisecond)
	if got := w.lives(h, "two hours"); got != "[]" {
		t.Fatal("two hours have passed")
	}
}

// The clock jumps an hour forward while the shard waits for its next look. What is put from then on is removed in its time, and no request has to come.
//
// matrix G11; field case CAC-05
func TestAfterAClockJumpedForwardAnEndIsStillRecordedInItsTime(t *testing.T) {
	bothCaches(t, func(t *testing.T, w *timedWorld, h *Handle) {
		putFor(t, h, "three hours", 3*3_600_000)
		w.armed(h) // for its next look
		w.time.set(time.Hour)
		putFor(t, h, "a second", 1000)
		w.armed(h)
		w.time.Advance(time.Second + time.Millisecond + recordMargin)
		w.await("it is removed", func() bool { _, any := h.Cache.Get("a second", 0); return !any })
	})
}

// lives are those keys that are there now.
func (w *timedWorld) lives(h *Handle, keys ...string) string {
	list := []string{}
	for _, k := range keys {
		if _, ok := h.Cache.Get(k, w.millis()); ok {
			list = append(list, k)
		}
	}
	return fmt.Sprint(list)
}

// The clock steps back during a life: that entry lives longer by the step, to the millisecond.
//
// matrix G12
func TestAClockThatStepsBackLengthensALifeByTheStep(t *testing.T) {
	bothCaches(t, func(t *testing.T, w *timedWorld, h *Handle) {
		putFor(t, h, "k", 10_000)
		w.pass(h, 4*time.Second)
		w.time.set(-7 * time.Second)
		for range 13 {
			w.pass(h, time.Second)
			if got := w.lives(h, "k"); got != "[k]" {
				t.Fatal("it ended early")
			}
		}
		w.time.Advance(time.Millisecond)
		if got := w.lives(h, "k"); got != "[]" {
			t.Fatal("it outlived the step")
		}
	})
}

// A minute of the smallest steps both ways: nothing ends more than a millisecond and the steps away from its time, and nothing is recorded
// before its end.
//
// matrix G11, G12; field case CAC-08 (the record)
func TestSmallStepsOfTheClockMoveAnEndByNoMoreThanThemselves(t *testing.T) {
	w := newTimedWorld(t, newSetClock(), vfs.NewMem())
	h := w.cacheShard("users")
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range unlessRaced(100, 25) {
		key, from := fmt.Sprint("k", i), tail(h)
		ttl := 20 + rng.Uint64N(500)
		begun := w.millis()
		putFor(t, h, key, ttl)
		for w.millis() < begun+ttl {
			if got := w.lives(h, key); got == "[]" || tail(h) != from+1 {
				t.Fatalf("at %d %s lives, the log grew by %d; it was put at %d for %d", w.millis(), got, tail(h)-from, begun, ttl)
			}
			if rng.IntN(10) == 0 {
				w.time.set(time.Duration(rng.IntN(7)-3) * time.Millisecond)
			}
			w.pass(h, time.Duration(1+rng.IntN(5))*time.Millisecond)
		}
		w.pass(h, recordMargin+time.Millisecond)
		w.await("the end is recorded", func() bool { return tail(h) == from+2 })
	}
}

// field case CAC-01, CAC-03 (one broker), matrix G1, G10
func TestCAC01_AnEndIsWhereItWasPutWhateverHappensToTheBroker(t *testing.T) {
	clock, mem := newSetClock(), vfs.NewMem()
	w := newTimedWorld(t, clock, mem)
	h := w.cacheShard("users")
	begun := w.millis()
	putFor(t, h, "k", 10_000)
	putFor(t, h, "while it is down", 9500)
	for range 3 { // killed after 3, 6 and 9 seconds
		w.pass(h, 3*time.Second)
		mem = mem.Clone()
		w.stop()
		w = newTimedWorld(t, clock, mem)
		h = w.cacheShard("users")
		if v, ok := h.Cache.Get("k", w.millis()); !ok || v.ExpiresAtMillis != begun+10_001 {
			t.Fatalf("%+v, %v", v, ok)
		}
	}
	image := mem.Clone()
	w.stop()
	clock.Advance(600 * time.Millisecond)
	w = newTimedWorld(t, clock, image)
	h = w.cacheShard("users")
	if got := w.lives(h, "k", "while it is down"); got != "[k]" { // G10: at the first look
		t.Fatalf("%s live", got)
	}
	from := id.Offset(2)
	w.turn(h)
	w.await("the end is recorded", func() bool { return tail(h) == from+1 }) // by the next pass
	for w.millis() < begun+10_000 {
		if got := w.lives(h, "k"); got != "[k]" {
			t.Fatalf("it ended %d ms early", begun+10_000-w.millis())
		}
		w.pass(h, 10*time.Millisecond)
	}
	w.pass(h, time.Millisecond)
	if got := w.lives(h, "k"); got != "[]" {
		t.Fatal("it did not end")
	}
	w.pass(h, recordMargin)
	w.await("the end is recorded", func() bool { return len(ends(t, h, 0)) == 2 })
}

// Many keys end in the same second, and no pass removes any: none is seen by any kind of read. Their removal is announced once each.
//
// field case CAC-02; matrix G13
func TestCAC02_WhatHasEndedIsSeenByNobody(t *testing.T) {
	keys := unlessRaced(10_000, 3000)
	w := newTimedWorld(t, newSetClock(), vfs.NewMem())
	h := w.cacheShard("users")
	if a := ask(t, h, &CachePut{Key: "lasts", Value: make([]byte, 1<<20), TTLMillis: 1 << 40, HasTTL: true}); a.Refusal != nil { // and keeps compaction away
		t.Fatal(a.Refusal)
	}
	putMany(t, h, keys, withNumber("k"), 1000)
	versions := map[string]id.Offset{}
	for i := range keys {
		key := fmt.Sprint("k", i)
		v, _ := h.Cache.Get(key, 0)
		versions[key] = v.Version
	}
	from := tail(h)                              // before the clock is set: the turn that answered the last put may still look at it
	w.time.set(time.Second + 2*time.Millisecond) // no timer tells the shard
	now := w.millis()
	for i := range keys {
		if _, ok := h.Cache.Get(fmt.Sprint("k", i), now); ok {
			t.Fatalf("k%d is read", i)
		}
	}
	if list, ok := h.Keyed.Current(nil, now, math.MaxInt, math.MaxInt); len(list) != 1 || !ok {
		t.Fatalf("%d entries are listed, %v", len(list), ok)
	}
	if a := ask(t, h, &CachePutIf{Key: "k0", Value: []byte("no"), HasVersion: true, Version: versions["k0"]}); a.Applied || a.HasVersion {
		t.Fatalf("put if it has the version that ended: %+v", a)
	}
	if a := ask(t, h, &CacheDeleteIf{Key: "k1", Version: versions["k1"]}); a.Applied || a.HasVersion {
		t.Fatalf("delete of the version that ended: %+v", a)
	}
	if a := ask(t, h, &CacheDelete{Key: "k2"}); a.Found {
		t.Fatalf("delete of what has ended: %+v", a)
	}
	if a := ask(t, h, &CachePutIf{Key: "k3", Value: []byte("yes")}); !a.Applied {
		t.Fatalf("put if absent: %+v", a)
	}
	w.await("all ends are recorded", func() bool {
		w.time.Advance(reading.ExpireEvery)
		w.turn(h)
		return h.Keyed.Index().Stats().Expiring == 1
	})
	w.turn(h) // in the turn that removes a key its record becomes readable a moment later
	found := ends(t, h, from)
	if len(found) != keys-1 && len(found) != keys { // whether the pass or the put of k3 was first
		t.Fatalf("%d ends are recorded", len(found))
	}
	for key, version := range found {
		if versions[key] != version {
			t.Fatalf("%s ended with version %d, it had %d", key, version, versions[key])
		}
	}
	if got := w.lives(h, "k3", "lasts"); got != "[k3 lasts]" {
		t.Fatalf("%s live", got)
	}
}

// A hundred thousand keys end at once: absent at once, deleted at 1024 a second, and writes are answered meanwhile, each within a turn.
//
// matrix G13
func TestAHundredThousandKeysThatEndAtOnceHoldNobodyUp(t *testing.T) {
	keys := 100_000
	if testing.Short() {
		keys = unlessRaced(20_000, 5000)
	}
	w := newTimedWorld(t, newSetClock(), vfs.NewMem(), func(x *diskSetup) { x.store.SegmentBytes = 4 << 20 })
	h := w.cacheShard("users")
	putMany(t, h, keys, withNumber("k"), 1000_000)
	w.time.set(1000*time.Second + time.Millisecond)
	for i := range keys {
		if _, ok := h.Cache.Get(fmt.Sprint("k", i), w.millis()); ok {
			t.Fatalf("k%d is read", i)
		}
	}
	left := func() int { return h.Keyed.Index().Stats().Expiring }
	passes := 0
	for want := keys; want > 0; passes++ {
		put(t, h, "other", fmt.Sprint(passes)) // answered while the clock stands; its turn may begin the first pass
		want = max(0, want-reading.ExpirePass)
		w.await("a pass is recorded", func() bool { return left() <= want })
		if n := left(); n != want {
			t.Fatalf("a pass left %d, want %d: more than %d at once", n, want, reading.ExpirePass)
		}
		w.time.Advance(reading.ExpireEvery)
	}
	if least := keys / 1024 * int(time.Second/reading.ExpireEvery); passes < least {
		t.Fatalf("%d passes for %d keys", passes, keys)
	}
}

// As many in memory: absent at once, and removed a bounded number a turn.
//
// matrix G13
func TestInMemoryManyKeysThatEndAtOnceAreRemovedInTurns(t *testing.T) {
	keys := unlessRaced(20_000, 6000)
	w := newTimedWorld(t, newSetClock(), vfs.NewMem())
	a := cache("users")
	w.desire(a)
	h := w.shard(a.Name, 0, nil)
	putMany(t, h, keys, withNumber("k"), 1000)
	w.time.set(2 * time.Second)
	for i := range keys {
		if _, ok := h.Cache.Get(fmt.Sprint("k", i), w.millis()); ok {
			t.Fatalf("k%d is read", i)
		}
	}
	m := h.Cache.(*reading.MemoryCache)
	w.time.Advance(reading.ClockLook)
	for m.Len() > 0 {
		before := m.Len()
		w.turn(h)
		if gone := before - m.Len(); gone > 4*reading.MemoryExpirePass {
			t.Fatalf("%d were removed around one turn", gone)
		}
		w.time.Advance(0)
	}
}

// What an entry says of its end only comes nearer, and is within the time that it was given; across its end, a restart, and a renewal in the
// last millisecond.
//
// field case CAC-04; there is no answer with a remaining time: its end is in what watches tell
func TestCAC04_TheEndThatIsToldIsNeverOutOfRange(t *testing.T) {
	const ttl = 2000
	keys := unlessRaced(1000, 200)
	clock, mem := newSetClock(), vfs.NewMem()
	w := newTimedWorld(t, clock, mem)
	h := w.cacheShard("users")
	begun := w.millis()
	putMany(t, h, keys, withNumber("k"), ttl)
	w.time.Advance((ttl - 50) * time.Millisecond)
	renewed := false
	for w.millis() <= begun+ttl+50 {
		switch now := w.millis(); {
		case now == begun+ttl-20:
			image := mem.Clone()
			w.stop()
			w, mem = newTimedWorld(t, clock, image), image
			h = w.cacheShard("users")
		case now == begun+ttl && !renewed:
			renewed = true
			putFor(t, h, "k7", ttl)
		}
		now := w.millis()
		for i := range keys {
			v, ok := h.Cache.Get(fmt.Sprint("k", i), now)
			switch left := int64(v.ExpiresAtMillis) - int64(now); {
			case !ok && (now <= begun+ttl || i == 7 && renewed):
				t.Fatalf("k%d is absent at %d of %d", i, now-begun, ttl)
			case ok && (left <= 0 || left > ttl+1):
				t.Fatalf("k%d has %d ms left of %d", i, left, ttl)
			case ok && i != 7 && v.ExpiresAtMillis != begun+ttl+1:
				t.Fatalf("the end of k%d moved to %d", i, v.ExpiresAtMillis)
			}
		}
		w.time.Advance(time.Millisecond)
	}
	for _, text := range stored(t, h) {
		r, err := reading.DecodeRecord([]byte(text))
		if err != nil || r.ExpiresAtMillis > w.millis()+ttl+1 {
			t.Fatalf("a record says %+v: %v", r, err)
		}
	}
}

// A short life among long ones, in an empty cache, right after a pass and right before one: over in its time, and announced within the margin.
//
// field case CAC-05
func TestCAC05_AShortLifeIsAnnouncedInTime(t *testing.T) {
	long := 100_000
	if testing.Short() {
		long = unlessRaced(20_000, 3000)
	}
	w := newTimedWorld(t, newSetClock(), vfs.NewMem(), func(x *diskSetup) { x.store.SegmentBytes = 4 << 20 })
	h := w.cacheShard("users")
	short := func(what string) {
		t.Helper()
		from := tail(h)
		putFor(t, h, "short", 1000)
		w.pass(h, time.Second)
		if got := w.lives(h, "short"); got != "[short]" || tail(h) != from+1 {
			t.Fatalf("%s: it ended early: %s", what, got)
		}
		w.pass(h, time.Millisecond)
		if got := w.lives(h, "short"); got != "[]" {
			t.Fatalf("%s: it is still there", what)
		}
		w.pass(h, recordMargin)
		w.await(what+": it is announced", func() bool { return tail(h) == from+2 })
	}
	short("empty")
	putMany(t, h, long, withNumber("long"), 3_600_000)
	short("among long ones")
	for _, after := range []time.Duration{0, time.Millisecond, recordMargin - time.Millisecond} { // after a pass
		putFor(t, h, "before", 1)
		w.pass(h, recordMargin+10*time.Millisecond)
		w.await("a pass", func() bool { _, any := h.Cache.Get("before", 0); return !any })
		w.turn(h) // it is readable too
		w.time.Advance(after)
		short(fmt.Sprint(after, " after a pass"))
	}
}

// The times to live at the ends of their range.
//
// field case CAC-07; negative ones do not exist on the wire
func TestCAC07_EveryTimeToLiveHasItsMeaning(t *testing.T) {
	const day = 24 * 3_600_000
	const last = 253402300799999 // of the year 9999
	clock, mem := newSetClock(), vfs.NewMem()
	w := newTimedWorld(t, clock, mem)
	now := w.millis()
	cases := []struct {
		ttl, end uint64
	}{
		{0, now}, {1, now + 2}, {30*day - 1000, now + 30*day - 999}, {30*day + 1000, now + 30*day + 1001}, {36525 * day, now + 36525*day + 1},
		{last - now - 1, last}, {last - now, last}, {math.MaxInt64, last}, {math.MaxUint64 - now - 1, last}, {math.MaxUint64 - now, last}, {math.MaxUint64 - 1, last}, {math.MaxUint64, last},
	}
	kept := cache("in memory")
	want := durableCache("users")
	w.desire(kept, want)
	check := func(h *Handle) {
		t.Helper()
		for i, c := range cases {
			v, ok := h.Cache.Get(fmt.Sprint("k", i), w.millis())
			if alive := w.millis() < c.end; ok != alive || ok && v.ExpiresAtMillis != c.end {
				t.Errorf("time to live %d: there %v until %d, want until %d", c.ttl, ok, v.ExpiresAtMillis, c.end)
			}
			if _, any := h.Cache.Get(fmt.Sprint("k", i), 0); !any && c.end > w.millis() {
				t.Errorf("time to live %d: it is removed", c.ttl)
			}
		}
	}
	h, m := w.target(want.Name, 0, func(x Target) bool { return x.Shard != nil }).Shard, w.shard(kept.Name, 0, nil)
	for i, c := range cases {
		putFor(t, h, fmt.Sprint("k", i), c.ttl)
		putFor(t, m, fmt.Sprint("k", i), c.ttl)
	}
	check(h)
	check(m)
	w.pass(h, time.Second)
	check(h)
	check(m)
	image := mem.Clone()
	w.stop()
	w = newTimedWorld(t, clock, image)
	h = w.cacheShard("users")
	check(h)
	w.time.set(29*24*time.Hour + 12*time.Hour)
	w.turn(h)
	check(h)
	w.time.set(12*time.Hour - time.Second)
	w.turn(h)
	check(h)
}

// The smallest time to live, put at any phase of a millisecond: it is not cut to nothing.
//
// field case CAC-08
func TestCAC08_AMillisecondIsAWholeOne(t *testing.T) {
	puts := 10_000
	if testing.Short() {
		puts = unlessRaced(1000, 300)
	}
	bothCaches(t, func(t *testing.T, w *timedWorld, h *Handle) {
		rng := rand.New(rand.NewPCG(8, 8))
		for i := range puts {
			w.time.Advance(time.Duration(rng.IntN(2_000_000)))
			begun := w.time.Now()
			key := fmt.Sprint("k", i%7)
			putFor(t, h, key, 1)
			w.time.Advance(time.Duration(rng.IntN(200_000)))
			if got := w.lives(h, key); got == "[]" {
				t.Fatalf("put %d, at %v of a millisecond: absent %v later", i, begun.Nanosecond()%1e6, w.time.Now().Sub(begun))
			}
			if i%100 == 0 {
				w.time.Advance(begun.Add(time.Millisecond - 1).Sub(w.time.Now()))
				if got := w.lives(h, key); got == "[]" {
					t.Fatalf("put %d: absent %v later", i, w.time.Now().Sub(begun))
				}
				w.time.Advance(time.Millisecond + 1)
				if got := w.lives(h, key); got != "[]" {
					t.Fatalf("put %d: there %v later", i, w.time.Now().Sub(begun))
				}
			}
		}
	})
}

// The end comes while a put of the same key waits for the disk: the pass that has selected the old value leaves the new one alone.
//
// matrix G9
func TestAPutThatIsOnItsWayIsNotTakenForTheEntryThatEnds(t *testing.T) {
	w := newTimedWorld(t, newSetClock(), vfs.NewMem())
	h := w.cacheShard("users")
	putFor(t, h, "k", 1000)
	rule := w.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Block: true})
	r := newReplies()
	m := &CachePut{Key: "k", Value: []byte("new"), TTLMillis: 60_000, HasTTL: true}
	m.To(r, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	<-rule.Reached()
	w.pass(h, 2*time.Second)
	if got := w.lives(h, "k"); got != "[]" {
		t.Fatal("the old value has not ended, and the new one is not durable")
	}
	rule.Release()
	rule.Remove()
	if a := r.wait(t, 1); a.Refusal != nil {
		t.Fatal(a.Refusal)
	}
	w.pass(h, 2*time.Second)
	if v, ok := h.Cache.Get("k", w.millis()); !ok || string(v.Value) != "new" || tail(h) != 2 {
		t.Fatalf("%+v, %v; the log ends at %d", v, ok, tail(h))
	}
}
