package clientguide

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
)

func readOneShard(ctx context.Context, c *client.Client, handle func(payload []byte)) error {
	sub, err := c.Subscribe(ctx, "default", "orders", client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		return err
	}
	defer sub.Close()

	for event, err := range sub.Events(ctx) {
		if err != nil {
			return err
		}
		handle(event.Payload)
	}
	return nil // the broker ended it
}

func readWholeStream(ctx context.Context, c *client.Client, handle func(shard uint32, payload []byte)) error {
	sub, err := c.SubscribeAll(ctx, "default", "clicks", client.SubscribeAllOptions{})
	if err != nil {
		return err
	}
	defer sub.Close()

	for {
		item, err := sub.NextItem(ctx)
		if err != nil {
			return err // io.EOF: all shards have ended
		}
		switch item.Kind {
		case client.ItemEvent:
			handle(item.Shard, item.Event.Payload)
		case client.ItemShardRecovered:
			if !item.Exact {
				fmt.Printf("shard %d: events are missing here\n", item.Shard)
			}
		case client.ItemShardEnded:
			fmt.Printf("shard %d has ended: %v\n", item.Shard, item.Err)
		}
	}
}

func readWhatIsNew(ctx context.Context, c *client.Client) (*client.Subscription, error) {
	return c.Subscribe(ctx, "default", "ticks", client.SubscribeOptions{
		QueueCapacity: 64,                  // batches that the broker keeps for it
		Policy:        client.QueueDropNew, // read at full speed, drop what the program does not take
		ClientQueue:   256,                 // batches that the client keeps
	})
}

func TestReadingOneShard(t *testing.T) {
	s := begin(t)
	c := s.client()
	if err := publishOne(s.ctx, c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var got []string
	err := readOneShard(ctx, c, func(payload []byte) {
		if got = append(got, string(payload)); len(got) == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || fmt.Sprint(got) != "[hello hello again]" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestReadingAWholeStream(t *testing.T) {
	s := begin(t)
	c := s.client()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	shards := map[uint32]bool{}
	ended := make(chan error, 1)
	go func() {
		n := 0
		ended <- readWholeStream(ctx, c, func(shard uint32, _ []byte) {
			shards[shard] = true
			if n++; n >= 40 && len(shards) >= 3 {
				cancel()
			}
		})
	}()
	for i := 0; ; i++ { // the first ones may come before the subscriptions have begun
		if _, err := c.Publish(s.ctx, "default", "clicks", []byte("x"), client.WithKey(fmt.Append(nil, "user-", i))); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return
		default:
		}
	}
}

func TestReadingWhatIsNew(t *testing.T) {
	s := begin(t)
	c := s.client()
	sub, err := readWhatIsNew(s.ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if n, ok := sub.QueueCapacity(); !ok || n != 64 {
		t.Errorf("the broker granted %d batches, told %v; want 64", n, ok)
	}
	if _, err := c.Publish(s.ctx, "default", "ticks", []byte("now")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if e, err := sub.Next(ctx); err != nil || string(e.Payload) != "now" || sub.Dropped() != 0 {
		t.Errorf("read %q, %v", e.Payload, err)
	}
}
