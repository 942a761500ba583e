package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

const (
	goodReaders   = 4
	goodPublishes = 120
	stallBytes    = 300 << 10 // more than the window of any pipe: its reader's pump stands still in the write
)

// stallPlan is a quiet world in which slow subscribers lose what arrives, and rings and windows are small.
func stallPlan(seed uint64) Plan {
	p := NewPlan(seed)
	p.Nodes, p.Chaos, p.Flood, p.Strikes, p.Tight, p.Drain = 1, 0, false, false, false, false
	p.Limits.RingBatches, p.Limits.WindowBytes, p.Limits.ReaderBytes, p.Limits.Overflow = 4, 1<<20, 4<<20, storage.DropNew
	p.Limits.PublishConnBytes, p.Limits.PublishWindow = 1<<20, 256
	p.Limits.Delivery.Capacity = 64
	return p
}

// stallRun plays a world in which somebody subscribes to a shard, gets a record that he never takes, and stands still. Then others subscribe
// to shard 0, and it gets many records. It returns what they heard, and when, and how much he lost.
func stallRun(t *testing.T, seed uint64, stalledShard uint32) (heard []string, lost uint64) {
	t.Helper()
	r := newRun(stallPlan(seed), nil)
	defer func() {
		if left := r.world.Close(); len(left) > 0 {
			t.Errorf("coroutines are left: %v", left)
		}
	}()
	step := func(what string, err error) {
		t.Helper()
		if err == nil {
			err = r.err
		}
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, what, err)
		}
	}
	step("start", r.start())
	b, orders := r.brokers[0], r.resources[0]
	stalled := r.connect(b, orders.Name.Tenant, 1)
	stalled.offer = offerToday
	stalled.work("stalled", func() { stalled.standStill(orders, stalledShard) })
	step("stand still", r.blame(r.world.Run(stepsMost, func() bool { return r.busy == 0 && r.world.Idle() })))
	r.heard = func(s *subscription, id uint64) {
		heard = append(heard, fmt.Sprintf("%s/%d at step %d, %v: %x", s.c.name, s.id, r.world.Steps(), r.world.Now(), id))
	}
	for range goodReaders {
		c := r.newClient(b, orders.Name.Tenant, 1)
		c.work("reader", func() {
			talk, ok := c.drawTalk()
			if ok && talk.subscribe(orders, 0, false) && talk.idle() {
				talk.finish()
			}
		})
	}
	step("subscribe", r.blame(r.world.Run(stepsMost, func() bool { return r.busy == 0 && r.world.Idle() })))
	publisher := r.newClient(b, orders.Name.Tenant, 1)
	publisher.work("publisher", func() { publisher.publishMany(orders, 0) })
	step("publish", r.blame(r.world.Run(stepsMost, func() bool { return r.busy == 0 && r.asleep == 0 && r.world.Idle() })))
	heard = append(heard, fmt.Sprintf("idle after %d steps, at %v", r.world.Steps(), r.world.Now()))
	lost = b.dropped
	step("leave", r.leave())
	step("stop", r.stop())
	return heard, lost
}

// standStill subscribes to a shard and publishes more to it than anybody takes who does not read.
func (c *client) standStill(to route.Assignment, shard uint32) {
	t := c.talk(1)
	if !t.authenticate("good") || !t.subscribe(to, shard, false) || !t.idle() {
		c.run.failf("%s: not subscribed", c.name)
		return
	}
	if !t.publish(to, publishForm{ack: wire.AckPerBatch, key: keyOf(to, shard), sizes: []int{stallBytes}}) || !t.idle() || !t.last.acked {
		c.run.failf("%s: not published", c.name)
	}
	t.finish()
}

// publishMany publishes to a shard, a few at a time.
func (c *client) publishMany(to route.Assignment, shard uint32) {
	t := c.talk(4)
	ok := t.authenticate("good")
	for n := 0; ok && n < goodPublishes; n++ {
		ok = t.publish(to, publishForm{ack: wire.AckPerBatch, key: keyOf(to, shard), sizes: make([]int, 1+c.run.world.Rand().IntN(4))})
	}
	if !ok || !t.idle() || !t.last.acked {
		c.run.failf("%s: not published", c.name)
	}
	t.finish()
}

// keyOf is a key that leads to a shard; those of two shards are of one length.
func keyOf(a route.Assignment, shard uint32) []byte {
	for key := range 10 {
		if k := fmt.Appendf(nil, "%d", key); a.Routing.Shard(k, true, a.Shards) == shard {
			return k
		}
	}
	panic(fmt.Sprintf("no digit leads to shard %d of %s", shard, a.Name))
}

// With somebody who stands still beside them, and without, good readers hear the same records at the same steps and instants: he costs
// them nothing, not even the order of two wakes. He is on another shard in the second world, so that both begin alike.
//
// mission 192, mission 217, mission 342
func TestTheScheduleOfGoodReadersIsTheSameWithAndWithoutOneThatStandsStill(t *testing.T) {
	seeds := uint64(20)
	if effort.Raced {
		seeds = 4
	}
	for seed := range seeds {
		with, lost := stallRun(t, seed, 0)
		without, none := stallRun(t, seed, 1)
		if lost < none+goodPublishes/2 { // some of the others are slow too, and lose the same in both worlds
			t.Errorf("seed %d: %d records were lost with him, and %d without", seed, lost, none)
		}
		if len(with) < goodPublishes {
			t.Fatalf("seed %d: only %d records were heard", seed, len(with))
		}
		if !slices.Equal(with, without) {
			for i := range with {
				if i == len(without) || with[i] != without[i] {
					t.Fatalf("seed %d: line %d is\n%s with him, and without\n%s", seed, i, with[i], append(without, "missing")[i])
				}
			}
			t.Fatalf("seed %d: %d lines with him, %d without", seed, len(with), len(without))
		}
	}
}
