package main

import (
	"time"
)

// useGroup lets those who use the group go.
func (r *drun) useGroup() {
	if r.groups == nil {
		return
	}
	for n := range r.plan.Group.Workers {
		c := r.newClient()
		w := &groupWorker{c: c}
		if n > 0 {
			w.member = []string{"m1", "m2"}[n%2] // two of them may be one
		}
		c.work("working", w.working)
	}
	c := r.newClient()
	c.work("administering", c.administering)
}

// groupWorker polls, and finishes what it gets, or not.
type groupWorker struct {
	c      *dclient
	member string
	fresh  bool             // the connection has not polled yet
	old    []*groupDelivery // that it has left as they were
}

func (w *groupWorker) working() {
	r := w.c.run.world.Rand()
	for n := 0; n < w.c.run.plan.Group.Polls; {
		t := w.c.connect()
		if t == nil {
			return
		}
		if w.c.run.plan.Group.Late && !w.c.rest(50*time.Millisecond) {
			return
		}
		w.fresh = true
		for n < w.c.run.plan.Group.Polls && t.idle(0) {
			n++
			list, ok := t.poll(w.draw(r.IntN))
			if !ok || !w.handle(t, list) || r.IntN(24) == 0 {
				break
			}
			if len(list) == 0 && !w.c.sleep(10*time.Millisecond) {
				return
			}
		}
		t.idle(r.IntN(4)) // a connection may go with settlements on their way
		t.close()
	}
}

func (w *groupWorker) draw(in func(int) int) groupPoll {
	shards := w.c.run.groups.shards
	p := groupPoll{shard: shards[in(len(shards))], most: []uint32{1, 3, 8, 64}[in(4)]}
	p.wait = []time.Duration{0, 0, 10 * time.Millisecond, 200 * time.Millisecond}[in(4)]
	if w.c.run.plan.Group.Long && in(8) > 0 {
		p.shard, p.most = shards[0], 1
	}
	p.visibility = []time.Duration{0, 0, 5 * time.Millisecond, 50 * time.Millisecond, 3 * time.Second}[in(5)]
	if p.member = w.member; p.member != "" && w.fresh {
		p.reclaim = in(3) > 0
	}
	w.fresh = false
	return p
}

// handle does something with each record; false when the connection is to end.
func (w *groupWorker) handle(t *dconn, list []*groupDelivery) bool {
	r := w.c.run.world.Rand()
	for _, d := range list {
		ok := t.idle(1 + r.IntN(6))
		poison := d.record.at%5 == 3 && r.IntN(4) > 0 || w.c.run.plan.Group.Long && r.IntN(8) > 0
		switch n := r.IntN(24); {
		case !ok:
		case poison && n < 20:
			ok = t.nack(d, 0, true)
		case n < 13:
			ok = t.ack(d.record)
		case n < 15:
			ok = t.nack(d, time.Duration(r.IntN(100))*time.Millisecond, r.IntN(3) > 0)
		case n < 17:
			ok = t.extend(d, time.Duration(1+r.IntN(300))*time.Millisecond) && (r.IntN(2) == 0 || w.c.sleep(30*time.Millisecond)) && t.ack(d.record)
		case n < 20:
			ok = w.stall(t, d)
		case n < 23:
			w.old = append(w.old, d)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return w.late(t)
}

// stall waits until a delivery has lapsed for certain, and comes back to it all the same.
func (w *groupWorker) stall(t *dconn, d *groupDelivery) bool {
	run := w.c.run
	if left := d.most - run.world.Now(); left > 200*time.Millisecond || !t.idle(0) || !w.c.rest(left+claimSlack) {
		w.old = append(w.old, d)
		return !t.over
	}
	return w.settleLate(t, d)
}

// late comes back to a delivery that it has left, now and then.
func (w *groupWorker) late(t *dconn) bool {
	if len(w.old) == 0 || w.c.run.world.Rand().IntN(2) == 0 {
		return true
	}
	d := w.old[0]
	w.old = w.old[1:]
	return w.settleLate(t, d)
}

func (w *groupWorker) settleLate(t *dconn, d *groupDelivery) bool {
	switch r := w.c.run.world.Rand(); r.IntN(3) {
	case 0:
		return t.nack(d, time.Duration(r.IntN(10))*time.Millisecond, true)
	case 1:
		return t.extend(d, time.Duration(1+r.IntN(300))*time.Millisecond)
	}
	return d.era != d.record.shard.era || t.ack(d.record) // elsewhere it may be another record
}

// rest gives way for d of true time; false when the world ends.
func (c *dclient) rest(d time.Duration) bool {
	g := c.run.world.NewGate()
	c.run.clock.AfterFunc(max(d, 1), g.Ring)
	return g.Wait()
}
