package main

import (
	"slices"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/shardactor/route"
)

// chaos strikes now and then, as long as the plan allows it.
type chaos struct {
	run  *run
	left int
	next int // step of the next strike
}

// afterStep makes a strike a possible next step when it is due.
func (c *chaos) afterStep() {
	w := c.run.world
	if c.left == 0 || c.run.calm || w.Steps() < c.next {
		return
	}
	c.left--
	c.next = w.Steps() + 1 + w.Rand().IntN(400)
	w.Post(simrt.Outside, "chaos", c.strike)
}

// strike does one harmful thing.
func (c *chaos) strike() {
	if c.run.calm {
		return
	}
	r := c.run.world.Rand()
	b := c.run.brokers[r.IntN(len(c.run.brokers))]
	switch n := r.IntN(20); {
	case n < 4:
		c.crash(b, "shard")
	case n < 5:
		c.crash(b, "session")
	case n < 6:
		c.crash(b, "subscription")
	case n < 9:
		c.hold(b)
	case n < 13:
		c.plan(b)
	case n < 14:
		c.delete(b)
	case n < 17:
		c.lose()
	default:
		c.reset()
	}
}

// pick draws a live actor of one of the kinds.
func (c *chaos) pick(b *broker, kinds ...string) (path string, ok bool) {
	list, _, err := b.node.System.Faults().List("", actors.FaultListMax)
	if err != nil {
		c.run.failf("%s: list actors: %v", b.name, err)
		return "", false
	}
	list = slices.DeleteFunc(list, func(a actors.ActorInfo) bool { return a.Stopping || !slices.Contains(kinds, a.Kind) })
	if len(list) == 0 {
		return "", false
	}
	return list[c.run.world.Rand().IntN(len(list))].Path, true
}

func (c *chaos) crash(b *broker, kind string) {
	if path, ok := c.pick(b, kind); ok {
		c.fault(b.node.System.Faults().Crash(path))
	}
}

// hold pauses or slows an actor for a while.
func (c *chaos) hold(b *broker) {
	r := c.run.world.Rand()
	path, ok := c.pick(b, "shard", "shard", "session", "subscription", "host", "listener")
	if !ok {
		return
	}
	d := time.Duration(1 + r.Int64N(int64(20*time.Millisecond)))
	if r.IntN(2) == 0 {
		c.fault(b.node.System.Faults().Pause(path, d))
	} else {
		c.fault(b.node.System.Faults().Slow(path, time.Duration(1+r.Int64N(int64(d))), 10*d))
	}
}

func (c *chaos) fault(err error) {
	if err != nil {
		c.run.failf("a fault was not taken: %v", err)
	}
}

// plan makes a shard panic inside a turn of one kind, before or after what it does.
func (c *chaos) plan(b *broker) {
	r := c.run.world.Rand()
	s := b.truth.shards[r.IntN(len(b.truth.shards))]
	f := faultPlan{at: moment(r.IntN(2)), name: s.name, shard: s.index}
	f.lifecycle = []actors.Lifecycle{actors.None, actors.None, actors.None, actors.Started, actors.Stopping, actors.Stopped}[r.IntN(6)]
	b.plans.add(f)
	if f.lifecycle != actors.None { // and the end that gives it its moment
		c.crashShard(b, s.name, s.index)
	}
}

// crashShard crashes the present incarnation of a shard, if it is there.
func (c *chaos) crashShard(b *broker, name route.Name, shard uint32) {
	if path, ok := b.shardPath(name, shard); ok {
		if err := b.node.System.Faults().Crash(path); err != nil {
			c.run.world.Note("%v", err) // it is stopping already
		}
	}
}

// shardPath is the actor that serves a shard now.
func (b *broker) shardPath(name route.Name, shard uint32) (string, bool) {
	e := b.node.Table.Get(name)
	if e == nil {
		return "", false
	}
	t, ok := e.Shard(shard)
	if !ok || t.State != route.Local {
		return "", false
	}
	return "shards/" + t.Shard.Number.String(), true
}

// strikes makes one shard fail three times within a minute.
func (c *chaos) strikes() {
	r := c.run.world.Rand()
	b, a, left := c.run.brokers[0], c.run.resources[r.IntN(len(c.run.resources))], 3
	var again func()
	again = func() {
		if path, ok := b.shardPath(a.Name, 0); ok && !c.run.calm && b.node.System.Faults().Crash(path) == nil {
			left--
		}
		if left > 0 && !c.run.calm {
			c.later(5*time.Millisecond, again)
		}
	}
	c.later(2*time.Millisecond, again)
}

// later does something within d; the run waits for it.
func (c *chaos) later(d time.Duration, do func()) {
	c.run.owed++
	c.run.clock.AfterFunc(time.Duration(c.run.world.Rand().Int64N(int64(d))), func() {
		c.run.owed--
		do()
	})
}

// delete deletes a resource and creates it again a little later.
func (c *chaos) delete(b *broker) {
	r := c.run.world.Rand()
	all := b.desired.Assignments
	if len(all) < len(c.run.resources) {
		return // one is away already
	}
	i := r.IntN(len(all))
	again := slices.Clone(all)
	again[i].Incarnation++
	again[i].Generation++
	c.run.marks.hit(markDeleted)
	b.assign(slices.Delete(slices.Clone(all), i, i+1))
	c.later(10*time.Millisecond, func() { b.assign(again) })
}

// lose breaks a connection off, from the client's side.
func (c *chaos) lose() {
	live := slices.DeleteFunc(slices.Clone(c.run.net.links), func(l *link) bool { return l.client.ctx.Err() != nil })
	if len(live) > 0 {
		live[c.run.world.Rand().IntN(len(live))].client.lose("chaos")
	}
}

// reset breaks the client's half of a stream off, wherever it is.
func (c *chaos) reset() {
	var live []*talk
	for _, x := range c.run.all {
		for _, t := range x.talks {
			if !t.over && !t.finished && !t.broken {
				live = append(live, t)
			}
		}
	}
	if len(live) > 0 {
		live[c.run.world.Rand().IntN(len(live))].reset()
	}
}
