package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// cacheRead is one look at a key: by a get, or by whatever answers what was there.
type cacheRead struct {
	key    *cacheKey
	by     *cacheWrite // nil: a get
	sent   int
	sentMS int64
	floor  *cacheChange // newest change that anybody had been told of before it was sent; nil if there is none
	told   id.Offset    // the same of versions
}

func (k *cacheKey) look(by *cacheWrite) *cacheRead {
	run := k.shard.book.run
	return &cacheRead{key: k, by: by, sent: run.world.Steps(), sentMS: run.wallMS(), floor: k.newest(), told: k.told}
}

// found judges that the key had the value of w.
func (g *cacheRead) found(w *cacheWrite) error {
	k := g.key
	if x := k.between(w, g); x != nil {
		return fmt.Errorf("%s: saw value %x, which was replaced by the %s of step %d, known since %d", k, w.value, x.what, x.sent, x.done)
	}
	if end, known := w.latestEnd(); known && g.sentMS >= end {
		return fmt.Errorf("%s: saw value %x at %d, which ended at %d", k, w.value, g.sentMS, end)
	}
	return nil
}

// version judges that the key had a version.
func (g *cacheRead) version(version id.Offset) error {
	k := g.key
	if f := g.floor; f != nil && (version < f.at || version == f.at && f.write == nil) {
		return fmt.Errorf("%s: saw version %d, and %s was known at %d before", k, version, f, f.at)
	}
	if version < g.told {
		return fmt.Errorf("%s: saw version %d, and it had version %d before", k, version, g.told)
	}
	c := k.shard.at[version]
	if c == nil {
		return nil
	}
	if c.key != k || c.write == nil {
		return fmt.Errorf("%s: saw version %d, which is %s", k, version, c)
	}
	return g.found(c.write)
}

// had judges a version that the key was said to have, and keeps it in mind.
func (g *cacheRead) had(version id.Offset) error {
	k := g.key
	if other := k.shard.versions[version]; other != nil && other != k {
		return fmt.Errorf("%s: saw version %d, which is one of %s", k, version, other)
	}
	k.shard.versions[version], k.told = k, max(k.told, version)
	return g.version(version)
}

