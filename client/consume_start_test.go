package client

import (
	"context"
	"testing"
	"testing/synctest"
)

// A consumer that is stopped while it starts has ended when all that it began has ended, and not while it still begins more.
func TestAConsumerThatIsStoppedWhileItStartsEndsWhenAllOfItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newClient(Options{Addrs: []string{"127.0.0.1:1"}, TenantID: "t1", Token: "x", PublishInflightBytes: 1 << 20, MaxFrameBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		o, err := ConsumeOptions{}.complete("consume")
		if err != nil {
			t.Fatal(err)
		}
		k := newConsumer(c, "consume", func(context.Context, Message) error { return nil }, o, t.Context())
		for shard := range uint32(2) {
			k.addShard("ns", "s", shard, "g")
		}
		k.share()
		begun := 0
		k.spawn = func(f func()) bool {
			if begun++; begun == 2 {
				go func() { _ = k.Stop(t.Context()) }()
			}
			spawned := c.life.spawn(f)
			synctest.Wait() // all that was begun has come as far as it can
			if begun < 5 && k.hasEnded() {
				t.Error("the consumer has ended and begins more")
			}
			return spawned
		}
		if !k.start() {
			t.Error("it did not start")
		}
		synctest.Wait()
		if !k.hasEnded() || begun != 5 {
			t.Errorf("ended: %v, of %d", k.hasEnded(), begun)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
