package client

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// startWorkers starts as many workers as there are records waiting, up to the bound. They are no part of the client's life: Close
// cannot end a handler that does not heed its context. The lock is held.
func (k *Consumer) startWorkers() {
	for range min(k.ready.len(), k.opts.Concurrency-k.workers) {
		k.workers++
		go k.run()
	}
}

// run handles records while there are any.
func (k *Consumer) run() {
	ended := false
	defer func() {
		if !ended { // a handler ended the goroutine
			k.mu.Lock()
			defer k.mu.Unlock()
			k.workers--
			k.startWorkers()
		}
	}()
	for d, ctx := k.begin(); d != nil; d, ctx = k.begin() {
		k.handle(ctx, d)
	}
	ended = true
}

// begin takes the next record. Those whose claim is gone are dropped: somebody else may have them, or they come again. Without one the
// worker is not counted any more.
func (k *Consumer) begin() (*delivery, context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.ready.len() > 0 {
		d := k.ready.remove(0)
		if d.gone != nil || k.client.now().After(d.until) {
			k.stats.Lapsed++
			d.drop()
			continue
		}
		d.state = working
		k.running++
		ctx, cancel := context.WithCancelCause(k.handling)
		d.cancel = cancel
		return d, ctx
	}
	k.workers--
	return nil, nil
}

// handle calls the handler and settles the record by its outcome.
func (k *Consumer) handle(ctx context.Context, d *delivery) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = &PanicError{Value: recover(), Stack: debug.Stack()}
		}
		k.handled(d, err)
	}()
	err = k.handler(ctx, d.m)
	returned = true
}

// handled settles a record by what its handler came to.
func (k *Consumer) handled(d *delivery, err error) {
	delay := longestRetryDelay // if RetryDelay ends the goroutine
	defer func() { k.conclude(d, err, delay) }()
	if err != nil {
		delay = k.delayOf(d.m, err)
	}
}

// conclude is handled when it is known after which pause the record may come again.
func (k *Consumer) conclude(d *delivery, err error, delay time.Duration) {
	m := d.m
	k.mu.Lock()
	d.cancel(nil)
	k.running--
	k.count(err)
	if err != nil {
		k.reporting++
	}
	switch {
	case d.state != working: // Stop gave it back meanwhile
	case d.superseded:
		d.forget()
	case err == nil:
		d.settle(ackIt, 0)
	case errors.Is(err, ErrDeadLetter):
		d.settle(deadLetterIt, 0)
	case d.gone != nil: // it would be refused
		d.drop()
	default:
		d.settle(nackIt, delay)
	}
	k.mu.Unlock()
	if err != nil {
		defer k.reported()
		k.report(&m, fmt.Errorf("%s: handle offset %s of shard %d: %w", k.op, m.Offset, m.Shard, err))
	}
}

func (k *Consumer) reported() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reporting--
	k.freed.ring()
}

// delayOf asks for the pause of a record that failed. Who asks must not be brought down by the one asked.
func (k *Consumer) delayOf(m Message, err error) (delay time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			delay = longestRetryDelay
			k.report(&m, &PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	return k.opts.delayOf(m, err)
}

// count counts an outcome. The lock is held.
func (k *Consumer) count(err error) {
	var panicked *PanicError
	if err != nil {
		k.stats.Failed++
		if errors.As(err, &panicked) {
			k.stats.Panics++
		}
	}
}
