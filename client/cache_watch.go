package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync/atomic"

	"github.com/felixd/felixd/wire/id"
)

// CacheWatch delivers the changes of a cache, see Client.WatchCache. Order holds within a shard only. It goes on by itself after a
// lost connection, a lag or a move, from the first change of each shard that was not returned: every change comes once. Where
// the broker no longer has that history, as after compaction, a snapshot comes instead: see ItemSnapshot. Its methods may be
// called from several goroutines.
type CacheWatch struct {
	op        string
	sources   []*source
	merger    *merger
	positions map[uint32]*position // does not change
	retained  map[uint32]uint64    // does not change
	closed    atomic.Bool

	turn chan struct{} // the right to take items
}

func newCacheWatch(c *Client, op string, sources []*source) (*CacheWatch, error) {
	w := &CacheWatch{
		op: op, sources: sources, positions: make(map[uint32]*position), retained: make(map[uint32]uint64), turn: make(chan struct{}, 1),
	}
	w.turn <- struct{}{}
	feeds := make([]shardFeed, len(sources))
	for i, s := range sources {
		feeds[i] = shardFeed{shard: s.shard, feed: s}
		p := &position{}
		w.positions[s.shard] = p
		snap := s.current().snap
		switch {
		case snap == nil:
			p.set(s.next)
		case snap.back.Set: // until the snapshot that replaces what was known is returned
			p.set(snap.back.V)
		case snap.left == 0:
			p.set(snap.frontier)
		}
		if snap != nil && snap.counted {
			w.retained[s.shard] = snap.left
		}
	}
	var err error
	if w.merger, err = startMerger(c, op, feeds); err != nil {
		w.stopSources()
		return nil, err
	}
	return w, nil
}

// Shards are the shards that are watched, in order.
func (w *CacheWatch) Shards() []uint32 {
	shards := make([]uint32, len(w.sources))
	for i, s := range w.sources {
		shards[i] = s.shard
	}
	return shards
}

// Retained is how many current values come first, by shard: of those that began with a snapshot. 0 says for certain that the
// shard has none. It tells how the watch began, and does not change.
func (w *CacheWatch) Retained() map[uint32]uint64 {
	retained := make(map[uint32]uint64, len(w.retained))
	for _, s := range w.sources {
		if n, ok := w.retained[s.shard]; ok {
			retained[s.shard] = n
		}
	}
	return retained
}

// Positions are where another watch goes on, for WatchOptions.From: of each shard the offset after the last change returned, or
// that of its first. While a snapshot is not returned whole, it is where the watch was before, and a shard that has been
// nowhere yet is not in it.
func (w *CacheWatch) Positions() map[uint32]id.Offset {
	all := make(map[uint32]id.Offset, len(w.sources))
	for _, s := range w.sources {
		if offset, ok := w.positions[s.shard].get(); ok {
			all[s.shard] = offset
		}
	}
	return all
}

// NextItem waits for the next change of any shard, or for news of one. io.EOF says that all shards have ended. The error of
// ctx loses nothing. After Close it returns ErrClosed.
func (w *CacheWatch) NextItem(ctx context.Context) (CacheItem, error) {
	if ctx.Err() != nil {
		return CacheItem{}, w.interrupted(ctx)
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return CacheItem{}, w.interrupted(ctx)
	}
	defer func() { w.turn <- struct{}{} }()
	if w.closed.Load() {
		return CacheItem{}, w.closedError()
	}
	select {
	case p := <-w.merger.pieces:
		return w.take(p), nil
	case <-ctx.Done():
		return CacheItem{}, w.interrupted(ctx)
	case <-w.merger.over:
		if w.merger.ctx.Err() == nil {
			return CacheItem{}, io.EOF
		}
		return CacheItem{}, w.closedError()
	}
}

// take makes an item of a piece, and notes how far it gets.
func (w *CacheWatch) take(p mergedPiece) CacheItem {
	if p.at.Set {
		w.positions[p.shard].set(p.at.V)
	}
	if p.item != nil {
		return *p.item
	}
	return CacheItem{Kind: p.kind, Shard: p.shard, Err: p.err, Exact: p.exact}
}

// Next is NextItem for those who want changes only. Losses that the client takes care of are passed over, and so are the
// bounds of snapshots, see CacheChange.Resnapshot. A shard that ended with an error is a *ShardError, after which the others go on
// with the next call.
func (w *CacheWatch) Next(ctx context.Context) (CacheChange, error) {
	for {
		item, err := w.NextItem(ctx)
		switch {
		case err != nil:
			return CacheChange{}, err
		case item.Kind == ItemEvent:
			return item.Change, nil
		case item.Kind == ItemShardEnded && item.Err != nil:
			return CacheChange{}, &ShardError{Shard: item.Shard, Err: item.Err}
		}
	}
}

// Changes iterates over the changes until all shards have ended, ctx ends, or the watch is closed. The end of one of several
// shards is one pair with a *ShardError, after which the iteration goes on.
func (w *CacheWatch) Changes(ctx context.Context) iter.Seq2[CacheChange, error] {
	return eachUntilEnd(func() (CacheChange, error) { return w.Next(ctx) })
}

// Close ends the watch and returns when nothing of it runs any more. Closing again does nothing.
func (w *CacheWatch) Close() {
	if w.closed.Swap(true) {
		return
	}
	w.merger.cancel()
	w.stopSources()
	<-w.merger.over
}

func (w *CacheWatch) stopSources() {
	for _, s := range w.sources {
		s.stop()
	}
}

func (w *CacheWatch) interrupted(ctx context.Context) error {
	return fmt.Errorf("%s: wait for a change: %w", w.op, ctx.Err())
}

func (w *CacheWatch) closedError() error {
	return fmt.Errorf("%s: the watch is %w", w.op, ErrClosed)
}
