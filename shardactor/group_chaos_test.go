package shardactor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// groupChaos is a node with two tenants, a stream of two shards each, and groups on them with hardly any room for what they keep.
type groupChaos struct {
	t    *testing.T
	r    *rand.Rand
	d    *diskWorld
	list []route.Assignment
}

// shard is one of the shards, once it is served.
func (c *groupChaos) shard(i int) *Handle {
	c.t.Helper()
	return c.d.target(c.list[i/2].Name, uint32(i%2), func(x Target) bool {
		if x.State != route.Local {
			c.d.clock.Advance(20 * time.Millisecond)
		}
		return x.State == route.Local
	}).Shard
}

// ask sends a request and lets time pass until it is answered; nil if the shard is gone.
func (c *groupChaos) ask(h *Handle, group string, in groupcore.Input) any {
	c.t.Helper()
	w := c.send(h, group, in)
	if w == nil {
		return nil
	}
	for deadline := time.Now().Add(patience); ; {
		select {
		case a := <-w.out:
			return a
		default:
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%T is not answered", in)
		}
		c.d.clock.Advance(time.Millisecond)
		yield()
	}
}

func (c *groupChaos) send(h *Handle, group string, in groupcore.Input) *worker {
	w := &worker{t: c.t, h: h, name: group, conn: 1, out: make(chan any, 16)}
	m := &GroupRequest{Group: group, In: in}
	m.To(w, 1)
	if h.Ref.TrySend(m, Size(m)) != nil {
		return nil
	}
	return w
}

// crash has one actor of a kind fail.
func (c *groupChaos) crash(kind string) {
	list, _, err := c.d.sys.Faults().List("", actors.FaultListMax)
	c.d.must(err)
	c.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, a := range list {
		if a.Kind == kind {
			_ = c.d.sys.Faults().Crash(a.Path) // it may be gone by now
			return
		}
	}
}

// work polls, and finishes, gives up or gives back what comes.
func (c *groupChaos) work(h *Handle, group string) {
	got, _ := c.ask(h, group, &groupcore.Poll{Conn: 1, Max: uint32(1 + c.r.IntN(60)), Wait: time.Duration(c.r.IntN(2)) * time.Second}).([]groupcore.Handed)
	way := c.r.IntN(8)
	for n, o := range got {
		switch (n + way) % 4 {
		case 0:
			c.ask(h, group, &groupcore.Ack{Offset: o.Offset})
		case 1:
			c.ask(h, group, groupcore.GiveUp{Offset: o.Offset})
		case 2:
			c.ask(h, group, groupcore.Nack{Conn: 1, Offset: o.Offset})
		}
	}
}

// deadLetters has some handed out again and takes others away.
func (c *groupChaos) deadLetters(h *Handle, group string) {
	a, _ := c.ask(h, group, groupcore.ListDead{Max: 100}).(groupcore.Answer)
	for n, o := range a.Dead {
		if n%2 == 0 {
			c.ask(h, group, groupcore.Redrive{Offset: o})
		} else {
			c.ask(h, group, groupcore.Discard{Offset: o})
		}
	}
}

func (c *groupChaos) step() {
	h, group := c.shard(c.r.IntN(4)), fmt.Sprint("group", c.r.IntN(3))
	switch x := c.r.IntN(20); {
	case x < 8:
		c.work(h, group)
	case x < 10:
		c.deadLetters(h, group)
	case x < 11:
		c.ask(h, group, groupcore.Remove{})
	case x < 13:
		c.ask(h, group, groupcore.Seek{Start: wire.Start{Kind: wire.StartOffset, Offset: id.Offset(c.r.IntN(100))}})
	case x < 15:
		c.crash("group")
	case x < 16:
		c.crash("shard")
		c.d.clock.Advance(10 * time.Second)
	case x < 17: // all groups rest
		c.d.clock.Advance(2 * time.Hour)
	case x < 19: // a stream is removed, and made anew maybe
		c.d.want(c.list[0])
		if c.r.IntN(2) == 0 {
			c.list[1].Incarnation++
		}
		c.d.want(c.list...)
	default: // a poll that is left waiting
		c.send(h, group, &groupcore.Poll{Conn: 2, Max: 100, Wait: 30 * time.Second})
	}
}

// Whatever fails, comes and goes, every request is answered, and when all is closed nothing is held any more and no file is open: see
// diskWorld.close. The end comes without a drain, in the midst of it all, which no part of the node takes for a fault of its own.
func TestShardsWithGroupsEndWhollyWhateverIsUnderWay(t *testing.T) {
	const lives = 3 // of one disk
	for left, seed := effort.Size("group_shard_lives"), uint64(1); left > 0; left, seed = left-lives, seed+1 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := &groupChaos{t: t, r: rand.New(rand.NewPCG(seed, 7))}
			mem := vfs.NewMem()
			settings := DefaultGroupSettings()
			settings.Kept, settings.Options.IdleAfter, settings.Options.BackOff = keptKeys(6, 40), time.Minute, nil
			for life := range min(lives, left) {
				c.d = newDiskWorld(t, mem, func(s *diskSetup) { s.disk.Groups = settings })
				c.list = []route.Assignment{durableStream("a", 1, 2), durableStream("b", 1, 2)}
				c.list[0].Name.Tenant, c.list[1].Name.Tenant = "t1", "t2"
				c.d.want(c.list...)
				if life == 0 {
					texts := make([]string, 100)
					for i := range 4 {
						written(t, c.shard(i), 0, texts...)
					}
				}
				for range 60 {
					c.step()
				}
				c.d.stop()
			}
		})
	}
}
