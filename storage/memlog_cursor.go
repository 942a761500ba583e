package storage

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// memCursor is one reader of a MemLog. Its fields are the log's: they are used under its lock.
//
//  1. from <= told <= next <= the log's readable end; hand batches from from on are in the reader's hand;
//  2. what the reader was given and has not finished with is: the hand, and everything from next on that lies in no hole;
//  3. beyond of it, from limit on, lie behind its window: publishers wait for them. Only under Block it is more than 0.
type memCursor struct {
	log     *MemLog
	number  uint64
	opts    CursorOptions
	start   id.Offset
	live    id.Offset
	dropped uint64

	win       window
	from      id.Offset
	hand      int
	handBytes int64
	next      id.Offset
	told      id.Offset // where the last page ended
	lost      uint64    // records that were cut off in front of next and no page has told of

	beyond int
	limit  id.Offset

	enoughBatches int // what has the reader rung while it is in running; 0: nothing has
	enoughBytes   int64

	list       *cursorList
	prev, succ *memCursor
}

var _ Cursor = (*memCursor)(nil)

// Register implements Reader.
func (l *MemLog) Register(o CursorOptions) (Cursor, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.readable
	switch o.Start {
	case StartLatest:
	case StartEarliest:
		from = l.oldest
	case StartOffset:
		if o.Offset < l.oldest {
			return nil, &TooOldError{Requested: o.Offset, Oldest: l.oldest}
		}
		if o.Offset > l.readable {
			return nil, &InFutureError{Requested: o.Offset, Tail: l.readable}
		}
		from = o.Offset
	}
	return l.register(o, from, Joined{Number: l.opts.Readers.Number(), Start: from, Live: l.readable}), nil
}

// Joined is what a reader brings along that was somewhere else in the log before.
type Joined struct {
	Number      uint64    // of Readers.Number
	Start, Live id.Offset // see Cursor
}

// Join adds a reader that has read up to from elsewhere. It reports false, and adds none, if the ring no longer holds all that follows.
// The first batch of its first page may begin before from.
func (l *MemLog) Join(o CursorOptions, from id.Offset, j Joined) (Cursor, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < l.oldest || from > l.readable {
		return nil, false
	}
	return l.register(o, from, j), true
}

// register adds a reader that begins at from, which the ring holds. What the ring holds from there on is given to it, the batch that
// from lies in as a whole.
func (l *MemLog) register(o CursorOptions, from id.Offset, j Joined) *memCursor {
	if o.Capacity < 1 || o.Ring == nil || l.opts.Readers == nil || l.opts.MaxBatches == 0 {
		panic(fmt.Sprintf("storage: a reader with a capacity of %d on a log for readers: %t", o.Capacity, l.opts.Readers != nil))
	}
	c := &memCursor{log: l, number: j.Number, opts: o, start: j.Start, live: j.Live}
	c.win = window{maxBatches: o.Capacity, maxBytes: l.opts.Readers.opts.WindowBytes}
	c.next = c.adopt(from)
	c.from, c.told = c.next, c.next
	l.cursors = slices.Insert(l.cursors, l.cursorAbove(c.number), c)
	l.running.take(c)
	return c
}

// adopt gives a new reader the history that the ring holds from an offset on, and returns where that begins.
func (c *memCursor) adopt(from id.Offset) (begin id.Offset) {
	l := c.log
	begin = from
	for i := l.ring.find(from); i < l.ring.count && l.ring.at(i).end <= l.readable; i++ {
		s := l.ring.at(i)
		begin = min(begin, s.batch.Base)
		s.refs++
		c.win.take(1, int64(s.batch.Size()))
	}
	if c.lags() {
		l.opts.Readers.lagging.Add(1)
	}
	return begin
}

// Start implements Cursor.
func (c *memCursor) Start() id.Offset { return c.start }

// Live implements Cursor.
func (c *memCursor) Live() id.Offset { return c.live }

