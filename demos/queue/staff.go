package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
)

const groupName = "workers"

// hangUp closes a client whose broker may be gone.
func hangUp(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // it tells of requests without an answer, which come again
}

// staff are the consumers of the group, oldest first.
type staff struct {
	ledger *ledger
	place  local.Place
	all    []worker
}

type worker struct {
	client   *client.Client
	consumer *client.Consumer
}

// visibility is how long the jobs of a consumer that is gone stay its own.
const visibility = time.Second

// hire adds a consumer with a connection of its own.
func (s *staff) hire(ctx context.Context) error {
	c, err := client.Connect(ctx, s.place.Client())
	if err != nil {
		return err
	}
	k, err := c.Consume(ctx, local.Namespace, streamName, groupName, s.ledger.work, client.ConsumeOptions{
		Visibility: visibility, RetryDelay: func(client.Message, error) time.Duration { return 0 }, // as the broker has it
	})
	if err != nil {
		hangUp(c)
		return err
	}
	s.all = append(s.all, worker{c, k})
	return nil
}

// replace takes the oldest consumer's connection away, with what it has in hand, and hires another.
func (s *staff) replace(ctx context.Context) error {
	gone := s.all[0]
	s.all = s.all[1:]
	hangUp(gone.client)
	at, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = gone.consumer.Stop(at) // it says that it could give nothing back, which is what this is about
	return s.hire(ctx)
}

// dismiss stops all consumers in order; a second time it does nothing.
func (s *staff) dismiss() error {
	var stops sync.WaitGroup
	errs := make([]error, len(s.all))
	for i, w := range s.all {
		stops.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := w.consumer.Stop(ctx); err != nil {
				errs[i] = fmt.Errorf("stop a consumer: %w", err)
			}
			hangUp(w.client)
		})
	}
	stops.Wait()
	s.all = nil
	return errors.Join(errs...)
}
