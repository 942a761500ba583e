package bench

import (
	"context"
	"errors"

	"github.com/felixd/felixd/client"
)

// clientSubscriber uses the Go client of felixd, with a connection of its own.
type clientSubscriber struct {
	client *client.Client
	sub    *client.Subscription
}

// Subscribe connects and subscribes to shard 0 of a stream, from now on.
func Subscribe(ctx context.Context, o client.Options, namespace, stream string) (Subscriber, error) {
	c, err := client.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	sub, err := c.Subscribe(ctx, namespace, stream, client.SubscribeOptions{})
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return &clientSubscriber{c, sub}, nil
}

// Receive implements Subscriber.
func (s *clientSubscriber) Receive(ctx context.Context, got *Received) error {
	for {
		e, err := s.sub.Next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := got.Record(e.Payload); err != nil {
			return err
		}
	}
}

// Close implements Subscriber.
func (s *clientSubscriber) Close(ctx context.Context) error {
	s.sub.Close()
	return s.client.Close(ctx)
}
