package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// consumer is a real one, whose handler finishes each record and tells what it was.
type consumer struct {
	t     testing.TB
	c     *client.Consumer
	done  chan client.Message
	ended bool
}

// consume works on the group's records.
func (w worker) consume(o client.ConsumeOptions) *consumer {
	w.t.Helper()
	k := &consumer{t: w.t, done: make(chan client.Message, 1<<16)}
	ctx, cancel := testkit.Within()
	defer cancel()
	k.c = must(w.Consume(ctx, namespace, jobs, w.group, func(_ context.Context, m client.Message) error {
		k.done <- m
		return nil
	}, o))(w.t)
	w.t.Cleanup(k.stop)
	return k
}

// next is what the handler got next; it must come.
func (k *consumer) next() client.Message {
	k.t.Helper()
	select {
	case m := <-k.done:
		return m
	case <-k.c.Done():
		k.t.Fatalf("the consumer ended: %v", k.c.Err())
	case <-time.After(testkit.Patience):
		k.t.Fatalf("no record comes: %+v", k.c.Stats())
	}
	return client.Message{}
}

// stop ends the consumer in order.
func (k *consumer) stop() {
	if k.ended {
		return
	}
	k.ended = true
	ctx, cancel := testkit.Within()
	defer cancel()
	if err := k.c.Stop(ctx); err != nil {
		k.t.Errorf("stop the consumer: %v", err)
	}
}

// stale fails the test unless a settlement was refused because its delivery does not stand any more.
func stale(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, client.ErrStaleClaim) {
		t.Errorf("a late %s: %v, want a stale claim", what, err)
	}
}

// lag is how much later than it has to something may come to a poll that waits for it. Only a full campaign, which has the machine to itself,
// measures; else it is enough that something other than the end of the poll brought it.
func lag() time.Duration {
	if effort.Full() {
		return testkit.Figure(250 * time.Millisecond)
	}
	return pollWait / 2
}

// pollWait is how long such a poll waits: it comes back far later than lag where nothing ends it.
const pollWait = testkit.Patience / 2
