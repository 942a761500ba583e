package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

const (
	floodStreams = 6   // of one client, each with a full window
	floodUnacked = 400 // publishes nobody wants an answer for
)

// flood fills the mailbox of one shard, which is held back meanwhile.
func (c *client) flood() {
	to := c.streams()[0]
	f := publishForm{ack: wire.AckPerBatch, key: []byte("one shard"), sizes: []int{8}}
	shard := to.Routing.Shard(f.key, true, to.Shards)
	path, ok := c.to.shardPath(to.Name, shard)
	if !ok {
		return
	}
	if err := c.to.node.System.Faults().Pause(path, 200*time.Millisecond); err != nil {
		c.run.world.Note("%v", err) // it is stopping
	}
	for n := range floodStreams {
		c.work(fmt.Sprintf("flood %d", n), func() {
			t := c.talk(wire.PublishWindow)
			for ok, n := t.authenticate("good"), 0; ok && n < wire.PublishWindow; n++ {
				ok = t.publish(to, f)
			}
			if t.idle() {
				t.finish()
			}
		})
	}
	c.work("flood without answers", func() { c.floodSilently(path) })
}

// floodSilently sends publishes without acknowledgement once the mailbox is full.
func (c *client) floodSilently(path string) {
	if !c.sleep(20 * time.Millisecond) {
		return
	}
	c.next++
	t := &talk{c: c, number: c.next, name: fmt.Sprintf("%s/%d", c.name, c.next)}
	p := c.link.client.openOneWay(t.name)
	if _, err := p.Write(c.authFrame()); err != nil {
		return
	}
	f := publishForm{key: []byte("one shard"), sizes: []int{8}}
	for range floodUnacked {
		pub, region := t.compose(c.streams()[0], f)
		pub.begun = c.run.world.Steps()
		if _, err := p.Write(encode(pub, f, region, 0)); err != nil {
			return
		}
	}
	_ = p.Close() // it may be over already
}
