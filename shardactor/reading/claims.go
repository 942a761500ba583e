package reading

import (
	"maps"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// Claims is what is claimed in one log and not folded yet, on top of what is: what each key has once all of it is done. It is used by the
// goroutine that claims. It keeps the bytes of claimed batches until Settle or Void, and is bounded by what the shard lets be on its way to
// the log.
//
//  1. changes holds the records of the claimed batches in the order of their offsets, the first one being number first;
//  2. newest holds for each of their keys the number of its last record, and each record that of the one before it of the same key.
type Claims struct {
	table   Table
	decode  keyed.Decoder
	changes []change // changes[head:] are those that stand
	head    int
	first   uint64 // number of changes[head]; numbers begin at 1
	newest  map[string]uint64
	settled id.Offset
}

// change is one claimed record.
type change struct {
	at    id.Offset
	rests id.Offset // the end of the claim that what the key has rests on; 0 or one that is settled: on what is folded
	kind  outcome
	live  Live
	key   []byte
	older uint64 // number of the record before it of the same key; below first: there is none
}

// outcome is what a claimed record leaves its key with.
type outcome uint8

const (
	same  outcome = iota // what it had before
	value                // live
	none                 // nothing
)

// NewClaims returns the claims of a log whose records decode understands: none yet.
func NewClaims(t Table, decode keyed.Decoder) *Claims {
	c := newClaims(t, decode)
	return &c
}

func newClaims(t Table, decode keyed.Decoder) Claims {
	return Claims{table: t, decode: decode, first: 1, newest: make(map[string]uint64)}
}

// unknownBefore is the Lookup for records that were judged already.
func unknownBefore([]byte) ([]byte, bool) { return nil, false }

// Claimed takes a batch of kind Records that got its offsets, which are at or after those of all before it. Other kinds change no key. A
// body that can't be decoded is a broken invariant of whoever made it.
func (c *Claims) Claimed(b *batch.Batch) {
	if b.Kind != batch.Records {
		return
	}
	at := b.Base
	for rest := b.Body; len(rest) > 0; at = at.Add(1) {
		payload, more, err := cutPayload(rest)
		if err != nil {
			panic("reading: a batch was claimed that is none: " + err.Error())
		}
		rest = more
		record, err := c.decode(payload, at, unknownBefore)
		if err != nil {
			panic("reading: a batch was claimed that is none: " + err.Error())
		}
		c.claim(record, at, b.End())
	}
	if at != b.End() {
		panic("reading: a batch was claimed whose body has another number of records than its header says")
	}
}

func (c *Claims) claim(record keyed.Change, at, end id.Offset) {
	if n := len(c.changes); n > c.head && c.changes[n-1].at >= at {
		panic("reading: batches are claimed in the order of their offsets")
	}
	x := change{at: at, rests: end, key: record.Key, older: c.newest[string(record.Key)]}
	switch record.Kind {
	case keyed.Put:
		x.kind, x.live = value, Live{Value: record.Value, Version: at, Offset: at, ExpiresAtMillis: record.ExpiresAtMillis}
	case keyed.Delete:
		x.kind = none
	case keyed.Expire:
		if had, ok, _ := c.stand(record.Key); ok && had.Version == record.Version {
			x.kind = none
		}
	case keyed.Move:
		had, ok, rests := c.stand(record.Key)
		if ok && had.Version > record.Version {
			break
		}
		if ok && had.Version == record.Version {
			x.rests = rests // what it says was so before
		}
		x.kind, x.live = value, Live{Value: record.Value, Version: record.Version, Offset: at, ExpiresAtMillis: record.ExpiresAtMillis}
	case keyed.None:
	}
	c.changes = append(c.changes, x)
	c.newest[string(record.Key)] = c.first + uint64(len(c.changes)-1-c.head)
}

// last returns the last claimed record that changes what a key has.
func (c *Claims) last(key []byte) *change {
	for n := c.newest[string(key)]; n >= c.first; {
		x := &c.changes[c.head+int(n-c.first)]
		if x.kind != same {
			return x
		}
		n = x.older
	}
	return nil
}

// until is what a change rests on, 0 when that is folded.
func (c *Claims) until(x *change) id.Offset {
	if x.rests <= c.settled {
		return 0
	}
	return x.rests
}

// stand returns what a key has, ended or not, without a value that is folded.
func (c *Claims) stand(key []byte) (l Live, ok bool, until id.Offset) {
	if x := c.last(key); x != nil {
		return x.live, x.kind == value, c.until(x)
	}
	l, ok = c.table.Stat(key, 0)
	return l, ok, 0
}

// Newest returns what a key has at now once all that is claimed is done; ok is false if it has nothing, or what it has ended. until is the
// end of the claim that this rests on, 0 when all of that is folded. The value is part of a claimed batch, or as the Table returns it.
func (c *Claims) Newest(key []byte, nowMillis uint64) (l Live, ok bool, until id.Offset) {
	return c.look(key, nowMillis, c.table.Find)
}

// newestStat is Newest without a value that is folded.
func (c *Claims) newestStat(key []byte, nowMillis uint64) (l Live, ok bool, until id.Offset) {
	return c.look(key, nowMillis, c.table.Stat)
}

func (c *Claims) look(key []byte, nowMillis uint64, folded func([]byte, uint64) (Live, bool)) (l Live, ok bool, until id.Offset) {
	x := c.last(key)
	if x == nil {
		l, ok = folded(key, nowMillis)
		return l, ok, 0
	}
	if x.kind == none || x.live.ended(nowMillis) {
		return Live{}, false, c.until(x)
	}
	return x.live, true, c.until(x)
}

// Staged reports whether a record of a key is claimed and not folded.
func (c *Claims) Staged(key []byte) bool { return c.newest[string(key)] >= c.first }

// Len is the number of records that are claimed and not folded.
func (c *Claims) Len() int { return len(c.changes) - c.head }

// Void forgets the claims at and after an offset: they failed, and none of them will be folded.
func (c *Claims) Void(from id.Offset) {
	for n := len(c.changes); n > c.head && c.changes[n-1].at >= from; n-- {
		x := &c.changes[n-1]
		if x.older >= c.first {
			c.newest[string(x.key)] = x.older
		} else {
			delete(c.newest, string(x.key))
		}
		*x = change{}
		c.changes = c.changes[:n-1]
	}
	c.tidy()
}

// Settle forgets the claims below an offset, once they are folded into the Table.
func (c *Claims) Settle(to id.Offset) {
	for c.head < len(c.changes) && c.changes[c.head].at < to {
		x := &c.changes[c.head]
		if c.newest[string(x.key)] == c.first {
			delete(c.newest, string(x.key))
		}
		*x = change{}
		c.head++
		c.first++
	}
	c.settled = max(c.settled, to)
	c.tidy()
}

// spareChanges is how many places are kept for claims to come once a burst is over.
const spareChanges = 1024

// tidy gives places of settled claims to new ones: when half of them are free, so that each record is moved once on average. What a burst has taken
// is given back when a quarter of it is enough.
func (c *Claims) tidy() {
	n := c.Len()
	switch {
	case cap(c.changes) > spareChanges && n <= cap(c.changes)/4:
		c.changes = append(make([]change, 0, max(2*n, spareChanges)), c.changes[c.head:]...)
		newest := make(map[string]uint64, n)
		maps.Copy(newest, c.newest)
		c.newest = newest
	case c.head < n || c.head == 0:
		return
	default:
		copy(c.changes, c.changes[c.head:])
		clear(c.changes[max(n, c.head):])
		c.changes = c.changes[:n]
	}
	c.head = 0
}
