package main

import (
	"fmt"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire/id"
)

// book is what clients were told, all of them together: which record lies at which offset. Nothing of the product's own knowledge is in it.
type book struct {
	run     *drun
	shards  []*shardBook
	records map[uint64]*recordBook // by record id; never iterated
}

// shardBook is one shard of a durable stream.
//
//  1. at and where are inverse to each other;
//  2. what is in them was acknowledged, delivered or read, so that it is there for ever; only a power cut in a mode that promises no more
//     takes from its end, and retention from its beginning.
type shardBook struct {
	book     *book
	stream   route.Assignment
	index    uint32
	at       map[id.Offset]uint64 // record ids; never iterated
	where    map[uint64]id.Offset // never iterated
	end      id.Offset            // behind the last one of at
	base     id.Offset            // oldest offset that somebody was told of
	poisoned int                  // step since which this life's log is poisoned; 0: it is not
	versions map[string]id.Offset // of the state of each entity, the newest that was read; never iterated
	asOf     id.Offset            // the newest that was read
	cuts     int                  // power cuts that may have taken what was acknowledged
}

// recordBook is what became of one record.
type recordBook struct {
	shard    *shardBook
	refused  bool   // for certain, each time that it was sent
	numbered bool   // it may be sent again
	entity   string // of a commit: whose state it is the value of
}

func newBook(r *drun) *book {
	b := &book{run: r, records: map[uint64]*recordBook{}}
	for _, a := range r.resources {
		for n := uint32(0); a.Durable && a.Name.Kind == route.Stream && n < a.Shards; n++ {
			b.shards = append(b.shards, &shardBook{book: b, stream: a, index: n, at: map[id.Offset]uint64{}, where: map[uint64]id.Offset{}, versions: map[string]id.Offset{}})
		}
	}
	return b
}

func (s *shardBook) String() string { return fmt.Sprintf("%s/%d", s.stream.Name, s.index) }

// of is the shard of a durable stream.
func (b *book) of(stream, index int) *shardBook {
	name := b.run.resources[stream].Name
	for _, s := range b.shards {
		if s.stream.Name == name && s.index == uint32(index) {
			return s
		}
	}
	panic("sim: no such shard")
}

// saw notes that a record lies at an offset: somebody was told so.
func (s *shardBook) saw(at id.Offset, record uint64) error {
	r := s.book.records[record]
	switch {
	case r == nil:
		return fmt.Errorf("%s: at offset %d lies record %x, which nobody sent", s, at, record)
	case r.shard != s:
		return fmt.Errorf("%s: at offset %d lies record %x, which was sent to %s", s, at, record, r.shard)
	case r.refused:
		return fmt.Errorf("%s: at offset %d lies record %x, which was refused", s, at, record)
	}
	if before, known := s.at[at]; known && before != record {
		return fmt.Errorf("%s: at offset %d lies record %x, and record %x was there before", s, at, record, before)
	}
	// A producer whose batches retention has removed is forgotten, and what it sends again is new.
	if before, known := s.where[record]; known && before != at && !(r.numbered && s.book.run.plan.trims()) {
		return fmt.Errorf("%s: record %x lies at offset %d and at %d", s, record, before, at)
	}
	s.at[at], s.where[record] = record, at
	s.end = max(s.end, at+1)
	return nil
}

// acked notes that records were acknowledged from an offset on, for a request that was sent in a step.
func (s *shardBook) acked(from id.Offset, records []uint64, sent int) error {
	if s.poisoned != 0 && sent > s.poisoned {
		return fmt.Errorf("%s: offset %d was acknowledged although its log has failed in step %d and the request was sent in %d", s, from, s.poisoned, sent)
	}
	for i, record := range records {
		if err := s.saw(from.Add(uint64(i)), record); err != nil {
			return fmt.Errorf("acknowledged: %w", err)
		}
	}
	return nil
}

// refused notes that a record is nowhere.
func (b *book) refused(record uint64) error {
	r := b.records[record]
	if at, known := r.shard.where[record]; known {
		return fmt.Errorf("%s: record %x was refused, and lies at offset %d", r.shard, record, at)
	}
	r.refused = true
	return nil
}

// trimmed notes that a shard was said to begin at an offset.
func (s *shardBook) trimmed(oldest id.Offset) error {
	if !s.book.run.plan.trims() {
		return fmt.Errorf("%s begins at offset %d, and nothing removes records", s, oldest)
	}
	if oldest < s.base {
		return fmt.Errorf("%s begins at offset %d, and began at %d before", s, oldest, s.base)
	}
	if oldest > s.base {
		s.base = oldest
		s.book.run.marks.hit(dmarkTrimmed)
	}
	return nil
}

// reaches notes where the log ends after a power cut that may have taken the end of it: everything before must be what it was.
func (s *shardBook) reaches(end id.Offset) {
	for o := end; o < s.end; o++ {
		if record, known := s.at[o]; known {
			delete(s.at, o)
			delete(s.where, record)
		}
	}
	if s.end > end {
		s.end = end
		s.cuts++
	}
	s.base = min(s.base, end)
	s.asOf = 0
	clear(s.versions)
}

// poisoned notes that the log of a shard has failed.
func (b *book) poisoned(name string) {
	for _, s := range b.shards {
		if s.String() == name {
			s.poisoned = b.run.world.Steps()
		}
	}
	for _, s := range b.run.cacheShards() {
		if s.String() == name {
			s.poisoned = b.run.world.Steps()
		}
	}
}

// restarted notes that a new process serves.
func (b *book) restarted() {
	for _, s := range b.shards {
		s.poisoned = 0
	}
	for _, s := range b.run.cacheShards() {
		s.poisoned = 0
	}
}
