// Package storage keeps the log of a shard: batches in offset order, a readable end, and readers that catch up and
// then wait. MemLog is the log of an ephemeral shard: a bounded ring in memory.
//
// Guarantees, each a test of the same name:
//   - a reader sees the batches of a log in offset order, each once, and none before it was declared readable;
//   - what falls out of the ring before a reader took it is counted to that reader as lost;
//   - memory stays inside the ring's bounds and the node's budget, except for one batch per log.
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
}

// MemLog is an append-only log in memory. One goroutine appends; any number read.
//
//  1. ring holds the newest batches, contiguous: each begins where the one before it ends;
//  2. oldest <= readable <= tail; only what lies below readable is given to readers;
//  3. a waiter is in the list only while nothing at its offset is readable and the log is open.
type MemLog struct {
	opts MemLogOptions

	mu       sync.Mutex
	ring     []*batch.Batch // circular, length a power of two or zero
	head     int            // index of the oldest batch
	count    int
	bytes    int64
	oldest   id.Offset
	readable id.Offset
	tail     id.Offset
	closed   CloseReason
	waiters  Waiter // sentinel of a circular list
}

var _ Reader = (*MemLog)(nil)

// NewMemLog returns an empty log that begins at offset first.
func NewMemLog(first id.Offset, opts MemLogOptions) *MemLog {
	l := &MemLog{opts: opts, oldest: first, readable: first, tail: first}
	l.waiters.next, l.waiters.prev = &l.waiters, &l.waiters
	return l
}

// Append adds claimed batches at the tail. They become readable with SetReadable, not before. A batch that does not
// begin at the tail is a broken invariant of the caller.
func (l *MemLog) Append(batches []*batch.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range batches {
		if b.Base != l.tail || b.Count == 0 {
			panic(fmt.Sprintf("storage: batch of %d records at offset %d does not continue a log that ends at %d", b.Count, b.Base, l.tail))
		}
		l.tail = b.End()
		if l.opts.MaxBatches > 0 {
			l.push(b)
		}
	}
}

// SetReadable lets readers see everything below end and wakes those that waited for it.
func (l *MemLog) SetReadable(end id.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end > l.tail {
		panic(fmt.Sprintf("storage: readable end %d past the tail %d", end, l.tail))
	}
	if end <= l.readable { // the ring may have run ahead: what it dropped counts as readable and lost
		return
	}
	if l.opts.MaxBatches == 0 {
		l.oldest = end
	}
	l.readable = end
	l.ringWaiters()
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
	return l.bytes
}

// Read implements Reader.
func (l *MemLog) Read(from id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) (Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := Page{Batches: dst[:0], Next: from}
	if from < l.oldest {
		page.Lost = l.oldest.Since(from)
		page.Next = l.oldest
	}
	bytes := 0
	for i := l.find(page.Next); i < l.count && len(page.Batches) < maxBatches; i++ {
		b := l.at(i)
		if b.End() > l.readable {
			break
		}
		bytes += b.Size()
		if len(page.Batches) > 0 && bytes > maxBytes {
			break
		}
		page.Batches = append(page.Batches, b)
		page.Next = b.End()
	}
	if len(page.Batches) == 0 && l.closed != 0 {
		return page, &ClosedError{Reason: l.closed}
	}
	return page, nil
}

// Arm implements Reader.
func (l *MemLog) Arm(w *Waiter, from id.Offset) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.armed {
		panic("storage: waiter armed twice")
	}
	if l.closed != 0 || from < l.readable {
		return false
	}
	w.armed = true
	w.prev, w.next = l.waiters.prev, &l.waiters
	w.prev.next, w.next.prev = w, w
	return true
}

// Disarm implements Reader.
func (l *MemLog) Disarm(w *Waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.armed {
		w.unlink()
	}
}

// Close ends the log. Readers get what is still readable, then a *ClosedError. The ring's memory is given back when
// the last reader has let go of it.
func (l *MemLog) Close(reason CloseReason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != 0 {
		return
	}
	l.closed = reason
	if l.opts.Budget != nil {
		l.opts.Budget.Give(l.bytes)
	}
	l.bytes = 0
	l.ringWaiters()
}

func (l *MemLog) ringWaiters() {
	for w := l.waiters.next; w != &l.waiters; w = l.waiters.next {
		w.unlink()
		w.Ring()
	}
}

func (w *Waiter) unlink() {
	w.prev.next, w.next.prev = w.next, w.prev
	w.next, w.prev, w.armed = nil, nil, false
}

// push adds b to the ring and drops the oldest batches until the bounds hold again; b itself always stays.
func (l *MemLog) push(b *batch.Batch) {
	if l.closed != 0 {
		return
	}
	if l.count == len(l.ring) {
		l.resize(max(16, 2*len(l.ring)))
	}
	l.ring[(l.head+l.count)&(len(l.ring)-1)] = b
	l.count++
	size := int64(b.Size())
	l.bytes += size
	fits := l.opts.Budget == nil || l.opts.Budget.Take(size)
	for l.count > 1 && (l.count > l.opts.MaxBatches || l.bytes > l.opts.MaxBytes || !fits) {
		l.dropOldest()
		fits = l.opts.Budget == nil || !l.opts.Budget.Over()
	}
	if len(l.ring) > 64 && l.count < len(l.ring)/4 {
		l.resize(len(l.ring) / 2)
	}
}

func (l *MemLog) dropOldest() {
	b := l.ring[l.head]
	l.ring[l.head] = nil
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.count--
	l.bytes -= int64(b.Size())
	l.oldest = b.End()
	if l.readable < l.oldest { // a batch that no reader was allowed to see yet has gone: it is lost to all of them
		l.readable = l.oldest
	}
	if l.opts.Budget != nil {
		l.opts.Budget.Give(int64(b.Size()))
	}
}

func (l *MemLog) resize(n int) {
	next := make([]*batch.Batch, n)
	for i := 0; i < l.count; i++ {
		next[i] = l.at(i)
	}
	l.ring, l.head = next, 0
}

func (l *MemLog) at(i int) *batch.Batch { return l.ring[(l.head+i)&(len(l.ring)-1)] }

// find returns the index of the batch that holds offset o, or of the first one after it.
func (l *MemLog) find(o id.Offset) int {
	lo, hi := 0, l.count
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if l.at(mid).End() <= o {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
