package storage

import (
	"sort"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// slot is a batch and who needs it.
type slot struct {
	batch  *batch.Batch // nil once nobody needs it: only in a keptList
	end    id.Offset
	refs   int32 // readers that were given it and have not finished with it
	beyond int32 // those of them whose window does not reach it: under Block, its publisher waits
}

// keptList holds what has left the ring of a log and is still needed, in offset order. Each batch is here once, however many
// readers need it, and its bytes are booked in the readers' budget.
//
// slots with refs 0 are dead and hold no batch; compact drops them before they outnumber the others.
type keptList struct {
	slots  []slot
	dead   int
	bytes  int64
	budget *Budget
}

// add keeps a slot that is still needed. The caller has booked its bytes.
func (k *keptList) add(s slot) {
	k.slots = append(k.slots, s)
	k.bytes += int64(s.batch.Size())
}

// keptSlots is how many places an empty list keeps: 2 KiB, so that one that fills and empties all the time allocates nothing.
const keptSlots = 64

// find returns the index of the slot that holds offset o, or of the first one after it.
func (k *keptList) find(o id.Offset) int {
	return sort.Search(len(k.slots), func(i int) bool { return k.slots[i].end > o })
}

// bury lets go of the batch of a slot that nobody needs any more.
func (k *keptList) bury(s *slot) {
	size := int64(s.batch.Size())
	s.batch = nil
	k.dead++
	k.bytes -= size
	k.budget.Give(size)
}

// compact drops dead slots once they are as many as the others. Indexes are void afterwards.
func (k *keptList) compact() {
	if k.dead == 0 || 2*k.dead < len(k.slots) {
		return
	}
	live := k.slots[:0]
	for _, s := range k.slots {
		if s.batch != nil {
			live = append(live, s)
		}
	}
	clear(k.slots[len(live):])
	k.slots, k.dead = live, 0
	if cap(live) > keptSlots && len(live) < cap(live)/8 {
		k.slots = append([]slot(nil), live...)
	}
}
