package main

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
)

// dchaos strikes now and then, as long as the plan allows it.
type dchaos struct {
	run  *drun
	left int
	next int // step of the next strike
}

// afterStep makes a strike a possible next step when it is due.
func (c *dchaos) afterStep() {
	w := c.run.world
	if c.left == 0 || c.run.calm || w.Steps() < c.next {
		return
	}
	c.next = w.Steps() + 1 + w.Rand().IntN(500)
	w.Post(simrt.Outside, "chaos", func() {
		if n := c.run.node; n != nil && n.listens && n.blow == nil && !c.run.calm {
			c.left--
			c.strike(n)
		}
	})
}

// strike does one harmful thing.
func (c *dchaos) strike(n *dnode) {
	r := c.run.world.Rand()
	switch k := r.IntN(26); {
	case k < 8:
		ops := 0
		if r.IntN(3) > 0 {
			ops = 1 + r.IntN(16)
		}
		c.run.world.Note("power cut: %v, in %d calls", k >= 4, ops)
		c.run.strike(n, k >= 4, ops)
	case k < 9:
		c.failSync(n)
	case k < 11:
		c.fill(n)
	case k < 13:
		c.failWrites(n)
	case k < 14:
		c.slow()
	case k < 16:
		c.hang()
	case k < 18:
		c.crash(n)
	case k < 19:
		c.hold(n)
	case k < 21:
		c.failReads(n)
	case k < 23:
		c.run.world.Note("stop in order")
		if !n.leaves {
			c.run.stopInOrder(n)
		}
	case k < 25:
		c.assign(n)
	default:
		c.lose()
	}
}

// atStart strikes a node that has just begun to open its logs: a start is no safer a time than any other.
func (c *dchaos) atStart() {
	n, r := c.run.node, c.run.world.Rand()
	if c.run.calm || c.left == 0 || r.IntN(4) > 0 {
		return
	}
	c.left--
	if r.IntN(3) == 0 {
		c.failReads(n)
		return
	}
	cut := r.IntN(2) == 0
	c.run.world.Note("power cut: %v, during the start", cut)
	c.run.marks.hit(dmarkAtStart)
	c.run.strike(n, cut, 1+r.IntN(30))
}

// failReads has some of the next reads fail: of a start, of a reader behind the tail.
func (c *dchaos) failReads(n *dnode) {
	r := c.run.world.Rand()
	c.run.world.Note("reads are to fail")
	n.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead, vfs.CallOpen, vfs.CallStat, vfs.CallReadDir}, From: 1 + r.IntN(12), Times: 1 + r.IntN(3), Err: syscall.EIO})
}

// failSync has one of the next syncs fail.
func (c *dchaos) failSync(n *dnode) {
	r := c.run.world.Rand()
	c.run.world.Note("a sync is to fail")
	calls := []vfs.Call{vfs.CallSync}
	if r.IntN(3) == 0 {
		calls = []vfs.Call{vfs.CallSyncDir}
	}
	n.fault.Add(vfs.Rule{Calls: calls, From: 1 + r.IntN(3), Times: 1, Err: syscall.EIO, Late: r.IntN(2) == 0,
		Match: func(name string) bool { return strings.Contains(name, "-") && !strings.HasSuffix(name, ".snap.tmp") }})
}

// fill leaves room for little more on the disk, for a while.
func (c *dchaos) fill(n *dnode) {
	r := c.run.world.Rand()
	c.run.world.Note("the disk is nearly full")
	n.mem.SetCapacity(n.mem.Used() + r.Int64N(3)*4096)
	c.run.clock.AfterFunc(time.Duration(1+r.Int64N(int64(100*time.Millisecond))), func() { n.mem.SetCapacity(vfs.Unlimited) })
	c.cutSoon(n)
}

// cutSoon has the power go sometimes while what just went wrong is being put right.
func (c *dchaos) cutSoon(n *dnode) {
	r := c.run.world.Rand()
	if r.IntN(2) == 0 {
		return
	}
	c.run.clock.AfterFunc(time.Duration(r.Int64N(int64(20*time.Millisecond))), func() {
		if !n.life.Over() && n.blow == nil && !c.run.calm {
			c.run.world.Note("power cut: true, on top")
			c.run.strike(n, true, r.IntN(12))
		}
	})
}

// failWrites has some of the next writes fail after half of them.
func (c *dchaos) failWrites(n *dnode) {
	r := c.run.world.Rand()
	c.run.world.Note("writes are to fail")
	n.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", From: 1 + r.IntN(4), Times: 1 + r.IntN(2), Short: r.IntN(3) > 0, Err: []error{syscall.EIO, syscall.ENOSPC}[r.IntN(2)]})
	c.cutSoon(n)
}

// slow has the disk take a hundred times as long, for a while.
func (c *dchaos) slow() {
	d := &c.run.disk
	d.slow = 100 * c.run.plan.Disk.JobTime
	d.until, d.hangs = c.run.world.Now()+4*d.slow, false
	c.run.world.Note("the disk is slow until %v", d.until)
	c.run.marks.hit(dmarkSlow)
}

// hang has the disk do nothing for longer than anybody believes in.
func (c *dchaos) hang() {
	d := &c.run.disk
	d.until, d.hangs = c.run.world.Now()+time.Duration(4000+c.run.world.Rand().Int64N(6000))*time.Millisecond, true
	d.hung = max(d.hung, d.until)
	c.run.world.Note("the disk hangs until %v", d.until)
}

// assign has the node host the same streams at a higher generation, or keep them in another way.
func (c *dchaos) assign(n *dnode) {
	r := c.run.world.Rand()
	again := r.IntN(2) == 0
	c.run.world.Note("assigned anew, with another generation: %v", again)
	if again {
		c.run.raiseGenerations()
	}
	for i := range c.run.resources {
		if a := &c.run.resources[i]; a.Durable && a.Name.Kind == route.Stream {
			a.Compress = r.IntN(2) == 0
			a.Retention.Bytes *= 2
		}
	}
	c.run.marks.hit(dmarkAssigned)
	c.run.assign(n)
}

// pick draws a live actor of one of the kinds.
func (c *dchaos) pick(n *dnode, kinds ...string) (path string, ok bool) {
	list, _, err := n.node.System.Faults().List("", actors.FaultListMax)
	if err != nil {
		c.run.failf("%s: list actors: %v", n.at.name, err)
		return "", false
	}
	list = slices.DeleteFunc(list, func(a actors.ActorInfo) bool { return a.Stopping || !slices.Contains(kinds, a.Kind) })
	if len(list) == 0 {
		return "", false
	}
	return list[c.run.world.Rand().IntN(len(list))].Path, true
}

func (c *dchaos) crash(n *dnode) {
	if path, ok := c.pick(n, "shard"); ok {
		c.run.world.Note("crash %s", path)
		c.run.fail("crash", n.node.System.Faults().Crash(path))
	}
}

// hold pauses an actor for a while.
func (c *dchaos) hold(n *dnode) {
	if path, ok := c.pick(n, "shard", "host", "janitor"); ok {
		c.run.world.Note("hold %s", path)
		c.run.fail("pause", n.node.System.Faults().Pause(path, time.Duration(1+c.run.world.Rand().Int64N(int64(20*time.Millisecond)))))
	}
}

// lose breaks a connection off, from the client's side.
func (c *dchaos) lose() {
	live := slices.DeleteFunc(slices.Clone(c.run.net.links), func(l *link) bool { return l.client.ctx.Err() != nil })
	if len(live) > 0 {
		live[c.run.world.Rand().IntN(len(live))].client.lose("chaos")
	}
}
