package clientguide

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/internal/testkit"
)

func work(ctx context.Context, c *client.Client, resize func(ctx context.Context, image []byte) error, logf func(format string, args ...any)) error {
	worker, err := c.Consume(ctx, "default", "images", "resize", func(ctx context.Context, m client.Message) error {
		err := resize(ctx, m.Payload)
		if errors.Is(err, errNoImage) {
			return client.DeadLetter(err) // it will never work
		}
		return err
	}, client.ConsumeOptions{
		Concurrency: 4,
		OnError:     func(_ *client.Message, err error) { logf("%v", err) },
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done(): // the program ends
		return worker.Stop(context.Background())
	case <-worker.Done():
		return worker.Err()
	}
}

var errNoImage = errors.New("no image")

func byHand(ctx context.Context, c *client.Client, do func([]byte) error) error {
	messages, err := c.GroupPoll(ctx, "default", "images", 0, "resize", client.GroupPollOptions{
		Max: 10, Wait: 20 * time.Second, Visibility: time.Minute,
	})
	if err != nil {
		return err
	}
	for _, m := range messages {
		if do(m.Payload) == nil {
			err = c.GroupAck(ctx, "default", "images", m.Shard, "resize", m.Offset)
		} else {
			again := client.GroupNackOptions{Attempts: m.Attempts, Delay: 10 * time.Second}
			err = c.GroupNack(ctx, "default", "images", m.Shard, "resize", m.Offset, again)
		}
		if err != nil && !errors.Is(err, client.ErrStaleClaim) { // stale: it is somebody else's by now
			return err
		}
	}
	return nil
}

func repair(ctx context.Context, c *client.Client, shard uint32, fixed func([]byte) bool) error {
	dead, err := c.GroupDeadLetters(ctx, "default", "images", shard, "resize")
	if err != nil {
		return err
	}
	for _, at := range dead {
		page, err := c.Read(ctx, "default", "images", client.ReadOptions{Shard: shard, From: at, End: at.Add(1)})
		if err != nil {
			return err
		}
		if len(page.Records) == 1 && fixed(page.Records[0].Payload) {
			err = c.GroupRedrive(ctx, "default", "images", shard, "resize", at)
		} else {
			err = c.GroupDiscard(ctx, "default", "images", shard, "resize", at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// images is a client of a broker with a queue of so many records.
func images(t *testing.T, payloads ...string) (context.Context, *client.Client, *testbroker.Broker) {
	t.Helper()
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"default/images": 1}, Durable: true})
	for _, p := range payloads {
		b.Append("default/images", 0, testbroker.Region(p))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := testkit.Connect(t, client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM})
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return ctx, c, b
}

func TestWorkQueue(t *testing.T) {
	ctx, c, b := images(t, "a", "nonsense", "c")
	running, end := context.WithCancel(ctx)
	var seen, complaints atomic.Int64
	err := work(running, c, func(_ context.Context, image []byte) error {
		if seen.Add(1) == 3 {
			end()
		}
		if string(image) == "nonsense" {
			return errNoImage
		}
		return nil
	}, func(string, ...any) { complaints.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	if v := b.Group("default/images", 0, "resize"); v.Cursor != 3 || fmt.Sprint(v.DeadLetters) != "[1]" || complaints.Load() != 1 {
		t.Errorf("%+v, %d complaints", v, complaints.Load())
	}
	if err := repair(ctx, c, 0, func(image []byte) bool { return string(image) == "nonsense" }); err != nil {
		t.Fatal(err)
	}
	if v := b.Group("default/images", 0, "resize"); len(v.DeadLetters) != 0 || fmt.Sprint(v.Owed) != "[1]" {
		t.Errorf("%+v", v)
	}
	if err := byHand(ctx, c, func([]byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if v := b.Group("default/images", 0, "resize"); len(v.Held)+len(v.Owed) != 0 {
		t.Errorf("%+v", v)
	}
}

func TestWorkQueueByHand(t *testing.T) {
	ctx, c, b := images(t, "a", "b")
	if err := byHand(ctx, c, func(image []byte) error {
		if string(image) == "b" {
			return errNoImage
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if v := b.Group("default/images", 0, "resize"); v.Cursor != 1 || len(v.Owed) != 1 {
		t.Errorf("%+v", v)
	}
	if _, err := c.GroupPoll(ctx, "default", "images", 0, "resize", client.GroupPollOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.GroupDeadLetter(ctx, "default", "images", 0, "resize", 1); err != nil {
		t.Fatal(err)
	}
	if err := repair(ctx, c, 0, func([]byte) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if v := b.Group("default/images", 0, "resize"); v.Cursor != 2 || len(v.DeadLetters) != 0 {
		t.Errorf("%+v", v)
	}
}
