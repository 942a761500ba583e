package actors

import "fmt"

// Cell is a level signal: only the newest value of a sender and kind matters.
type Cell struct {
	Sender uint64 // who says it: an actor's ID, a node's number, whatever the receiver's protocol fixes
	Kind   CellKind
	Value  any // immutable once signalled
}

// CellKind tells the cells of one sender apart; the receiver's protocol defines the values.
type CellKind uint8

type cellKey struct {
	sender uint64
	kind   CellKind
}

// signal puts c into its cell, replacing an older value.
func (b *mailbox) signal(c Cell) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	if i := b.findCell(c); i >= 0 {
		b.cells[i].Value = c.Value
		b.unlockAndWake()
		return
	}
	if len(b.cells) >= b.bounds.Cells {
		b.mu.Unlock()
		panic(fmt.Sprintf("actors: %s accepts %d cells and gets one more, from sender %d: senders must be few and stable", b.path, b.bounds.Cells, c.Sender))
	}
	b.cells = append(b.cells, c)
	b.indexCell(c)
	b.unlockAndWake()
}

// findCell is the slot of c's sender and kind, or -1; mu is held.
func (b *mailbox) findCell(c Cell) int {
	if b.cellIndex != nil {
		if i, ok := b.cellIndex[cellKey{c.Sender, c.Kind}]; ok {
			return i
		}
		return -1
	}
	for i := range b.cells {
		if b.cells[i].Sender == c.Sender && b.cells[i].Kind == c.Kind {
			return i
		}
	}
	return -1
}

// indexCell keeps the index in step with the cell just appended; mu is held.
func (b *mailbox) indexCell(c Cell) {
	switch {
	case b.cellIndex != nil:
		b.cellIndex[cellKey{c.Sender, c.Kind}] = len(b.cells) - 1
	case len(b.cells) > cellsKept:
		b.cellIndex = make(map[cellKey]int, 2*len(b.cells))
		for i, k := range b.cells {
			b.cellIndex[cellKey{k.Sender, k.Kind}] = i
		}
	}
}
