package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

// ordinary is the life of an ordinary client: a few streams, each with its habit, side by side.
func (c *client) ordinary() {
	r := c.run.world.Rand()
	if !c.sleep(time.Duration(r.Int64N(int64(2 * time.Millisecond)))) {
		return
	}
	for range 1 + r.IntN(3) {
		habit := c.habit(r.IntN(12))
		c.work(fmt.Sprintf("writer of %d", c.next+1), habit)
		if !c.run.world.Pause() {
			return
		}
	}
}

// habit is what one stream does.
func (c *client) habit(n int) func() {
	switch {
	case n < 4:
		return c.mixed
	case n < 6:
		return c.caching
	case n < 9:
		return c.subscribing
	case n < 10:
		return c.publishOnly
	case n < 11:
		return c.garbage
	}
	return c.asking
}

// drawTalk opens a stream with a random window, and authenticates it.
func (c *client) drawTalk() (*talk, bool) {
	t := c.talk(1 + c.run.world.Rand().IntN(16))
	return t, t.authenticate("good")
}

// end is how a stream with a habit ends: in order most of the time.
func (t *talk) end() {
	r := t.c.run.world.Rand()
	switch n := r.IntN(10); {
	case t.over:
	case n == 0:
		t.breakInsideFrame()
	case n == 1:
		t.stream.in.CancelRead() // wants no answers any more
		t.broken = true
		t.finish()
	case n < 5:
		t.finish() // at once: the answers come behind
	default:
		t.idle()
		t.finish()
	}
}

// breakInsideFrame sends a part of a frame and breaks the stream off.
func (t *talk) breakInsideFrame() {
	p, region := t.compose(t.c.streams()[0], publishForm{sizes: []int{100}})
	frame := encode(p, publishForm{ack: wire.AckNone}, region, 0)
	t.broken = true
	if _, err := t.stream.Write(frame[:1+t.c.run.world.Rand().IntN(len(frame)-1)]); err == nil && t.c.run.world.Pause() && !t.over {
		t.c.run.marks.hit(markResetMidFrame)
		t.reset()
	}
}

// streams and caches are the resources of the client's tenant.
func (c *client) streams() []route.Assignment { return c.of(route.Stream) }
func (c *client) caches() []route.Assignment  { return c.of(route.Cache) }

func (c *client) of(kind route.Kind) (list []route.Assignment) {
	for _, a := range c.run.resources {
		if a.Name.Tenant == c.tenant && a.Name.Kind == kind {
			list = append(list, a)
		}
	}
	return list
}

// mixed publishes and uses the cache.
func (c *client) mixed() {
	t, ok := c.drawTalk()
	forms := make([]publishForm, c.run.plan.Requests)
	for i := range forms {
		forms[i] = c.drawForm()
	}
	swapping := ok && c.run.swap(forms)
	published := 0
	for n := 0; ok && n < c.run.plan.Requests; n++ {
		if c.run.world.Rand().IntN(4) == 0 {
			ok = t.cacheRequest(c.caches()[0].Name)
			continue
		}
		ok = t.publish(c.streams()[0], forms[published])
		if published++; swapping && ok && published == 2 {
			c.run.swapped = true
		}
	}
	t.end()
}

// swap exchanges the first two publishes of the first stream that publishes, if the plan says so.
func (r *run) swap(forms []publishForm) bool {
	if !r.plan.Swap || r.swapping {
		return false
	}
	r.swapping = true
	forms[0], forms[1] = forms[1], forms[0]
	return true
}

// caching uses the cache alone.
func (c *client) caching() {
	t, ok := c.drawTalk()
	for n := 0; ok && n < c.run.plan.Requests; n++ {
		ok = t.cacheRequest(c.caches()[0].Name)
	}
	t.end()
}

// subscribing asks for a few subscriptions and publishes a little.
func (c *client) subscribing() {
	t, ok := c.drawTalk()
	r := c.run.world.Rand()
	s := c.streams()[0]
	for n := 1 + r.IntN(4); ok && n > 0; n-- {
		ok = t.subscribe(s, uint32(r.IntN(int(s.Shards))), r.IntN(2) == 0)
	}
	for n := 0; ok && n < c.run.plan.Requests/2; n++ {
		ok = t.publish(s, c.drawForm())
	}
	t.end()
}

// publishOnly sends publishes on a stream that gets no answers.
func (c *client) publishOnly() {
	c.next++
	t := &talk{c: c, number: c.next, name: fmt.Sprintf("%s/%d", c.name, c.next)}
	p := c.link.client.openOneWay(t.name)
	if _, err := p.Write(c.authFrame()); err != nil {
		return
	}
	for range 2 * c.run.plan.Requests {
		f := c.drawForm()
		f.ack = wire.AckNone
		pub, region := t.compose(c.streams()[0], f)
		pub.begun = c.run.world.Steps()
		if _, err := p.Write(encode(pub, f, region, 0)); err != nil {
			return
		}
	}
	if c.run.world.Rand().IntN(4) == 0 {
		p.CancelWrite()
		return
	}
	_ = p.Close() // it may be over already
}

// asking asks questions that need no shard, and some that nobody serves.
func (c *client) asking() {
	t, ok := c.drawTalk()
	s := c.streams()[0].Name
	for n := 0; ok && n < c.run.plan.Requests; n++ {
		switch c.run.world.Rand().IntN(4) {
		case 0:
			ok = t.ask(&wire.Topology{}, "topology_view")
		case 1:
			ok = t.ask(&wire.StreamShards{TenantID: s.Tenant, Namespace: s.Namespace, Stream: s.Name, RequestID: uint64(n)}, "stream_shards_view")
		case 2:
			ok = t.ask(&wire.ShardOwners{TenantID: s.Tenant, Namespace: s.Namespace, Name: s.Name, Kind: wire.ResourceStream, RequestID: uint64(n)}, "shard_owners_view")
		default:
			ok = t.ask(&wire.CacheGet{TenantID: s.Tenant, Namespace: s.Namespace, Cache: "nothing", Key: "k"}, "error")
		}
	}
	t.end()
}

// ask sends a message that is answered by one of that type.
func (t *talk) ask(m wire.Message, want string) bool {
	return t.request(wire.AppendJSONFrame(nil, m), &ask{what: m.MessageType(), take: func(got answer) error {
		if got.message == nil || got.message.MessageType() != want {
			return fmt.Errorf("answered %s, want %s", got, want)
		}
		return nil
	}})
}
