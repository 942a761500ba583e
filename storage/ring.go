package storage

import (
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// ring holds the newest batches of a log, contiguous: each begins where the one before it ends.
type ring struct {
	slots []slot // circular, length a power of two or zero
	head  int    // index of the oldest
	count int
	bytes int64
}

// at is the i-th oldest slot.
func (r *ring) at(i int) *slot { return &r.slots[(r.head+i)&(len(r.slots)-1)] }

// ringFirst is the slots of a log that was written to once: most shards of a broker with thousands of them hold hardly more.
const ringFirst = 4

func (r *ring) push(b *batch.Batch) {
	if r.count == len(r.slots) {
		r.resize(max(ringFirst, 2*len(r.slots)))
	}
	r.count++
	*r.at(r.count - 1) = slot{batch: b, end: b.End()}
	r.bytes += int64(b.Size())
}

// pop removes the oldest slot and returns it.
func (r *ring) pop() slot {
	s := *r.at(0)
	*r.at(0) = slot{}
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.count--
	r.bytes -= int64(s.batch.Size())
	if len(r.slots) > 64 && r.count < len(r.slots)/4 {
		r.resize(len(r.slots) / 2)
	}
	return s
}

// popNewest removes the newest slot and returns it.
func (r *ring) popNewest() slot {
	s := *r.at(r.count - 1)
	*r.at(r.count - 1) = slot{}
	r.count--
	r.bytes -= int64(s.batch.Size())
	return s
}

func (r *ring) resize(n int) {
	next := make([]slot, n)
	for i := range r.count {
		next[i] = *r.at(i)
	}
	r.slots, r.head = next, 0
}

// find returns the index of the slot that holds offset o, or of the first one after it.
func (r *ring) find(o id.Offset) int {
	lo, hi := 0, r.count
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r.at(mid).end <= o {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
