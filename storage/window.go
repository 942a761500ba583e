package storage

import "github.com/felixd/felixd/wire/id"

// window is what one reader is given of its log: how much may be queued for it, how much is, and which holes there are in
// it. It is arithmetic only and knows no log.
//
//  1. batches and bytes are what was taken and not left again: queued, or in the reader's hand;
//  2. holes[:noted] lie ahead of the reader, in offset order, with at least one taken batch between any two;
//  3. open says that the newest hole still grows; while it is false there is a place for another hole.
type window struct {
	maxBatches int
	maxBytes   int64
	batches    int
	bytes      int64
	holes      [holesMax]hole
	noted      int
	open       bool
}

// hole is a run of offsets that the reader does not get.
type hole struct {
	from, to id.Offset
	records  uint64
}

// holesMax is how many holes are noted ahead of one reader: 96 bytes for each, which is all that it costs to lose any number
// of batches.
const holesMax = 4

// fits reports whether a batch of that size is queued. Two rules are exact: an empty window takes any batch, however large;
// and while at most one hole is ahead of the reader, whatever finds room is taken.
//
// After that each further hole ahead asks for an eighth of the window more before the newest one ends, and with holesMax of
// them noted it ends no earlier than the reader has passed the oldest. So a reader that is too slow for good loses fewer and
// longer runs instead of every other batch, and what lies between them keeps it busy: three eighths of a window at least, when
// batches are of one size.
func (w *window) fits(size int64) bool {
	if w.batches == 0 {
		return true
	}
	batches, bytes := w.maxBatches, w.maxBytes
	if w.open {
		if w.noted == holesMax {
			return false
		}
		further := w.noted - 1
		batches -= further * w.maxBatches / (2 * holesMax)
		bytes -= int64(further) * (w.maxBytes / (2 * holesMax))
	}
	return w.batches < batches && w.bytes+size <= bytes
}

// take queues batches that fit: the newest hole, if one grew, has ended.
func (w *window) take(batches int, bytes int64) {
	w.batches += batches
	w.bytes += bytes
	w.open = false
}

// leave is for batches that the reader has finished with.
func (w *window) leave(batches int, bytes int64) {
	w.batches -= batches
	w.bytes -= bytes
	if w.batches < 0 || w.bytes < 0 {
		panic("storage: more left a window than was taken into it")
	}
}

// lose adds offsets to the newest hole, or begins one.
func (w *window) lose(from, to id.Offset, records uint64) {
	if !w.open {
		w.holes[w.noted] = hole{from: from}
		w.noted++
		w.open = true
	}
	h := &w.holes[w.noted-1]
	h.to = to
	h.records += records
}

// pass lets go of the first hole if it begins at o, and returns it.
func (w *window) pass(o id.Offset) (h hole, ok bool) {
	if w.noted == 0 || w.holes[0].from != o {
		return hole{}, false
	}
	h = w.holes[0]
	w.noted--
	copy(w.holes[:], w.holes[1:])
	if w.noted == 0 {
		w.open = false
	}
	return h, true
}

// until is where the reader's next run ends: at the first hole ahead of it, or at end.
func (w *window) until(end id.Offset) id.Offset {
	if w.noted > 0 {
		return w.holes[0].from
	}
	return end
}

// has reports whether the offset lies in no hole.
func (w *window) has(o id.Offset) bool {
	for _, h := range w.holes[:w.noted] {
		if h.from <= o && o < h.to {
			return false
		}
	}
	return true
}