// Take implements Cursor.
func (c *memCursor) Take(_ context.Context, maxBatches, maxBytes int, dst []*batch.Batch) (Page, error) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	c.finish()
	page := Page{From: c.told, Batches: dst[:0], Lost: c.lost}
	c.lost = 0
	if h, ok := c.win.pass(c.next); ok {
		page.Lost += h.records
		c.next, c.from = h.to, h.to
	}
	end := c.win.until(l.readable)
	if c.beyond > 0 {
		end = c.limit
	}
	bytes := 0
	for p := l.seek(c.next); c.next < end && len(page.Batches) < maxBatches; p = l.after(p) {
		b := l.slot(p).batch
		if len(page.Batches) > 0 && bytes+b.Size() > maxBytes {
			break
		}
		if b.Base != c.next {
			panic(fmt.Sprintf("storage: a reader at %d was given [%d, %d)", c.next, b.Base, b.End()))
		}
		page.Batches = append(page.Batches, b)
		bytes += b.Size()
		c.next = b.End()
	}
	c.hand, c.handBytes, page.Next, c.told = len(page.Batches), int64(bytes), c.next, c.next
	if c.hand == 0 && page.Lost == 0 && l.closed != 0 {
		return page, &ClosedError{Reason: l.closed}
	}
	return page, nil
}

// Arm implements Cursor.
func (c *memCursor) Arm(batches int, bytes int64) bool {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.list == &l.waiting || c.enoughBatches > 0 {
		panic("storage: reader armed twice")
	}
	c.finish()
	queued, queuedBytes := c.queued()
	if l.closed != 0 || c.lost > 0 || c.win.noted > 0 || queued >= batches || queuedBytes >= bytes {
		return false
	}
	if batches <= 1 {
		l.waiting.take(c)
	} else {
		c.enoughBatches, c.enoughBytes = batches, bytes
	}
	return true
}

// Disarm implements Cursor.
func (c *memCursor) LetGo() {}

// Disarm implements Cursor.
func (c *memCursor) Disarm() {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.enoughBatches = 0
	if c.list == &c.log.waiting {
		c.log.running.take(c)
	}
}

// Behind implements Cursor: a log in memory is all tail.
func (c *memCursor) Behind() bool { return false }

// Drop implements Cursor.
func (c *memCursor) Drop(records uint64) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.drop(Drop{From: c.next, To: c.next, Records: records, Why: NotPassedOn})
}

// Release implements Cursor.
func (c *memCursor) Release() {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.list == nil {
		return
	}
	c.finish()
	if c.lags() {
		l.opts.Readers.lagging.Add(-1)
	}
	for p := l.seek(c.next); !p.ring || p.i < l.ring.count; p = l.after(p) {
		s := l.slot(p)
		if s.end > l.readable {
			break
		}
		if s.batch == nil || !c.win.has(s.batch.Base) {
			continue
		}
		if c.beyond > 0 && s.batch.Base >= c.limit {
			s.beyond--
		}
		l.unref(p)
	}
	l.kept.compact()
	c.leaveList()
	i := l.cursorAbove(c.number - 1)
	l.cursors = slices.Delete(l.cursors, i, i+1)
	l.advance()
}

// unref notes that a reader has finished with the slot.
func (l *MemLog) unref(p place) {
	s := l.slot(p)
	s.refs--
	if s.refs == 0 && !p.ring {
		l.kept.bury(s)
	}
}

// queued is what waits for the reader, without its hand.
func (c *memCursor) queued() (batches int, bytes int64) {
	return c.win.batches - c.hand + c.beyond, c.win.bytes - c.handBytes
}

// lags reports whether the reader was given something that it has not finished with.
func (c *memCursor) lags() bool { return c.win.batches > 0 }

func (c *memCursor) ring() {
	c.enoughBatches = 0
	c.opts.Ring()
}

func (c *memCursor) ringIfEnough() {
	if c.enoughBatches == 0 {
		return
	}
	if batches, bytes := c.queued(); batches >= c.enoughBatches || bytes >= c.enoughBytes {
		c.ring()
	}
}

// cursorAbove is the index of the first reader with a number above n.
func (l *MemLog) cursorAbove(n uint64) int {
	return sort.Search(len(l.cursors), func(i int) bool { return l.cursors[i].number > n })
}
