package store

import (
	"github.com/felixd/felixd/controlplane/model"
)

// HistoryChanges is how many changes a memory store keeps for readers that follow it. A reader looks again within
// milliseconds of being woken, so 4096 covers the largest deploy in one burst; a reader further behind takes a
// snapshot. At about 1.2 KiB for the longest record the ring stays below 5 MiB.
const HistoryChanges = 4096

// history is the bounded tail of the sequence of writes: a ring of the last changes, whose Seq are consecutive.
type history struct {
	base uint64   // Seq of the last write before the first one that was ever kept here
	ring []Change // change of number seq sits at (seq-base-1) % cap; len grows to cap once
	last uint64   // Seq of the last write, base before the first
}

// add numbers a write and keeps it, dropping the oldest where the ring is full.
func (h *history) add(op Op, r model.Record) {
	h.last++
	c := Change{Seq: h.last, Op: op, Record: r}
	if len(h.ring) < HistoryChanges {
		h.ring = append(h.ring, c)
		return
	}
	h.ring[(h.last-h.base-1)%HistoryChanges] = c
}

// check returns a *PositionError when changes after since can't be listed.
func (h *history) check(since uint64) error {
	oldest := h.last - uint64(len(h.ring))
	if since < oldest || since > h.last {
		return &PositionError{Since: since, Oldest: oldest, Last: h.last}
	}
	return nil
}

// list returns up to limit changes of kind after since, and the position to continue from.
func (h *history) list(kind model.Kind, since uint64, limit int) ([]Change, uint64, error) {
	if err := h.check(since); err != nil {
		return nil, 0, err
	}
	var items []Change
	for seq := since + 1; seq <= h.last; seq++ {
		c := h.ring[(seq-h.base-1)%HistoryChanges]
		if c.Record.RecordKind() != kind {
			continue
		}
		items = append(items, c)
		if len(items) == limit {
			return items, seq, nil
		}
	}
	return items, h.last, nil
}
