// Package durable is the log of a durable shard as its readers see it: a tail in memory in front of what is stored. A reader that is
// behind the tail reads from disk, page by page and at its own pace; once it has come to what the tail holds it is live there, under the
// rules of package storage. Nothing is decided for it before: what lies between where it begins and where it joins the tail is never
// dropped, and holds up nobody.
//
// Guarantees, each a test of the same name:
//   - a reader sees every record once and in order, across the joint between disk and tail;
//   - what was removed by retention before it was read is an error that names the oldest offset, never a gap;
//   - under CatchUp a reader that falls out of its window goes on from disk and loses nothing;
//   - one page of a reader is all that it holds of what is on disk.
package durable

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire/id"
)

// Disk is the stored part of a log.
type Disk interface {
	// Bounds returns the oldest offset kept, the end of what is on the device, and the end of what is written.
	Bounds() (base, durable, tail id.Offset)
	// Read returns whole batches, see storage.History; below the oldest offset the error is a *disklog.TrimmedError.
	Read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error)
	// OffsetForTime is that of storage.History, below end.
	OffsetForTime(ctx context.Context, micros uint64, end id.Offset) (id.Offset, bool, error)
	// Whole reports whether nothing that was ever appended was removed at the head.
	Whole() bool
	// PassedOver reports whether a reader that was told of all below an offset was told of what is lost, so that it must not go on there; next is
	// behind that.
	PassedOver(o id.Offset) (next id.Offset, yes bool)
}

var _ Disk = (*disklog.Log)(nil)

// Log is the log of a durable shard. One goroutine appends; any number read. What it appends has to be given to the disk as well, and is
// made readable only when it is stored there.
type Log struct {
	*storage.MemLog
	disk    Disk
	readers *storage.Readers

	mu     sync.Mutex
	behind []*cursor // readers that are not in the tail, by number
	closed *storage.ClosedError
}

var (
	_ storage.Reader  = (*Log)(nil)
	_ storage.History = (*Log)(nil)
)

// New returns the log over what disk holds, with an empty tail that o bounds: its Readers must be set. Everything stored is readable once
// SetReadable says so.
func New(disk Disk, o storage.MemLogOptions) *Log {
	_, _, tail := disk.Bounds()
	o.Durable = true
	return &Log{MemLog: storage.NewMemLog(tail, o), disk: disk, readers: o.Readers}
}

// Bounds implements storage.Reader and storage.History.
func (l *Log) Bounds() (oldest, end id.Offset) {
	base, _, _ := l.disk.Bounds()
	_, end = l.MemLog.Bounds()
	return min(base, end), end
}

// Close ends the log: readers in the tail get what was queued for them, then a *storage.ClosedError, those behind it get that at
// once and resume when the shard is open again.
func (l *Log) Close(reason storage.CloseReason) {
	l.mu.Lock()
	if l.closed == nil {
		l.closed = &storage.ClosedError{Reason: reason}
	}
	l.mu.Unlock()
	l.MemLog.Close(reason)
}

func (l *Log) closedError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil {
		return nil
	}
	return l.closed
}

// Register implements storage.Reader.
func (l *Log) Register(o storage.CursorOptions) (storage.Cursor, error) {
	oldest, end := l.Bounds()
	from := end
	switch o.Start {
	case storage.StartLatest:
	case storage.StartEarliest:
		from = oldest
	case storage.StartOffset:
		if o.Offset == 0 && l.disk.Whole() { // from the beginning, and the log has it, wherever its offsets begin
			from = oldest
			break
		}
		if o.Offset < oldest {
			return nil, &storage.TooOldError{Requested: o.Offset, Oldest: oldest}
		}
		if next, yes := l.disk.PassedOver(o.Offset); yes {
			return nil, &storage.TooOldError{Requested: o.Offset, Oldest: next}
		}
		if o.Offset > end {
			return nil, &storage.InFutureError{Requested: o.Offset, Tail: end}
		}
		from = o.Offset
	}
	c := &cursor{log: l, opts: o, joined: storage.Joined{Number: l.readers.Number(), Start: from, Live: end}, pos: from}
	if !c.join() {
		c.fallBehind()
	}
	return c, nil
}

// Read implements storage.History.
func (l *Log) Read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	if err := l.closedError(); err != nil {
		return dst[:0], err
	}
	_, readable := l.Bounds()
	if end = min(end, readable); from >= end {
		if oldest, _ := l.Bounds(); from < oldest {
			return dst[:0], &storage.TooOldError{Requested: from, Oldest: oldest}
		}
		return dst[:0], nil
	}
	got, err := l.disk.Read(ctx, from, end, maxBatches, maxBytes, dst)
	return got, l.explain(err)
}

// OffsetForTime implements storage.History.
func (l *Log) OffsetForTime(ctx context.Context, micros uint64) (o id.Offset, ok bool, err error) {
	if err := l.closedError(); err != nil {
		return 0, false, err
	}
	_, end := l.Bounds()
	o, ok, err = l.disk.OffsetForTime(ctx, micros, end)
	return o, ok, l.explain(err)
}

// explain says in this package's terms what went wrong on disk.
func (l *Log) explain(err error) error {
	var trimmed *disklog.TrimmedError
	var closed *disklog.ClosedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &trimmed):
		return &storage.TooOldError{Requested: trimmed.Requested, Oldest: trimmed.Oldest}
	case errors.As(err, &closed):
		if ended := l.closedError(); ended != nil {
			return ended
		}
		return &storage.ClosedError{Reason: storage.ClosedFailed} // it is closed only under a shard that comes back
	}
	return err
}

// Cursors implements storage.Reader.
func (l *Log) Cursors(after uint64, limit int) []storage.CursorState {
	out := l.MemLog.Cursors(after, limit)
	_, tail := l.Bounds()
	l.mu.Lock()
	for i := l.above(after); i < len(l.behind) && i < l.above(after)+limit; i++ {
		out = append(out, l.behind[i].state(tail))
	}
	l.mu.Unlock()
	sort.Slice(out, func(i, j int) bool { return out[i].Number < out[j].Number })
	return out[:min(limit, len(out))]
}

// Behind is how many readers are reading from disk.
func (l *Log) Behind() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.behind)
}

// above is the index of the first reader behind the tail with a number above n.
func (l *Log) above(n uint64) int {
	return sort.Search(len(l.behind), func(i int) bool { return l.behind[i].joined.Number > n })
}

func (l *Log) addBehind(c *cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.behind = slices.Insert(l.behind, l.above(c.joined.Number), c)
}

func (l *Log) dropBehind(c *cursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.above(c.joined.Number - 1); i < len(l.behind) && l.behind[i] == c {
		l.behind = slices.Delete(l.behind, i, i+1)
	}
}