// none judges that the key had no live value: there is something that may have removed it, and nothing that is known to have come after.
func (g *cacheRead) none() error {
	k := g.key
	now := k.shard.book.run.wallMS()
	if k.between(&cacheWrite{key: k, done: -1}, g) == nil { // it was never written
		return nil
	}
	for _, w := range k.writes {
		if w.refused || w == g.by || w.value != 0 && !w.mayHaveEnded(now) {
			continue
		}
		if k.between(w, g) == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: saw nothing at %d, and there is a value that nothing has removed", k, now)
}

// between returns a write that came after w for certain, and before g; nil if there is none.
func (k *cacheKey) between(w *cacheWrite, g *cacheRead) *cacheWrite {
	for _, x := range k.writes {
		if x != w && x != g.by && !x.refused && x.done < g.sent && w.done < x.sent {
			return x
		}
	}
	return nil
}

// latestEnd is when the value of a write has ended at the latest, on the node's clock.
func (w *cacheWrite) latestEnd() (ms int64, known bool) {
	if !w.ttl.Set {
		return 0, false
	}
	if c := w.change(); c != nil && c.ends.Set {
		return int64(c.ends.V), true
	}
	return w.doneMS + 1 + int64(w.ttl.V), w.done != never
}

// endsRight judges the instant at which a value is said to end: its time, from when it was claimed on, and less than a millisecond more.
func (w *cacheWrite) endsRight(millis uint64) error {
	least, most := w.sentMS+1+int64(w.ttl.V), w.key.shard.book.run.wallMS()+1+int64(w.ttl.V)
	if w.ttl.Set != (millis != 0) || w.ttl.Set && (int64(millis) < least || int64(millis) > most) {
		return fmt.Errorf("value %x was put to live %v ms, which is until %d at least, and it ends at %d", w.value, w.ttl, least, millis)
	}
	return nil
}

// mayHaveEnded reports whether the time of a value may be over.
func (w *cacheWrite) mayHaveEnded(now int64) bool {
	if !w.ttl.Set {
		return false
	}
	end := w.sentMS + int64(w.ttl.V)
	if c := w.change(); c != nil && c.ends.Set {
		end = int64(c.ends.V)
	}
	return now >= end
}

// change is the record of a write, nil if nobody has seen it.
func (w *cacheWrite) change() *cacheChange {
	if !w.at.Set {
		return nil
	}
	return w.key.shard.at[w.at.V]
}

// settle judges what is known of a key from an offset on, where nothing of it was missed: every change has somebody who made it, and every
// conditional write found what it asked for.
func (k *cacheKey) settle(from id.Offset) error {
	var before *cacheChange
	for _, c := range k.changes {
		if before != nil && before.at >= from {
			var err error
			if c.write == nil {
				err = k.removedBySomebody(before, c)
			} else if w := c.write; w.absent || w.version.Set {
				err = w.conditionHeld(before, c)
			}
			if err == nil && before.write != nil {
				err = k.took(before, c)
			}
			if err != nil {
				return fmt.Errorf("%s: at offset %d, after %d: %w", k, c.at, before.at, err)
			}
		}
		before = c
	}
	return nil
}

// removedBySomebody judges a removal: somebody asked for it, or the time of the value was over.
func (k *cacheKey) removedBySomebody(before, c *cacheChange) error {
	v := before.write
	if v == nil {
		return fmt.Errorf("what was removed is removed again")
	}
	for _, w := range k.writes {
		switch {
		case w.refused || w.value != 0 || w.sentMS > c.ms || w.version.Set && w.version.V != uint64(before.at):
		case w.answered && w.hasBefore && w.removed == v.value, w.answered && w.version.Set, !w.answered:
			return nil
		}
	}
	if v.ttl.Set && before.ends.Set && c.ms >= int64(before.ends.V) {
		k.shard.book.run.marks.hit(dmarkExpired)
		return nil
	}
	return fmt.Errorf("value %x was removed by nobody, and ends at %v (seen at %d)", v.value, before.ends, c.ms)
}

// conditionHeld judges a conditional put that is in the log.
func (w *cacheWrite) conditionHeld(before, c *cacheChange) error {
	ended := before.write == nil || before.write.ttl.Set && (!before.ends.Set || c.ms >= int64(before.ends.V))
	if w.absent && !ended {
		return fmt.Errorf("value %x was put if absent, and replaces value %x", w.value, before.write.value)
	}
	if w.version.Set && (before.write == nil || w.version.V != uint64(before.at)) {
		return fmt.Errorf("value %x was put if the version was %d, and it was not", w.value, w.version.V)
	}
	return nil
}

// took judges what followed a value that a delete has said to have taken away.
func (k *cacheKey) took(before, c *cacheChange) error {
	for _, w := range k.writes {
		took := w.hasBefore && w.removed == before.write.value || w.version.Set && w.version.V == uint64(before.at)
		if w.answered && w.value == 0 && took && c.write != nil {
			return fmt.Errorf("value %x was taken away by a %s, and is followed by %s", before.write.value, w.what, c)
		}
	}
	return nil
}

// outcomeOf reads what an answer to a cache request says of failure; refused is for certain. Neither done nor refused: nobody knows.
func (s *cacheShard) outcomeOf(a *dask, got answer) (done, refused bool, err error) {
	run := s.book.run
	if f := got.refusal; f != nil {
		refused = f.Code != wire.CodeUnknown && f.Retry != wire.RetryOutcomeUnknown
		run.countRefusal(f, refused)
		if f.Code == wire.CodeStorage {
			run.marks.hit(dmarkCacheFailed)
		}
		return false, refused, nil
	}
	if s.poisoned != 0 && a.sent > s.poisoned {
		return true, false, fmt.Errorf("%s: acknowledged although its log has failed in step %d and the request was sent in %d", s, s.poisoned, a.sent)
	}
	return true, false, nil
}
