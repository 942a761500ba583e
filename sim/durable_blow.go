package main

import (
	"time"

	"github.com/felixd/felixd/storage/vfs"
)

// blow is a kill of the node's process or a power cut: at once, or in the midst of what the disk is doing, ops calls later.
type blow struct {
	cut    bool
	ops    int
	image  *vfs.Mem // what is left, once it has struck
	inside bool     // it struck inside a job
	order  bool     // the process had stopped in order before
}

// strike kills the node, or cuts its power, some calls of the disk from now, and after a while in any case.
func (r *drun) strike(n *dnode, cut bool, ops int) {
	n.blow = &blow{cut: cut, ops: ops}
	if ops == 0 {
		n.blown(false)
		return
	}
	r.clock.AfterFunc(20*time.Millisecond, func() {
		if !n.life.Over() && n.blow.image == nil {
			n.blown(false)
		}
	})
}

// stopInOrder has the node drain and end, and start again; with a power cut between, which takes nothing then.
func (r *drun) stopInOrder(n *dnode) {
	n.leaves = n.node.DrainSessions(func() {
		if err := n.node.DrainShards(func() {
			n.drained = true
			n.node.System.StopAll()
		}); err != nil {
			r.failf("%s: drain shards: %w", n.at.name, err)
		}
	}) == nil
}

// endedInOrder takes the end of a node that was to stop.
func (r *drun) endedInOrder(n *dnode) {
	if !n.drained || n.exec.open > 0 || len(n.node.System.Live()) > 0 {
		return
	}
	if err := n.store.Close(); err != nil {
		r.failf("%s: stopped in order: %w", n.at.name, err)
	}
	if open := n.mem.OpenFiles(); open != 0 {
		r.failf("%s: %d files are open after it stopped in order", n.at.name, open)
	}
	r.marks.hit(dmarkInOrder)
	n.blow = &blow{order: true, cut: r.world.Rand().IntN(2) == 0, image: n.mem.Clone()}
	if n.blow.cut && !n.poison {
		n.blow.image = n.mem.CrashHard()
	}
}

// operation is told of each call that changes the disk.
func (n *dnode) operation(vfs.Op) {
	if n.blow == nil || n.blow.image != nil || n.life.Over() {
		return
	}
	if n.blow.ops--; n.blow.ops <= 0 {
		n.blown(true)
	}
}

// blown takes what is left of the disk.
func (n *dnode) blown(inside bool) {
	b, r := n.blow, n.run
	b.inside = inside
	if !b.cut {
		b.image = n.mem.Clone()
		return
	}
	rand := r.world.Rand()
	switch rand.IntN(4) {
	case 0:
		b.image = n.mem.CrashHard()
	case 1:
		b.image = n.mem.Crash(func(k int) int { return k - 1 })
	default:
		b.image = n.mem.Crash(rand.IntN)
	}
	if b.image.Hash() != n.mem.Clone().Hash() {
		r.marks.hit(dmarkCutLost)
	}
}

// fall ends the life of the node where it stands, and begins another one a little later over what is left of the disk.
func (r *drun) fall(n *dnode) {
	b := n.blow
	if !b.order {
		r.marks.hit([]dmark{dmarkKill, dmarkKillInJob, dmarkCut, dmarkCutInJob}[2*index(b.cut)+index(b.inside)])
	}
	r.world.Mix(b.image.Hash())
	if b.cut && !b.order {
		r.cachesCut(b.image)
	}
	r.collect(n)
	r.abandon(n)
	r.node, r.image, r.lost = nil, b.image, r.lost || b.cut && !b.order
	r.disk = diskState{}
	down := time.Duration(r.world.Rand().Int64N(int64(30 * time.Millisecond)))
	if r.plan.weak() {
		down += hearsWithin // what the dead node has told is told before anybody looks what is left
	}
	r.startLater(down)
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// abandon has nothing of a node ever run again. Its clients hear of it later, each in its own time.
func (r *drun) abandon(n *dnode) {
	n.at.acceptor.closed = true
	for _, l := range r.net.links {
		if l.broker.clock != n.at.clock {
			continue
		}
		l.broker.fail(errLost)
		if l.client.ctx.Err() == nil {
			r.clock.AfterFunc(time.Duration(r.world.Rand().Int64N(int64(hearsWithin))), func() { l.client.fail(errLost) })
		}
	}
	r.net.links = nil
	n.life.End()
}

// hearsWithin is when a client hears at the latest that its node is gone; until then it gets what was on its way.
const hearsWithin = 5 * time.Millisecond

// startLater begins the next life.
func (r *drun) startLater(d time.Duration) {
	r.clock.AfterFunc(d, func() {
		if r.fail("start", r.startNode()); r.err != nil {
			return
		}
		r.book.restarted()
		r.audit()
		r.chaos.atStart()
	})
}

// collect takes what a node has counted.
func (r *drun) collect(n *dnode) {
	c := n.counted
	r.marks[dmarkRoll] += int(c.Rolls.Load())
	if c.TruncatedBytes.Load() > 0 {
		r.marks.hit(dmarkRecoveredCut)
	}
	if c.CompressedIn.Load() > 0 {
		r.marks.hit(dmarkCompressed)
	}
	if c.ReadsCorrupt.Load() > 0 {
		r.failf("%s: %d reads found damage", n.at.name, c.ReadsCorrupt.Load())
	}
}
