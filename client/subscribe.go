package client

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Start is where a subscription begins. The zero value is Latest.
type Start struct {
	start wire.Start
	since time.Time // instead, with timed
	timed bool
}

// Latest begins with what is published from now on.
func Latest() Start { return Start{} }

// Earliest begins with the oldest record there is.
func Earliest() Start { return Start{start: wire.Start{Kind: wire.StartEarliest}} }

// At begins at an offset: that of the first record not seen yet. In-memory streams have no offsets and refuse it.
func At(offset id.Offset) Start {
	return Start{start: wire.Start{Kind: wire.StartOffset, Offset: offset}}
}

// Since begins with the first record that was appended at or after a time, as the broker's clock had it; with none so far,
// with what is published from now on. In-memory streams refuse it.
func Since(t time.Time) Start { return Start{since: t, timed: true} }

// SubscribeOptions says what to read and how. The zero value reads shard 0 from now on.
type SubscribeOptions struct {
	Shard uint32
	From  Start
	// QueueCapacity asks for a queue of so many batches at the broker; 0 leaves it to the broker. See
	// Subscription.QueueCapacity for what was granted. A broker that cannot be asked fails the call with an
	// *UnsupportedError.
	QueueCapacity uint32
	// Policy and ClientQueue are the queue on the client's side; the zero values mean Options.SubQueuePolicy and
	// Options.SubQueueCapacity.
	Policy      QueuePolicy
	ClientQueue int
	// Resume is what follows a lost event stream.
	Resume Resume
}

// Resume says what a subscription does when its event stream ends for a reason that need not be the end: a lost connection,
// a shard that moved, a reader that fell behind. Whatever it does, an event is delivered once.
type Resume uint8

const (
	// ResumeDefault is ResumeExact for one shard, and ResumeTail for a whole stream, whose items tell of each loss.
	ResumeDefault Resume = iota
	// ResumeExact goes on right after the last event, where events have offsets: none is missing and none comes twice. On an
	// in-memory stream a loss is the end of the subscription, and only a move is followed, to the new tail.
	ResumeExact
	// ResumeTail goes on at the tail of an in-memory stream also after a loss. The first event after it has Gap set.
	ResumeTail
	// ResumeNever returns every end to the caller.
	ResumeNever
)

// Event is one record as a subscriber gets it.
type Event struct {
	// Payload belongs to the receiver. Payloads of one batch share memory: who keeps a small one for long clones it.
	Payload   []byte
	Shard     uint32
	Offset    id.Offset // means something only with HasOffset: in-memory streams have none
	HasOffset bool
	// SkippedBefore is how many offsets right before this one hold no event. Offset - SkippedBefore - 1 is the offset of
	// the event before, or events were dropped.
	SkippedBefore uint64
	// Gap says that events may be missing right before this one: the subscription went on at the tail of an in-memory
	// stream, or its client-side queue dropped some of it.
	Gap       bool
	Publisher string    // with Options.Publishers; empty when not told
	Time      time.Time // with Options.Timestamps: when the broker appended it; zero when not told
}

// Subscribe opens a subscription to one shard. It returns once the broker has accepted it: what is published after that is
// delivered. A start offset that cannot be served is a *CursorError; an unknown stream matches ErrNotFound. Refusals the
// broker calls temporary are tried again as the options allow, and redirects followed. ctx bounds the opening, not the
// subscription; Close ends it.
func (c *Client) Subscribe(ctx context.Context, namespace, stream string, o SubscribeOptions) (*Subscription, error) {
	return c.openSubscription(ctx, namespace, stream, o, false)
}

func (c *Client) openSubscription(ctx context.Context, namespace, stream string, o SubscribeOptions, whole bool) (*Subscription, error) {
	op := fmt.Sprintf("subscribe to %s/%s shard %d", namespace, stream, o.Shard)
	o, err := o.complete(op, &c.opts, whole)
	if err != nil {
		return nil, err
	}
	if err := checkNames(op, namespace, "stream", stream); err != nil {
		return nil, err
	}
	if c.isClosed() {
		return nil, closedError(op)
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	s := newSource(c, op, namespace, stream, o, whole)
	var first *opened
	err = c.repeat(ctx, op, repeatable, func() (err error) {
		first, err = s.begin(ctx, namespace, stream, o.From)
		return err
	})
	if err != nil {
		s.cancel()
		return nil, err
	}
	return newSubscription(s, o, first)
}

// complete fills in what the client's options say.
func (o SubscribeOptions) complete(op string, c *Options, whole bool) (SubscribeOptions, error) {
	bad := func(argument, problem string) (SubscribeOptions, error) {
		return o, &ArgumentError{Op: op, Argument: argument, Problem: problem}
	}
	switch {
	case o.Policy > QueueDropNew:
		return bad("Policy", "is none of QueueDefault, QueueBlock, QueueDropNew")
	case o.ClientQueue < 0:
		return bad("ClientQueue", "is negative; use a positive number of batches, or 0 for the default")
	case o.Resume > ResumeNever:
		return bad("Resume", "is none of ResumeDefault, ResumeExact, ResumeTail, ResumeNever")
	}
	o.Policy = orDefault(o.Policy, c.SubQueuePolicy)
	o.ClientQueue = orDefault(o.ClientQueue, c.SubQueueCapacity)
	o.QueueCapacity = orDefault(o.QueueCapacity, c.BrokerSubQueueCapacity)
	if o.Resume == ResumeDefault {
		o.Resume = ResumeExact
		if whole {
			o.Resume = ResumeTail
		}
	}
	return o, nil
}
