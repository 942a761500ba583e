package main

import (
	"fmt"
	"math"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// cacheBook is what clients were told of log-backed caches, all of them together. Nothing of the product's own knowledge is in it.
type cacheBook struct {
	run    *drun
	shards []*cacheShard
	writes map[uint64]*cacheWrite // by the id in the value; never iterated
}

// cacheShard is one shard of a log-backed cache.
type cacheShard struct {
	book     *cacheBook
	cache    route.Assignment
	index    uint32
	keys     []*cacheKey
	sums     []*sumBook
	at       map[id.Offset]*cacheChange // what somebody was told that lies there; never iterated
	versions map[id.Offset]*cacheKey    // somebody was told that the key had it; never iterated
	end      id.Offset                  // behind the last one of at
	poisoned int                        // step since which this life's log is poisoned; 0: it is not
	left     id.Offset                  // where it ends after power cuts, as long as nobody was let in since; else never
	lost     id.Offset                  // the earliest end that a power cut has ever left; never if there was none
	history  *dwatch                    // of all keys: what it has missed nobody may know
	written  int                        // bytes of keys and values that clients have sent
}

// cacheKey is one key: what clients have asked for, in that order, and what was seen of it, by offset.
type cacheKey struct {
	shard   *cacheShard
	name    string
	writes  []*cacheWrite
	changes []*cacheChange
	told    id.Offset // newest version that somebody was told of without its value
}

// cacheWrite is one request that may change a key.
type cacheWrite struct {
	key       *cacheKey
	what      string
	value     uint64           // the id in it; 0 for what removes
	ttl       wire.Opt[uint64] // milliseconds
	absent    bool             // its condition: no live value
	version   wire.Opt[uint64] // its condition: this version
	sent      int              // step
	sentMS    int64            // on the node's clock
	done      int              // step by which somebody knew that it had happened; never if nobody does
	doneMS    int64
	answered  bool // as done
	refused   bool // nothing happened, for certain
	removed   uint64
	hasBefore bool // removed is the id in the value that it took away
	at        wire.Opt[id.Offset]
}

// cacheChange is a record of the log as somebody saw it: write made it, or, when that is nil, the key was removed.
type cacheChange struct {
	at    id.Offset
	key   *cacheKey
	write *cacheWrite
	ends  wire.Opt[uint64] // when its value ends, in milliseconds since the Unix epoch, 0 for never; unset: nobody was told
	ms    int64            // when it was seen first
}

// never is the step of what has not happened.
const never = math.MaxInt

func newCacheBook(r *drun) *cacheBook {
	b := &cacheBook{run: r, writes: map[uint64]*cacheWrite{}}
	for i, a := range r.resources {
		if i != flagsCache {
			continue
		}
		for n := uint32(0); n < a.Shards; n++ {
			b.shards = append(b.shards, &cacheShard{book: b, cache: a, index: n, at: map[id.Offset]*cacheChange{}, versions: map[id.Offset]*cacheKey{}, left: never, lost: never})
		}
		for _, name := range r.plan.Cache.keys() {
			s := b.of(name)
			s.keys = append(s.keys, &cacheKey{shard: s, name: name})
		}
		for _, name := range r.plan.Cache.counters() {
			s := b.of(name)
			s.sums = append(s.sums, &sumBook{shard: s, name: name})
		}
	}
	return b
}

func (s *cacheShard) String() string { return fmt.Sprintf("%s/%d", s.cache.Name, s.index) }

func (k *cacheKey) String() string { return fmt.Sprintf("%s key %s", k.shard, k.name) }

// of is the shard of a key.
func (b *cacheBook) of(key string) *cacheShard {
	a := b.shards[0].cache
	return b.shards[a.Routing.Shard([]byte(key), true, a.Shards)]
}

// key is a key of the plan.
func (b *cacheBook) key(name string) *cacheKey {
	k, err := b.of(name).find(name)
	if err != nil {
		panic("sim: " + err.Error())
	}
	return k
}

// find is a key that somebody was told of.
func (s *cacheShard) find(key string) (*cacheKey, error) {
	for _, k := range s.keys {
		if k.name == key {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%s: key %q, which nobody writes", s, key)
}

// newest is the latest change that is known.
func (k *cacheKey) newest() *cacheChange {
	if n := len(k.changes); n > 0 {
		return k.changes[n-1]
	}
	return nil
}

// wallMS is the node's clock, in milliseconds since the Unix epoch.
func (r *drun) wallMS() int64 { return r.wall.Now().UnixMilli() }

// valueOf is the write that a value is of.
func (k *cacheKey) valueOf(value []byte) (*cacheWrite, error) {
	id, good := isPayload(value)
	w := k.shard.book.writes[id]
	switch {
	case !good || w == nil:
		return nil, fmt.Errorf("%s has a value of %d bytes that nobody wrote: %.16x", k, len(value), value)
	case w.key != k:
		return nil, fmt.Errorf("%s has the value %x, which was written to %s", k, id, w.key)
	case w.refused:
		return nil, fmt.Errorf("%s has the value %x, whose %s was refused or not applied", k, id, w.what)
	}
	return w, nil
}

// saw notes that a value lies at an offset: somebody was told so.
func (k *cacheKey) saw(at id.Offset, w *cacheWrite, ends wire.Opt[uint64]) error {
	if before := w.at; before.Set && before.V != at {
		return fmt.Errorf("%s: value %x has the version %d, and %d before", k, w.value, at, before.V)
	}
	if err := k.note(at, w, ends); err != nil {
		return err
	}
	w.at = wire.Some(at)
	w.known()
	return nil
}

// sawRemoved notes that a key was removed at an offset.
func (k *cacheKey) sawRemoved(at id.Offset) error { return k.note(at, nil, wire.Opt[uint64]{}) }

func (k *cacheKey) note(at id.Offset, w *cacheWrite, ends wire.Opt[uint64]) error {
	s := k.shard
	if c := s.at[at]; c != nil {
		if c.key != k || c.write != w || ends.Set && c.ends.Set && c.ends != ends {
			return fmt.Errorf("%s: at offset %d is %s, and it was %s before", s, at, (&cacheChange{key: k, write: w, ends: ends}), c)
		}
		if ends.Set {
			c.ends = ends
		}
		return nil
	}
	if v := s.versions[at]; v != nil && (v != k || w == nil) {
		return fmt.Errorf("%s: at offset %d is %s, and it was said to be the version of %s", s, at, (&cacheChange{key: k, write: w, ends: ends}), v)
	}
	c := &cacheChange{at: at, key: k, write: w, ends: ends, ms: s.book.run.wallMS()}
	s.at[at] = c
	s.end = max(s.end, at+1)
	i := len(k.changes)
	for i > 0 && k.changes[i-1].at > at {
		i--
	}
	k.changes = append(k.changes, nil)
	copy(k.changes[i+1:], k.changes[i:])
	k.changes[i] = c
	return nil
}

// String says what a change did.
func (c *cacheChange) String() string {
	if c.write == nil {
		return fmt.Sprintf("the end of %s", c.key.name)
	}
	return fmt.Sprintf("value %x of %s, to end at %v", c.write.value, c.key.name, c.ends)
}

// known notes that a write has happened, by now.
func (w *cacheWrite) known() {
	if w.done == never {
		w.done, w.doneMS = w.key.shard.book.run.world.Steps(), w.key.shard.book.run.wallMS()
	}
}

// reaches notes where the log ends after a power cut that may have taken the end of it: everything before must be what it was. What nobody
// knows the place of may be there or not.
func (s *cacheShard) reaches(end id.Offset) {
	for _, k := range s.keys {
		for n := len(k.changes); n > 0 && k.changes[n-1].at >= end; n-- {
			delete(s.at, k.changes[n-1].at)
			k.changes = k.changes[:n-1]
		}
		for _, w := range k.writes {
			if !w.at.Set || w.at.V >= end {
				w.at, w.done, w.answered = wire.Opt[id.Offset]{}, never, false
			}
		}
		k.told = 0
	}
	for _, c := range s.sums {
		c.lost()
	}
	s.versions = map[id.Offset]*cacheKey{}
	s.end, s.left = min(s.end, end), never
}
