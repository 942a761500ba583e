package main

import (
	"encoding/binary"
	"time"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// truth is what happened on one node, seen from inside: what each shard stepped, in its order. Clients are judged by it.
type truth struct {
	b       *broker
	shards  []*shardTruth          // in order of first birth
	index   map[string]*shardTruth // never iterated
	records map[uint64]place       // by record id; never iterated
	lost    int                    // records that subscribers did not get because a ring had moved on
}

// place is where a record went.
type place struct {
	life *life
	at   int // in life.records
}

// shardTruth is one shard of one resource, over all its incarnations.
type shardTruth struct {
	truth *truth
	name  route.Name
	index uint32
	lives []*life
	keys  []*keyTruth
	byKey map[string]*keyTruth
	last  map[uint64]uint64 // newest record id of each publishing stream in the present life
}

// life is one incarnation of a shard.
type life struct {
	shard   *shardTruth
	ref     uint64 // of its actor, from its first turn on
	born    int    // step
	over    int    // step; 0 while it lives
	drained bool
	records []uint64
	batches int
}

// keyTruth is the history of one cache key.
type keyTruth struct {
	key      string
	versions []version // by step; before the first one the key is absent
}

// version is what a key was from a step on, until the next version.
type version struct {
	step    int
	value   string
	there   bool
	expires int64 // on the node's clock, Unix milliseconds; 0: never
	offset  id.Offset
}

func newTruth(b *broker) *truth {
	return &truth{b: b, index: map[string]*shardTruth{}, records: map[uint64]place{}}
}

func (t *truth) shard(name route.Name, n uint32) *shardTruth {
	key := name.Kind.String() + " " + name.String() + "/" + string(rune('0'+n))
	s := t.index[key]
	if s == nil {
		s = &shardTruth{truth: t, name: name, index: n, byKey: map[string]*keyTruth{}}
		t.index[key] = s
		t.shards = append(t.shards, s)
	}
	return s
}

// born notes a new incarnation: what was in memory is gone.
func (t *truth) born(name route.Name, n uint32) *life {
	s, step := t.shard(name, n), t.b.run.world.Steps()
	l := &life{shard: s, born: step}
	if len(s.lives) > 0 {
		s.lives[len(s.lives)-1].end(step)
	}
	s.lives = append(s.lives, l)
	s.last = map[uint64]uint64{}
	for _, k := range s.keys {
		k.versions = append(k.versions, version{step: step})
	}
	return l
}

func (l *life) end(step int) {
	if l.over == 0 {
		l.over = step
	}
}

// recordStream is the part of a record id that names the client stream it was sent on.
func recordStream(id uint64) uint64 { return id >> 24 }

// published notes a batch that was claimed, and checks that records of one client stream keep their order.
func (l *life) published(b *batch.Batch) {
	l.batches++
	run, t := l.shard.truth.b.run, l.shard.truth
	for rest := wire.Region(b.Body); len(rest) > 0; {
		var payload []byte
		payload, rest, _ = rest.Next()
		id := binary.BigEndian.Uint64(payload)
		if was, again := t.records[id]; again {
			run.failf("record %x was stepped twice, by %s/%d at %d before", id, was.life.shard.name, was.life.shard.index, was.at)
		}
		if last := l.shard.last[recordStream(id)]; last >= id {
			run.failf("%s/%d stepped record %x after %x of the same stream", l.shard.name, l.shard.index, id, last)
		}
		l.shard.last[recordStream(id)] = id
		t.records[id] = place{l, len(l.records)}
		l.records = append(l.records, id)
	}
}

func (s *shardTruth) key(key string) *keyTruth {
	k := s.byKey[key]
	if k == nil {
		k = &keyTruth{key: key}
		s.byKey[key] = k
		s.keys = append(s.keys, k)
	}
	return k
}

func (l *life) put(key string, value []byte, ttl wire.Opt[uint64], offset id.Offset, now time.Time) {
	v := version{step: l.shard.truth.b.run.world.Steps(), value: string(value), there: true, offset: offset}
	if ttl.Set { // the millisecond that has begun is not counted
		v.expires = now.UnixMilli() + 1 + int64(ttl.V)
	}
	k := l.shard.key(key)
	k.versions = append(k.versions, v)
}

func (l *life) deleted(key string, _ time.Time) {
	k := l.shard.key(key)
	k.versions = append(k.versions, version{step: l.shard.truth.b.run.world.Steps()})
}

// span is the time between a request and its answer, in steps and on the node's clock.
type span struct {
	from, to     int
	fromMS, toMS int64
}

// could reports whether the key could be seen like that at some moment of the span: absent, or with that value. A version that begins in
// a step is seen from that step on, and the one before it until then.
func (k *keyTruth) could(there bool, value string, s span) bool {
	return k.was(s, there, func(v *version) bool { return v.value == value })
}

// was reports whether the key was, at some moment of the span, absent, or there and like that.
func (k *keyTruth) was(s span, there bool, like func(*version) bool) bool {
	for i := -1; i < len(k.versions); i++ {
		v, until := version{}, int(^uint(0)>>1)
		if i >= 0 {
			v = k.versions[i]
		}
		if i+1 < len(k.versions) {
			until = k.versions[i+1].step
		}
		if v.step > s.to || until < s.from {
			continue
		}
		if there && v.alive(s) && like(&v) || !there && v.gone(s) {
			return true
		}
	}
	return false
}

// alive and gone report whether the time of a version could be going on, or over, at some moment of the span.
func (v *version) alive(s span) bool {
	return v.there && (v.expires == 0 || s.fromMS < v.expires || v.step >= s.from)
}

func (v *version) gone(s span) bool { return !v.there || v.expires != 0 && s.toMS >= v.expires }
