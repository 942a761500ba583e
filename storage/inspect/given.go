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
// compressed. Batches that hold offsets and no bytes are in the list already: a segment has as many offsets as bytes behind those, or, if it
// begins behind them, behind its beginning. One whose header is damaged begins at the latest where those before it may have ended.
func (r *repair) given(plan *segment.Plan, entries []segment.Entry) ([]segment.LostEnd, error) {
	kept, told := segment.PassOver(plan.Replica.Lost, plan.Base, plan.Next)
	passed := id.Offset(0) // the end of those
	for _, x := range plan.Replica.Lost {
		passed = max(passed, x.Cursors.Add(1))
	}
	if m := plan.Mark; m != nil { // there may be more of that segment than its file shows, or no file
		told = max(told, max(m.Base, passed).Add(uint64(m.Synced)))
	}
	headless := uint64(0) // bytes of segments
	for _, e := range entries {
		if _, isSegment := segment.ParseFileName(e.Name); !isSegment || !e.Regular {
			continue
		}
		base, known, err := r.base(e.Name)
		if err != nil {
			return nil, err
		}
		if !known {
			headless += uint64(e.Size)
		}
		told = max(told, max(base, passed).Add(uint64(e.Size)))
	}
	return segment.Reserve(kept, plan.Next, told.Add(headless+unseen)), nil
}

// base is where a segment begins, if its header says so.
func (r *repair) base(name string) (base id.Offset, known bool, err error) {
	f, err := r.disk.Open(r.path(name), false)
	if err != nil {
		return 0, false, err
	}
	defer f.Close() // it was only read
	b := make([]byte, segment.HeaderSize)
	if n, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return 0, false, err
	} else if h, err := segment.DecodeHeader(b[:n]); err == nil {
		return h.Base, true, nil
	}
	return 0, false, nil
}
