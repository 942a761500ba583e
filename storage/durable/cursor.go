package durable

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// cursor is one reader of a Log: in the tail while live is set, else behind it.
//
//  1. everything below pos was handed out or lies in a hole that was told of, nothing from pos on was;
//  2. while it is behind it is in Log.behind, and hand bytes of the readers' budget are its page.
type cursor struct {
	log    *Log
	opts   storage.CursorOptions
	joined storage.Joined
	live   storage.Cursor
	pos    id.Offset
	hand   int64

	at      atomic.Uint64 // pos, for those who list readers
	bytes   atomic.Int64  // hand, for the same
	dropped atomic.Uint64
}

var _ storage.Cursor = (*cursor)(nil)

// Start implements storage.Cursor.
func (c *cursor) Start() id.Offset { return c.joined.Start }

// Live implements storage.Cursor.
func (c *cursor) Live() id.Offset { return c.joined.Live }

// Behind implements storage.Cursor.
func (c *cursor) Behind() bool { return c.live == nil }

// join goes on in the tail if that holds all that follows.
func (c *cursor) join() bool {
	live, ok := c.log.MemLog.Join(c.opts, c.pos, c.joined)
	if ok {
		c.live = live
	}
	return ok
}

// fallBehind goes on from disk.
func (c *cursor) fallBehind() {
	if c.live != nil {
		c.live.Release()
		c.live = nil
	}
	c.at.Store(uint64(c.pos))
	c.log.addBehind(c)
}

// catchUp joins the tail if the reader was behind it and has come to it.
func (c *cursor) catchUp() bool {
	if c.live != nil {
		return true
	}
	if !c.join() {
		return false
	}
	c.finish()
	c.log.dropBehind(c)
	return true
}

// Take implements storage.Cursor.
func (c *cursor) Take(ctx context.Context, maxBatches, maxBytes int, dst []*batch.Batch) (storage.Page, error) {
	for {
		c.finish()
		if !c.catchUp() {
			return c.fromDisk(ctx, maxBatches, maxBytes, dst)
		}
		page, err := c.live.Take(ctx, maxBatches, maxBytes, dst)
		page.From = max(page.From, c.pos)
		if page.Lost > 0 && c.log.readers.Policy() == storage.CatchUp {
			c.fallBehind()
			continue
		}
		page.Next = max(page.Next, c.pos)
		if len(page.Batches) > 0 {
			page.Batches[0] = page.Batches[0].From(c.pos)
		}
		c.pos = page.Next
		return page, err
	}
}

// fromDisk reads the next page of a reader behind the tail. There is one: whatever is readable and not in the tail is stored.
func (c *cursor) fromDisk(ctx context.Context, maxBatches, maxBytes int, dst []*batch.Batch) (storage.Page, error) {
	page := storage.Page{From: c.pos, Batches: dst[:0], Next: c.pos}
	if err := c.log.closedError(); err != nil {
		return page, err
	}
	_, end := c.log.Bounds()
	got, err := c.log.disk.Read(ctx, c.pos, end, maxBatches, maxBytes, dst)
	if err != nil {
		return page, c.log.explain(err)
	}
	if len(got) == 0 || got[0].Base > c.pos || got[0].End() <= c.pos {
		return page, fmt.Errorf("read log: nothing is stored at offset %d, below the readable end %d", c.pos, end)
	}
	got[0] = got[0].From(c.pos)
	for _, b := range got {
		c.hand += int64(b.Size())
	}
	c.log.readers.Budget().Take(c.hand)
	c.pos = got[len(got)-1].End()
	c.at.Store(uint64(c.pos))
	c.bytes.Store(c.hand)
	page.Batches, page.Next = got, c.pos
	return page, nil
}

// finish lets go of a page from disk.
func (c *cursor) finish() {
	if c.hand > 0 {
		c.log.readers.Budget().Give(c.hand)
		c.hand = 0
		c.bytes.Store(0)
	}
}

// LetGo implements storage.Cursor.
func (c *cursor) LetGo() { c.finish() }

// Arm implements storage.Cursor.
func (c *cursor) Arm(batches int, bytes int64) bool {
	c.finish()
	return c.catchUp() && c.live.Arm(batches, bytes)
}

// Disarm implements storage.Cursor.
func (c *cursor) Disarm() {
	if c.live != nil {
		c.live.Disarm()
	}
}

// Drop implements storage.Cursor.
func (c *cursor) Drop(records uint64) {
	if c.live != nil {
		c.live.Drop(records)
		return
	}
	c.dropped.Add(records)
	c.log.readers.Lose(storage.Drop{Owner: c.opts.Owner, From: c.pos, To: c.pos, Records: records, Why: storage.NotPassedOn})
}

// Release implements storage.Cursor.
func (c *cursor) Release() {
	c.finish()
	if c.live != nil {
		c.live.Release()
		return
	}
	c.log.dropBehind(c)
}

// state describes a reader behind the tail.
func (c *cursor) state(tail id.Offset) storage.CursorState {
	return storage.CursorState{
		Number: c.joined.Number, Owner: c.opts.Owner, Bytes: c.bytes.Load(), Capacity: c.opts.Capacity, Start: c.joined.Start,
		Position: id.Offset(c.at.Load()), Tail: tail, Dropped: c.dropped.Load(),
	}
}
