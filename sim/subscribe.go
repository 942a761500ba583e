package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// subscription is one subscription of a client, judged record by record.
type subscription struct {
	c        *client
	id       uint64
	name     route.Name
	shard    uint32
	earliest bool
	asked    int // step
	granted  int // step in which the client heard of it; 0: not yet
	queue    wire.Opt[uint32]
	start    id.Offset // where it begins, if begins says so
	begins   *life     // the incarnation that it was registered with; nil: it was gone when the client heard of it
	life     *life
	first    int // place of the first record that came; -1: none yet
	next     int // place of the record that is due
	gaps     int // records missing between those that came
	pause    time.Duration
	quit     int  // frames after which the client unsubscribes; 0: never
	begun    bool // its event stream has come
	over     bool
	err      error
}

// subscribe asks for the events of a shard; false when the stream is over.
func (t *talk) subscribe(to route.Assignment, shard uint32, earliest bool) bool {
	s := &subscription{c: t.c, name: to.Name, shard: shard, earliest: earliest, first: -1, asked: t.c.run.world.Steps()}
	if t.c.run.world.Rand().IntN(4) == 0 {
		s.pause = time.Duration(t.c.run.world.Rand().Int64N(int64(20 * time.Millisecond)))
	}
	if t.c.run.world.Rand().IntN(5) == 0 {
		s.quit = 1 + t.c.run.world.Rand().IntN(5)
	}
	m := &wire.Subscribe{TenantID: to.Name.Tenant, Namespace: to.Name.Namespace, Stream: to.Name.Name, Shard: wire.Some(shard)}
	if earliest {
		m.Start = wire.Some(wire.Start{Kind: wire.StartEarliest})
	}
	if t.c.run.world.Rand().IntN(3) == 0 {
		s.queue = wire.Some(uint32(t.c.run.world.Rand().IntN(10)))
		m.QueueCapacity = s.queue
	}
	a := &ask{grants: true, what: fmt.Sprintf("subscribe to %s/%d", to.Name, shard)}
	a.take = func(got answer) error {
		defer t.c.ringWaiting()
		if got.refusal != nil {
			return nil
		}
		ok, err := isMessage[*wire.Subscribed](got)
		if err != nil {
			return err
		}
		if t.c.subs[ok.SubscriptionID] != nil {
			return fmt.Errorf("subscription %d was granted twice", ok.SubscriptionID)
		}
		if err := s.checkQueue(ok.QueueCapacity); err != nil {
			return err
		}
		s.id, s.granted = ok.SubscriptionID, t.c.run.world.Steps()
		s.findStart()
		t.c.subs[s.id] = s
		t.c.order = append(t.c.order, s)
		return nil
	}
	return t.request(wire.AppendJSONFrame(nil, m), a)
}

// acceptEvents takes the event streams that the broker opens.
func (c *client) acceptEvents() {
	for {
		p, ok := c.link.client.oneWay.pop(c.link.client.ctx)
		if !ok {
			return
		}
		c.launch("subscriber", func() { c.receive(p) })
	}
}

// receive reads one event stream from its hello to its end.
func (c *client) receive(p *pipe) {
	defer p.CancelRead()
	var rest []byte
	flags, body, err := readFrame(p, &rest)
	if err != nil {
		c.orphans++ // broken off before it said whose it was
		return
	}
	var id uint64
	if m, err := wire.DecodeJSON(body); err == nil && flags == 0 {
		if hello, is := m.(*wire.EventStreamHello); is {
			id = hello.SubscriptionID
		}
	}
	if id == 0 {
		c.run.failf("%s: an event stream begins with %q", c.name, body)
		return
	}
	s := c.granted(id)
	if s == nil {
		return
	}
	s.begun = true
	for frames := 1; ; frames++ {
		flags, body, err := readFrame(p, &rest)
		if err == nil {
			err = s.take(flags, body)
		}
		if err == nil && frames == s.quit {
			c.run.marks.hit(markUnsubscribed)
			s.over = true
			return
		}
		if err != nil {
			s.ended(err)
			return
		}
		if s.pause > 0 && !c.run.calm && !c.sleep(s.pause) {
			return
		}
	}
}

// granted waits until the answer to the subscribe has come too; nil when it never will: a client that asks for nothing any more wants no event
// stream that it knows nothing of.
func (c *client) granted(id uint64) *subscription {
	gate := c.run.world.NewGate()
	c.waiting = append(c.waiting, gate)
	for c.subs[id] == nil && c.awaitsGrant() {
		if !gate.Wait(c.link.client.ctx) {
			break
		}
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(g *simrt.Gate) bool { return g == gate })
	return c.subs[id]
}

// ringWaiting tells the readers of event streams that the answer to a subscribe has come or a stream is over.
func (c *client) ringWaiting() {
	for _, g := range c.waiting {
		g.Ring()
	}
}

// awaitsGrant reports whether some stream may still bring the answer to a subscribe.
func (c *client) awaitsGrant() bool {
	for _, t := range c.talks {
		for _, a := range t.pending {
			if a.grants {
				return true
			}
		}
	}
	return false
}
