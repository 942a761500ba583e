// Package storage keeps the log of a shard: batches in offset order, a readable end, and readers that catch up and
// then wait. MemLog is the log of an ephemeral shard: a bounded ring in memory.
//
// Guarantees, each a test of the same name:
//   - a reader sees the batches of a log in offset order, each once, and none before it was declared readable;
//   - what was queued for a reader is delivered; what arrives at its full window is lost to it alone and counted at once, or,
//     under Block, holds up the acknowledgement and is never lost;
//   - memory stays inside the rings, the readers' budget, and what readers have in hand, except for one batch per log.
package storage

import (
	"fmt"
	"sync"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// MemLogOptions bounds one in-memory log.
type MemLogOptions struct {
	// MaxBatches and MaxBytes bound the ring. Zero MaxBatches keeps nothing for readers (a log that only feeds a fold).
	MaxBatches int
	MaxBytes   int64
	// Budget is shared by all in-memory logs of a node; nil means only the two bounds above apply.
	Budget *Budget
	// Readers is what the readers of a node share; nil on a log that has none. CatchUp means DropNew to a log that is not Durable.
	Readers *Readers
	// Durable says that what leaves the ring can be read elsewhere: see CatchUp.
	Durable bool
}

// MemLog is an append-only log in memory. One goroutine appends; any number read.
//
//  1. ring holds the newest batches, those that are not readable yet at its end;
//  2. kept holds what has left the ring and some reader still needs;
//  3. oldest <= readable <= tail; only what lies below readable is given to readers;
//  4. every reader was given each readable batch from its position on, unless its window says that it lies in a hole;
//     slot.refs counts those who were;
//  5. a reader is in waiting only while nothing is queued for it and the log is open; it is in running otherwise;
//  6. released <= readable is the end of what lies in every reader's window, and is readable unless the policy is Block.
type MemLog struct {
	opts   MemLogOptions
	policy Policy

	mu       sync.Mutex
	ring     ring
	kept     keptList
	oldest   id.Offset
	readable id.Offset
	tail     id.Offset
	released id.Offset
	told     bool   // Released has told of an end below readable, and room is owed
	room     func() // see OnRoom
	closed   CloseReason

	waiting cursorList
	running cursorList
	cursors []*memCursor // by number
}

var _ Reader = (*MemLog)(nil)

// NewMemLog returns an empty log that begins at offset first.
func NewMemLog(first id.Offset, opts MemLogOptions) *MemLog {
	l := &MemLog{opts: opts, oldest: first, readable: first, tail: first, released: first}
	if r := opts.Readers; r != nil {
		l.policy = r.Policy()
		if l.policy == CatchUp && !opts.Durable {
			l.policy = DropNew
		}
		l.kept.budget = r.Budget()
	}
	return l
}

// Append adds claimed batches at the tail. They become readable with SetReadable, not before, and stay in the ring until
// then. A batch that does not begin at the tail is a broken invariant of the caller.
func (l *MemLog) Append(batches []*batch.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range batches {
		if b.Base != l.tail || b.Count == 0 {
			panic(fmt.Sprintf("storage: batch of %d records at offset %d does not continue a log that ends at %d", b.Count, b.Base, l.tail))
		}
		l.tail = b.End()
		if l.opts.MaxBatches > 0 && l.closed == 0 {
			l.ring.push(b)
			if l.opts.Budget != nil {
				l.opts.Budget.Take(int64(b.Size())) // trim looks whether it is over
			}
		}
	}
}

// SetReadable gives everything below end to the readers, wakes those that waited for it, and lets the oldest batches leave
// the ring until its bounds hold again.
func (l *MemLog) SetReadable(end id.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end > l.tail {
		panic(fmt.Sprintf("storage: readable end %d past the tail %d", end, l.tail))
	}
	if end <= l.readable || l.closed != 0 {
		return
	}
	from := l.readable
	l.readable = end
	if l.opts.MaxBatches == 0 {
		l.oldest, l.released = end, end
		return
	}
	l.give(l.ring.find(from), l.ring.find(end))
	l.advance()
	l.trim()
}

// OnRoom sets what is called when there is more room than Released has told: once after each time it told of an end below the
// readable one. It is called with the log's lock held: it must not block and must not call back.
func (l *MemLog) OnRoom(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room = f
}

// Released is the end of what every reader has room for: publishes below it may be acknowledged. Only under Block it is ever
// below the readable end. Nobody holds up a log that is closed.
func (l *MemLog) Released() id.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != 0 {
		return l.tail
	}
	l.told = l.released < l.readable
	return l.released
}

