package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/felixd/felixd/client"
)

// worker is a run of group work.
type worker struct {
	app   *app
	group groupName
	flags workFlags

	killing context.Context // ends when commands are to be ended at once
	kill    context.CancelFunc
	broken  chan struct{}  // closed when commands cannot be run
	ended   sync.WaitGroup // commands

	joined   chan struct{}    // closed when consumer is set
	consumer *client.Consumer // nil if none came to be

	mu      sync.Mutex
	why     error // with broken
	counts  map[outcome]uint64
	began   time.Time
	sampled time.Time // when the rate was last taken
	acked   uint64    // then
	rate    float64   // records acked per second
}

func newWorker(a *app, g groupName, f workFlags) *worker {
	w := &worker{app: a, group: g, flags: f, broken: make(chan struct{}), joined: make(chan struct{}), counts: make(map[outcome]uint64), began: time.Now()}
	w.killing, w.kill = context.WithCancel(context.Background())
	w.sampled = w.began
	return w
}

// join says which consumer hands out the records, nil if there is none.
func (w *worker) join(c *client.Consumer) {
	w.consumer = c
	close(w.joined)
}

// watchInterrupts ends commands at the second interrupt; the first is the end of the context. The third ends this process. The
// returned function ends the watch.
func (w *worker) watchInterrupts() (stop func()) {
	if w.app.sys.interrupts == nil {
		return w.kill
	}
	signals, release := w.app.sys.interrupts()
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
		}
		w.kill()
		release()
	})
	return func() {
		close(done)
		watch.Wait()
		release()
		w.kill()
	}
}

// until returns when the work is to end.
func (w *worker) until(ctx context.Context, b broker, c *client.Consumer) {
	var tick <-chan time.Time
	if w.flags.idle > 0 {
		ticker := time.NewTicker(max(time.Millisecond, min(w.flags.idle/4, 250*time.Millisecond)))
		defer ticker.Stop()
		tick = ticker.C
	}
	last, received, connects := time.Now(), uint64(0), b.Stats().Connects
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Done():
			return
		case <-w.broken:
			return
		case now := <-tick:
			if s := c.Stats(); s.Running > 0 || s.Received != received {
				last, received = now, s.Received
			} else if now.Sub(last) >= w.flags.idle {
				err := w.askWhetherThere(ctx, b)
				n := b.Stats().Connects
				if err == nil && n == connects {
					return
				}
				connects = n
				if err != nil && ctx.Err() == nil {
					w.say("not idle: the broker does not answer: %v", err)
				}
				last = time.Now()
			}
		}
	}
}

// askTimeout is how long the broker of a shard has to show that it is there.
const askTimeout = 5 * time.Second

// askWhetherThere tells a group that has nothing to do from one whose broker is gone, on any shard: nil when for each of them somebody
// answers, if only with a refusal that lasts.
func (w *worker) askWhetherThere(ctx context.Context, b broker) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	shards, err := b.StreamShards(asking, w.group.Namespace, w.group.Stream)
	if refusedForGood(err) {
		return nil
	}
	for shard := uint32(0); err == nil && shard < shards.Count; shard++ {
		err = w.askShard(ctx, b, shard)
	}
	return err
}

func (w *worker) askShard(ctx context.Context, b broker, shard uint32) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := b.GroupDescribe(ctx, w.group.Namespace, w.group.Stream, shard, w.group.Group)
	if refusedForGood(err) {
		return nil
	}
	return err
}

// refusedForGood reports whether a broker is there and says no.
func refusedForGood(err error) bool {
	var refused *client.BrokerError
	return errors.As(err, &refused) && !client.Retryable(err)
}

// handle runs the command for one record. It is the handler of the consumer.
func (w *worker) handle(ctx context.Context, m client.Message) error {
	defer w.stopIfOver(ctx)
	if why := w.failed(); why != nil {
		return client.RetryAfter(0, why)
	}
	w.ended.Add(1)
	defer w.ended.Done()
	e := w.execute(ctx, m)
	w.mu.Lock()
	w.counts[e.outcome]++
	w.mu.Unlock()
	if err := w.print(e); err != nil {
		w.fail(err)
	}
	switch e.outcome {
	case succeeded:
		return nil
	case unrunnable:
		w.fail(whyNotRun(e.err))
		return client.RetryAfter(0, e)
	case interrupted:
		return client.RetryAfter(0, e)
	case hopeless:
		return client.DeadLetter(e)
	}
	return e
}

// whyNotRun says why commands cannot be run any more.
func whyNotRun(err error) error {
	var unprinted *printError
	if errors.As(err, &unprinted) {
		return fmt.Errorf("what commands print cannot be passed on: %w; the record was given back", unprinted)
	}
	return fmt.Errorf("the command cannot be run: %w: look at --exec; the record was given back", err)
}

// stopIfOver lets the consumer stop before the record of a handler is given back, so that it is not claimed here again, and again, until it
// is a dead letter.
func (w *worker) stopIfOver(ctx context.Context) {
	if w.failed() != nil || w.killing.Err() != nil {
		<-w.joined
		if w.consumer != nil {
			_ = w.consumer.Stop(ctx) // it has begun, and work waits for its end
		}
	}
}

// fail ends the work.
func (w *worker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		w.why = err
		close(w.broken)
	}
}

// failed is why work is not possible; nil if it is.
func (w *worker) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

// failure is why the work ended by itself; nil if it did not.
func (w *worker) failure(c *client.Consumer) error {
	if why := w.failed(); why != nil {
		return why
	}
	return c.Err()
}
