package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

var errPumpPanicked = errors.New("the pump panicked")

// delivery is the loop of one subscription: read up to the readable end, write, else wait for more. Catching up and being
// live are the same code. It runs in one goroutine, which is the only one that writes to the event stream.
type delivery struct {
	session *session
	id      uint64
	request subscribeRequest

	stream  SendStream
	next    id.Offset
	waiter  storage.Waiter
	gate    Gate
	batches []*batch.Batch
	shape   shape

	finishing bool // the session is draining: end once there is nothing to read
}

const (
	// readBatches and readBytes bound what one step takes from the log: enough to fill a write, little enough that memory
	// a slow reader keeps alive stays small.
	readBatches = 256
	readBytes   = 256 << 10
	// writeBytes is how much is joined into one write; a larger frame is written by itself.
	writeBytes = 64 << 10
)

// writeBuffers are shared by all subscriptions: only one that has something to write holds one.
var writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, writeBytes); return &b }}

// run sets the subscription up, answers its request, and delivers until something ends it.
func (d *delivery) run(ctx context.Context) error {
	if err := d.open(ctx); err != nil {
		if ctx.Err() == nil {
			d.request.refuse(wire.Refuse(wire.CodeLimitExceeded, "the client allows no further unidirectional stream; end a subscription or use another connection"))
			d.request.lane = nil
		}
		return err
	}
	// The place in the log is taken before the answer: what is published after it is delivered.
	oldest, end := d.request.shard.Log.Bounds()
	if d.next = end; d.request.start == wire.StartEarliest {
		d.next = oldest
	}
	d.shape = shapeFor(d.request.grant, d.id, d.request.entry.Name)
	if _, err := d.stream.Write(wire.AppendJSONFrame(nil, &wire.EventStreamHello{SubscriptionID: d.id})); err != nil {
		d.request.refuse(wire.Refuse(wire.CodeInternal, "the event stream broke off").WithRetry(wire.RetryRetry))
		d.request.lane = nil
		return fmt.Errorf("write hello: %w", err)
	}
	d.request.lane.resolve(d.request.token, sessioncore.Answer{Message: &wire.Subscribed{SubscriptionID: d.id}})
	d.request.lane = nil // an idle subscription keeps nothing of the stream it was asked for on
	d.gate = d.session.opts.Runtime.NewGate()
	d.waiter.Ring = d.gate.Ring // a ring that wait did not look at must not make a later one block: the shard rings
	return d.deliver(ctx)
}

func (d *delivery) open(ctx context.Context) error {
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := d.session.opts.Clock.AfterFunc(openTimeout, cancel)
	defer timer.Stop()
	stream, err := d.session.conn.OpenSendStream(bounded)
	if err != nil {
		return fmt.Errorf("open event stream: %w", err)
	}
	d.stream = stream
	return nil
}

// deliver returns nil when the log has ended and everything was written.
func (d *delivery) deliver(ctx context.Context) error {
	for {
		page, err := d.request.shard.Log.Read(d.next, readBatches, readBytes, d.batches)
		d.next, d.batches = page.Next, page.Batches
		d.session.opts.Metrics.Dropped.Add(float64(page.Lost))
		var closed *storage.ClosedError
		if errors.As(err, &closed) {
			return d.stream.Close()
		}
		if len(page.Batches) > 0 {
			if err := d.write(page.Batches); err != nil {
				return fmt.Errorf("write events: %w", err)
			}
			continue
		}
		if more, err := d.wait(ctx); !more {
			return err
		}
	}
}

// wait returns once there is more to read; more is false when the subscription is over.
func (d *delivery) wait(ctx context.Context) (more bool, err error) {
	clear(d.batches)
	d.batches = nil
	if !d.request.shard.Log.Arm(&d.waiter, d.next) {
		return true, nil
	}
	if d.finishing {
		d.request.shard.Log.Disarm(&d.waiter)
		return false, d.stream.Close()
	}
	if d.gate.Wait(d.session.finish, d.stream.Context(), ctx) {
		d.request.shard.Log.Disarm(&d.waiter) // a gate may be rung for nothing
		return true, nil
	}
	d.request.shard.Log.Disarm(&d.waiter)
	if err := ctx.Err(); err != nil {
		d.stream.CancelWrite()
		return false, context.Cause(ctx)
	}
	if err := d.stream.Context().Err(); err != nil { // the client wants no more
		d.stream.CancelWrite()
		return false, context.Cause(d.stream.Context())
	}
	d.finishing = true // once more around, for what is readable by now
	return true, nil
}

// write sends batches, joining small frames into few writes.
func (d *delivery) write(batches []*batch.Batch) error {
	pooled := writeBuffers.Get().(*[]byte)
	defer func() { writeBuffers.Put(pooled) }()
	buf := (*pooled)[:0]
	m := d.session.opts.Metrics
	for i, b := range batches {
		if !b.Kind.Visible() {
			continue
		}
		var err error
		if buf, err = d.frames(buf, b); err != nil {
			return err
		}
		m.Delivered.Add(float64(b.Count))
		m.DeliveredBytes.Add(float64(b.PayloadBytes))
		batches[i] = nil // written: the ring decides how long it lives
	}
	return d.put(buf)
}

// frames adds the frames of one batch to buf, writing whatever does not fit.
func (d *delivery) frames(buf []byte, b *batch.Batch) ([]byte, error) {
	if !d.shape.shared {
		d.session.opts.Metrics.Encodes.Inc()
		var lost uint32
		buf, lost = d.shape.append(buf, b)
		d.session.opts.Metrics.Dropped.Add(float64(lost))
		if len(buf) < writeBytes {
			return buf, nil
		}
		return d.restart(buf)
	}
	if b.Framed != nil {
		return d.join(buf, b.Framed)
	}
	var err error
	for _, part := range b.Cut {
		if buf, err = d.join(buf, part); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// join puts bytes behind those that wait in buf. What is large goes out by itself, uncopied.
func (d *delivery) join(buf, frame []byte) ([]byte, error) {
	if len(buf)+len(frame) <= writeBytes {
		return append(buf, frame...), nil
	}
	if err := d.put(buf); err != nil {
		return buf, err
	}
	if len(frame) < writeBytes/4 {
		return append(buf[:0], frame...), nil
	}
	return buf[:0], d.put(frame)
}

// restart writes what a shape encoded and keeps the buffer only if it is of the usual size.
func (d *delivery) restart(buf []byte) ([]byte, error) {
	err := d.put(buf)
	if cap(buf) > 2*writeBytes {
		return make([]byte, 0, writeBytes), err
	}
	return buf[:0], err
}

func (d *delivery) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := d.stream.Write(p)
	return err
}
