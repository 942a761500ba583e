package keyed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// The records of these tests: kind u8 | version u64 | expires u64 | key length u32 | key | value.
func encodeChange(dst []byte, c Change) []byte {
	dst = append(dst, byte(c.Kind))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Version))
	dst = binary.BigEndian.AppendUint64(dst, c.ExpiresAtMillis)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Key)))
	return append(append(dst, c.Key...), c.Value...)
}

func decodeChange(p []byte, _ id.Offset, _ Lookup) (Change, error) {
	if len(p) < 21 || uint64(binary.BigEndian.Uint32(p[17:])) > uint64(len(p)-21) {
		return Change{}, errors.New("too short")
	}
	n := 21 + int(binary.BigEndian.Uint32(p[17:]))
	return Change{
		Kind: Kind(p[0]), Version: id.Offset(binary.BigEndian.Uint64(p[1:])), ExpiresAtMillis: binary.BigEndian.Uint64(p[9:]), Key: p[21:n], Value: p[n:],
	}, nil
}

func encodeMoved(dst []byte, e Entry) []byte {
	return encodeChange(dst, Change{Kind: Move, Key: e.Key, Value: e.Value, Version: e.Version, ExpiresAtMillis: e.ExpiresAtMillis})
}

// batchOf is a batch of records.
func batchOf(base id.Offset, changes ...Change) *batch.Batch {
	b := &batch.Batch{Base: base, Count: uint32(len(changes)), Kind: batch.Records, Generation: 1}
	for _, c := range changes {
		payload := encodeChange(nil, c)
		b.Body = append(binary.BigEndian.AppendUint32(b.Body, uint32(len(payload))), payload...)
	}
	b.Summarize()
	return b
}

func put(key, value string) Change { return Change{Kind: Put, Key: []byte(key), Value: []byte(value)} }

func newTestIndex(inline int) *Index {
	return NewIndex(Options{Budget: NewBudget(1 << 40), Seed: 7, InlineMax: inline})
}

func apply(t testing.TB, f *Fold, b *batch.Batch) {
	t.Helper()
	if err := f.Apply(b, nil); err != nil {
		t.Fatal(err)
	}
}

// verify checks the numbered invariants of an index, its table, its arena and its ends.
func verify(x *Index) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	count, cost, logLive, cold, expiring := 0, int64(0), int64(0), 0, 0
	live := make([]int, len(x.arena.chunks))
	slotBytes := int64(0)
	for i, s := range x.table.dir {
		if i > 0 && x.table.dir[i-1] == s {
			continue
		}
		slotBytes += int64(len(s.slots)) * 8
		if len(s.slots) < segmentSlots && len(x.table.dir) > 1 {
			return fmt.Errorf("a segment of %d slots among others", len(s.slots))
		}
		if uint32(i)<<(32-x.table.depth) != s.first || x.table.of(s.last()) != s {
			return fmt.Errorf("segment %#x of depth %d at place %d", s.first, s.depth, i)
		}
		used := 0
		for at, slot := range s.slots {
			if slot == 0 {
				continue
			}
			used++
			tag, r := tagOf(slot), refOf(slot)
			b := x.arena.at(r)
			if got := x.hash.tag(b.key()); got != tag || tag < s.first || tag > s.last() {
				return fmt.Errorf("tag %#x of a key with %#x in segment %#x", tag, got, s.first)
			}
			if s.find(tag, r) != at {
				return fmt.Errorf("tag %#x is not found where it is", tag)
			}
			cost += costOf(b)
			logLive += int64(b.logBytes())
			live[r>>chunkBits] += b.size()
			if b.cold() {
				cold++
			}
			if p := b.place(); (p != 0) != (b.expires() != 0) {
				return fmt.Errorf("place %d of an entry that ends at %d", p, b.expires())
			} else if p != 0 {
				expiring++
				if e := x.ends.get(int(p - 1)); e.at != r || e.expires != b.expires() {
					return fmt.Errorf("place %d holds %+v, want %d ending at %d", p-1, *e, r, b.expires())
				}
			}
		}
		if used != s.used {
			return fmt.Errorf("%d slots used, %d counted", used, s.used)
		}
		count += used
	}
	if count != x.table.count || cost != x.cost || cost != x.booked || logLive != x.logLive || cold != x.cold || expiring != x.ends.n || slotBytes != x.table.bytes {
		return fmt.Errorf("found %d entries, cost %d, log %d, cold %d, expiring %d, slots %d; want %d %d %d %d %d %d", count, cost, logLive, cold, expiring, slotBytes,
			x.table.count, x.cost, x.logLive, x.cold, x.ends.n, x.table.bytes)
	}
	for i := 1; i < x.ends.n; i++ {
		if x.ends.get((i-1)/endsWidth).expires > x.ends.get(i).expires {
			return fmt.Errorf("place %d ends before its parent", i)
		}
	}
	return verifyArena(&x.arena, live)
}

func verifyArena(a *arena, live []int) error {
	all, used, capacity := int64(0), int64(0), int64(0)
	for i, c := range a.chunks {
		if c.live != live[i] {
			return fmt.Errorf("chunk %d has %d live bytes, %d found", i, c.live, live[i])
		}
		if c.live == 0 && c.b != nil && uint32(i) != a.head {
			return fmt.Errorf("chunk %d is empty and kept", i)
		}
		all, used, capacity = all+int64(c.live), used+int64(len(c.b)), capacity+int64(cap(c.b))
	}
	if all != a.live || used != a.used || capacity != a.capacity {
		return fmt.Errorf("%d live, %d used, %d of memory; found %d %d %d", a.live, a.used, a.capacity, all, used, capacity)
	}
	if limit := max(a.live/3, tidyFrom) + 2*chunkBytes; a.garbage() > limit {
		return fmt.Errorf("%d bytes of garbage beside %d live", a.garbage(), a.live)
	}
	return nil
}
