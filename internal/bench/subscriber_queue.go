package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/client"
)

// QueuePlan is a consumer of a group that works on records one after the other, and acks each.
type QueuePlan struct {
	Options           client.Options
	Namespace, Stream string
	Poll              int // records that a poll asks for; twice as many are in hand at most, so that one poll is under way while the others are acked
}

// queueSubscriber uses the consumer of the Go client, with a connection and a group of its own.
type queueSubscriber struct {
	client *client.Client
	plan   QueuePlan
	group  string
	shards uint32
}

// SubscribeQueue connects and makes a group that begins with what is published from now on.
func SubscribeQueue(ctx context.Context, p QueuePlan) (Subscriber, error) {
	c, err := client.Connect(ctx, p.Options)
	if err != nil {
		return nil, err
	}
	s := &queueSubscriber{client: c, plan: p, group: fmt.Sprintf("felixctl-bench-%d", time.Now().UnixNano())}
	shards, err := c.StreamShards(ctx, p.Namespace, p.Stream)
	for ; err == nil && s.shards < shards.Count; s.shards++ {
		_, err = c.GroupSeek(ctx, p.Namespace, p.Stream, s.shards, s.group, client.Latest(), client.GroupSeekOptions{})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// Receive implements Subscriber: one handler at a time gets the records in the order in which they were handed out.
func (s *queueSubscriber) Receive(ctx context.Context, got *Received) error {
	foreign := make(chan error, 1)
	k, err := s.client.Consume(ctx, s.plan.Namespace, s.plan.Stream, s.group, func(_ context.Context, m client.Message) error {
		if err := got.Record(m.Payload); err != nil {
			select {
			case foreign <- err:
			default:
			}
		}
		return nil
	}, client.ConsumeOptions{Concurrency: 1, MaxInHand: 2 * s.plan.Poll})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	select {
	case <-ctx.Done():
	case <-k.Done():
		err = k.Err()
	case err = <-foreign:
	}
	err = errors.Join(err, k.Stop(context.WithoutCancel(ctx)))
	if n := k.Stats(); err == nil && n.Acked < n.Received {
		err = fmt.Errorf("of %d records that were handed out %d were acked", n.Received, n.Acked)
	}
	return err
}

// Close implements Subscriber. It removes the group.
func (s *queueSubscriber) Close(ctx context.Context) error {
	var err error
	for shard := range s.shards {
		_, failed := s.client.GroupDelete(ctx, s.plan.Namespace, s.plan.Stream, shard, s.group)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, s.client.Close(ctx))
}