// Discard takes back what was appended from offset end on and is not readable yet: its write failed.
func (l *MemLog) Discard(end id.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end < l.readable {
		panic(fmt.Sprintf("storage: discard from %d on, below the readable end %d", end, l.readable))
	}
	for l.ring.count > 0 && l.ring.at(l.ring.count-1).end > end {
		s := l.ring.popNewest()
		if s.batch.Base < end {
			panic(fmt.Sprintf("storage: discard from %d on, inside the batch [%d, %d)", end, s.batch.Base, s.end))
		}
		if l.opts.Budget != nil {
			l.opts.Budget.Give(int64(s.batch.Size()))
		}
	}
	l.tail = min(l.tail, end)
}

// Bounds implements Reader.
func (l *MemLog) Bounds() (oldest, end id.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldest, l.readable
}

// Tail is the offset after the last appended record, readable or not.
func (l *MemLog) Tail() id.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail
}

// Bytes is what the ring holds, in bytes as Batch.Size counts them.
func (l *MemLog) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ring.bytes
}

// Kept is what the log holds for readers beside the ring, in the same bytes.
func (l *MemLog) Kept() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.bytes
}

// Close ends the log. Readers get what was queued for them, which is kept until they have it, then a *ClosedError. Nobody waits
// for a reader any more.
func (l *MemLog) Close(reason CloseReason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != 0 {
		return
	}
	l.closed = reason
	for l.ring.count > 0 {
		l.popRing(true)
	}
	l.ring = ring{}
	l.oldest = l.readable
	l.advance()
	for c := l.running.first(); c != nil; c = l.running.after(c) {
		if c.enoughBatches > 0 {
			c.ring()
		}
	}
	for c := l.waiting.first(); c != nil; c = l.waiting.first() {
		l.running.take(c)
		c.ring()
	}
}

// trim drops the oldest batches that are readable until the bounds of the ring hold; the newest always stays.
func (l *MemLog) trim() {
	for l.ring.count > 1 && l.ring.at(0).end <= l.readable && l.overfull() {
		l.oldest = l.ring.at(0).end
		l.popRing(false)
	}
}

func (l *MemLog) overfull() bool {
	return l.ring.count > l.opts.MaxBatches || l.ring.bytes > l.opts.MaxBytes || l.opts.Budget != nil && l.opts.Budget.Over()
}

// popRing takes the oldest batch out of the ring. Whoever needs it keeps it: always when owed says so, else within the
// budget.
func (l *MemLog) popRing(owed bool) {
	s := l.ring.pop()
	size := int64(s.batch.Size())
	if l.opts.Budget != nil {
		l.opts.Budget.Give(size)
	}
	if s.refs == 0 {
		return
	}
	budget := l.opts.Readers.Budget()
	if !budget.Take(size) && !owed && l.policy != Block {
		l.cut(&s)
	}
	if s.refs == 0 {
		budget.Give(size)
		return
	}
	l.kept.add(s)
}

// cut is for a batch that leaves the ring while the readers' budget is used up: who has it in hand keeps it; to the others it
// is lost, together with what was kept for them before it, which makes room. They go on with the ring.
func (l *MemLog) cut(s *slot) {
	for c := l.running.first(); c != nil; c = l.running.after(c) {
		if c.next < s.end && c.win.has(s.batch.Base) {
			c.cutTo(s)
		}
	}
	l.kept.compact()
}

// advance moves released over what nobody is held up by, and tells the shard if it waits for that.
func (l *MemLog) advance() {
	was := l.released
	if l.closed != 0 || l.opts.Readers == nil || l.policy != Block {
		l.released = l.readable
	}
	for l.released < l.readable {
		s := l.slot(l.seek(l.released))
		if s.beyond > 0 {
			l.released = s.batch.Base
			break
		}
		l.released = min(s.end, l.readable) // what nobody needed may be gone, up to the first that is not readable
	}
	if l.released > was && l.told {
		l.told = false
		if l.room != nil {
			l.room()
		}
	}
}
