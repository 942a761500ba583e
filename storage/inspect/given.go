package inspect

import (
	"io"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// unseen is how many offsets are passed over beyond those that can be accounted for: of appends that were told of and not synced, where
// the log did without.
const unseen = 1 << 18

// given is what is kept of the offsets of a cache's log, see segment.PassOver, so that none of those that the plan cuts off is given again:
// clients hold them as versions. How many records there were cannot be read any more, but each takes a byte or more: caches are not
// compressed. Batches that hold offsets and no bytes are in the list already.
func (r *repair) given(plan *segment.Plan, entries []segment.Entry) ([]segment.LostEnd, error) {
	kept, told := segment.PassOver(plan.Replica.Lost, plan.Base, plan.Next)
	if m := plan.Mark; m != nil { // there may be more of that segment than its file shows, or no file
		told = max(told, m.Base.Add(uint64(m.Synced)))
	}
	for _, e := range entries {
		if _, isSegment := segment.ParseFileName(e.Name); !isSegment || !e.Regular {
			continue
		}
		base, err := r.base(e.Name)
		if err != nil {
			return nil, err
		}
		told = max(told, base.Add(uint64(e.Size)))
	}
	return segment.Reserve(kept, plan.Next, told.Add(unseen)), nil
}

// base is where a segment begins; 0 if its header does not say.
func (r *repair) base(name string) (id.Offset, error) {
	f, err := r.disk.Open(r.path(name), false)
	if err != nil {
		return 0, err
	}
	defer f.Close() // it was only read
	b := make([]byte, segment.HeaderSize)
	if n, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return 0, err
	} else if h, err := segment.DecodeHeader(b[:n]); err == nil {
		return h.Base, nil
	}
	return 0, nil
}
