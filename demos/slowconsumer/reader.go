package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// pace is how a reader reads.
type pace int

const (
	atFullSpeed pace = iota
	notAtAll
	slowly
)

// reader is one subscriber, on a connection of its own.
type reader struct {
	tracker
	client *client.Client
	sub    *client.Subscription
	gap    time.Duration // between two records while reading slowly

	mu      sync.Mutex
	pace    pace
	changed chan struct{} // closed when pace changes
}

// receiveWindow holds a quarter of a second of the load, or what a client's windows begin with if that is less: a reader that stops is
// felt at the broker soon, and one that reads is not held up by a round trip on a busy machine.
func (o options) receiveWindow() uint64 {
	most := transport.DefaultClientWindows().StreamInitial
	return max(16<<10, min(most, uint64(o.rate*(o.payload+wire.PayloadOverhead)/4)))
}

// newReader connects and subscribes, with a window of so many batches; everything published after it returns counts.
func newReader(ctx context.Context, b *local.Broker, o options, capacity int) (*reader, error) {
	co := b.Client()
	co.EventStreamRecvWindow, co.EventConnRecvWindow = o.receiveWindow(), 2*o.receiveWindow()
	co.CacheStreamRecvWindow, co.CacheConnRecvWindow = co.EventStreamRecvWindow, co.EventConnRecvWindow // one connection carries both
	c, err := client.Connect(ctx, co)
	if err != nil {
		return nil, err
	}
	sub, err := c.Subscribe(ctx, local.Namespace, streamName, client.SubscribeOptions{QueueCapacity: uint32(capacity)})
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return &reader{client: c, sub: sub, gap: time.Second * slowShare / time.Duration(o.rate), changed: make(chan struct{})}, nil
}

func (r *reader) set(p pace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pace = p
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *reader) now() (pace, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pace, r.changed
}

// read reads until ctx ends, which is no error, or something is wrong.
func (r *reader) read(ctx context.Context) error {
	due := time.Now() // of the next record, while reading slowly
	for {
		p, changed := r.now()
		switch p {
		case notAtAll:
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil
			}
		case slowly:
			if due = due.Add(r.gap); time.Until(due) > pausesFrom {
				if !pause(ctx, time.Until(due), changed) {
					return nil
				}
			} else if time.Since(due) > time.Second { // after another pace: the past is not made up for
				due = time.Now()
			}
		case atFullSpeed:
		}
		e, err := r.sub.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.take(e.Payload); err != nil {
			return err
		}
	}
}

// pausesFrom is the shortest pause that a timer is worth.
const pausesFrom = time.Millisecond

// pause waits for d or a change of pace; false means that ctx has ended.
func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *reader) close(ctx context.Context) error {
	r.sub.Close()
	if err := r.client.Close(ctx); err != nil {
		return fmt.Errorf("close subscriber: %w", err)
	}
	return nil
}
