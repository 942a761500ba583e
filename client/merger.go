package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
)

// merger reads several shards at once and hands out what they have, one piece at a time. Each shard has one goroutine that
// holds one piece.
type merger struct {
	pieces chan mergedPiece // unbuffered: a piece is with its goroutine or with the caller, never between
	over   chan struct{}    // closed when all goroutines have ended
	ctx    context.Context
	cancel context.CancelFunc
}

// shardFeed is where the pieces of a shard come from.
type shardFeed struct {
	feed
	shard uint32
}

// mergedPiece is a piece of one shard, or with ended its end.
type mergedPiece struct {
	piece
	shard uint32
	ended bool
}

// startMerger starts the readers. They end with their shard, with cancel, or with the client.
func startMerger(c *Client, op string, feeds []shardFeed) (*merger, error) {
	m := &merger{pieces: make(chan mergedPiece), over: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(c.closing)
	var readers sync.WaitGroup
	readers.Add(len(feeds))
	for _, f := range feeds {
		if !c.life.spawn(func() { defer readers.Done(); m.forward(f) }) {
			m.cancel()
			return nil, closedError(op)
		}
	}
	if !c.life.spawn(func() { readers.Wait(); close(m.over) }) {
		m.cancel()
		return nil, closedError(op)
	}
	return m, nil
}

// forward hands the pieces of one shard over until it ends, and then its end.
func (m *merger) forward(f shardFeed) {
	for ended := false; !ended; {
		p, err := f.pull(m.ctx)
		if m.ctx.Err() != nil {
			return
		}
		if ended = err != nil; ended {
			p = piece{kind: ItemShardEnded}
			if err != io.EOF {
				p.err = err
			}
		}
		select {
		case m.pieces <- mergedPiece{piece: p, shard: f.shard, ended: ended}:
		case <-m.ctx.Done():
			return
		}
	}
}

// eachUntilEnd iterates over what next returns until io.EOF, or an error that is not the end of one shard only.
func eachUntilEnd[T any](next func() (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := next()
			if err == io.EOF {
				return
			}
			var shard *ShardError
			if !yield(v, err) || err != nil && !errors.As(err, &shard) {
				return
			}
		}
	}
}
