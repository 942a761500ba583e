package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// start brings up the node over an empty disk.
func (r *drun) start() error {
	if err := r.startNode(); err != nil {
		return err
	}
	return r.await("every shard serves", liveWithin, func() bool { return r.node != nil && r.node.listens && r.node.serves() })
}

// rage lets clients and chaos go.
func (r *drun) rage() error {
	rand := r.world.Rand()
	for range r.plan.Writers {
		c := r.newClient()
		c.work("plain", c.plain)
	}
	for range 1 + rand.IntN(2) {
		c := r.newClient()
		c.work("producer", c.producing)
	}
	for range 2 {
		c := r.newClient()
		c.work("agreeing", c.agreeing)
	}
	c := r.newClient()
	c.work("committing", c.committing)
	c = r.newClient()
	c.work("ticking", c.ticking)
	for _, s := range r.book.shards {
		for range 1 + rand.IntN(2) {
			c := r.newClient()
			start := wire.Start{Kind: []wire.StartKind{wire.StartLatest, wire.StartEarliest, wire.StartOffset}[rand.IntN(3)]}
			late := rand.IntN(2) == 0
			c.launch("subscriber", func() {
				if !late || c.sleep(100*time.Millisecond) {
					c.subscribing(s, start)
				}
			})
		}
	}
	r.useCaches()
	r.useGroup()
	if r.plan.trims() { // somebody comes for the first record when it may be gone
		for _, s := range r.book.shards {
			c := r.newClient()
			c.launch("subscriber", func() {
				if c.sleep(time.Second) {
					c.subscribing(s, wire.Start{Kind: wire.StartOffset})
				}
			})
		}
	}
	end := r.world.Steps() + durableRage
	return r.world.Run(durableSteps, func() bool { return r.busy == 0 || r.world.Steps() >= end })
}

// disksAreBack is how long after a disk hung its last job ends: clocks are not quite right.
const disksAreBack = 3 * time.Second

// calmDown ends chaos, starts a node anew that has lost a log, and waits until every client has done what it wanted.
func (r *drun) calmDown() error {
	r.calm = true
	if err := r.await("the last blow has struck", liveWithin, func() bool { return r.node != nil && r.node.blow == nil && !r.node.leaves }); err != nil {
		return err
	}
	n := r.node
	n.fault.Set(nil)
	n.mem.SetCapacity(vfs.Unlimited)
	back := max(r.disk.until, r.disk.hung) + disksAreBack
	r.disk = diskState{}
	n.node.System.Faults().HealAll()
	if n.poison || r.world.Rand().IntN(3) == 0 {
		r.strike(n, false, 0)
	}
	if err := r.await("the last job that hung has ended", liveWithin, func() bool { return r.world.Now() > back }); err != nil {
		return err
	}
	good := func() bool {
		if n := r.node; n != nil && n.poison && n.blow == nil { // what failed before the disk was put right may be heard of later
			r.strike(n, false, 0)
		}
		return r.node != nil && r.node.blow == nil && r.node.listens && r.busy == 0 && r.node.serves()
	}
	return r.await("clients are done and every shard serves", 2*liveWithin, good)
}

// probe writes to every shard once more.
func (r *drun) probe() error {
	for _, s := range r.book.shards {
		c := r.newClient()
		c.work("probe", func() {
			t := c.connect()
			if t == nil || !t.publish(s, 1, true) || !t.idle(0) {
				r.failf("%s: the probe of %s found its stream over", c.name, s)
				return
			}
			if _, acked := s.where[recordID(c.number, 1, c.records)]; !acked && !r.plan.Limits.AckAtClaim {
				r.failf("%s: a publish to %s was not acknowledged long after the last fault", c.name, s)
			}
			t.close()
		})
	}
	r.probeCaches()
	return r.await("probes are answered", liveWithin, func() bool { return r.busy == 0 })
}

// settle reads everything once more, and waits until every subscription has come to the end of its log.
func (r *drun) settle() error {
	r.audit()
	if err := r.await("everything was read", liveWithin, func() bool { return r.busy == 0 }); err != nil {
		return err
	}
	if r.audits != 0 {
		return fmt.Errorf("%d shards were not read", r.audits)
	}
	if err := r.await("every subscription has come to the end", liveWithin, func() bool { return r.behind() == "" }); err != nil {
		return fmt.Errorf("%w; behind: %s", err, r.behind())
	}
	if err := r.await("every watch has come to the end", liveWithin, func() bool { return r.watchesBehind() == "" }); err != nil {
		return fmt.Errorf("%w; behind: %s", err, r.watchesBehind())
	}
	if err := r.settleCaches(); err != nil {
		return err
	}
	return r.settleStates()
}

// behind lists the subscriptions that are not at the end of their logs.
func (r *drun) behind() string {
	var out []string
	for _, x := range r.subs {
		if !x.live || x.next < x.shard.end {
			out = append(out, fmt.Sprintf("%s at %d of %s, which ends at %d (live: %v)", x.c.name, x.next, x.shard, x.shard.end, x.live))
		}
	}
	return strings.Join(out, ", ")
}

// settleStates compares the state of each entity with the last commit for it in the log.
func (r *drun) settleStates() error {
	s := r.book.of(ledgerStream, 0)
	c := r.newClient()
	c.work("states", func() {
		t := c.connect()
		for _, entity := range entities {
			var last wire.Opt[id.Offset]
			for o := s.base; o < s.end; o++ {
				if r.book.records[s.at[o]].entity == entity {
					last = wire.Some(o)
				}
			}
			if t == nil || !t.state(s, entity, func(version wire.Opt[id.Offset]) error {
				if version != last && !r.plan.trims() {
					return fmt.Errorf("%s is of version %v, and the last commit for it is at %v", entity, version, last)
				}
				return nil
			}) {
				r.failf("%s: the state of %s cannot be read", c.name, entity)
				return
			}
		}
		t.close()
	})
	return r.await("states are read", liveWithin, func() bool { return r.busy == 0 })
}
