package main

import (
	"fmt"
	"time"
)

// drain has a good worker do what is left, and judges what became of every record.
func (r *drun) drain() error {
	if r.groups == nil {
		return nil
	}
	for _, s := range r.groups.shards {
		c := r.newClient()
		c.work("draining", func() { c.draining(s, r.node) })
	}
	if err := r.await("the group has finished everything", liveWithin, func() bool { return r.busy == 0 }); err != nil {
		return fmt.Errorf("%w: %s", err, r.groupsBehind())
	}
	for _, s := range r.groups.shards {
		if err := s.settled(); err != nil {
			return err
		}
	}
	return nil
}

// draining finishes everything that a shard has for the group, dead letters included.
func (c *dclient) draining(s *groupShard, life *dnode) {
	for !c.run.finished {
		t := c.connect()
		if t == nil {
			return
		}
		for t.idle(0) {
			list, ok := t.poll(groupPoll{shard: s, most: 64, wait: 20 * time.Millisecond})
			for _, d := range list {
				ok = ok && t.idle(8) && t.ack(d.record)
			}
			if !ok || !t.idle(0) {
				break
			}
			if len(list) > 0 {
				continue
			}
			if rests, ok := c.rests(t, s, life); !ok || rests {
				if rests {
					t.close()
					return
				}
				break
			}
		}
		t.close()
	}
}

// rests reports whether the group has nothing left to do on a shard. What it gave up on is not left alone.
func (c *dclient) rests(t *dconn, s *groupShard, life *dnode) (rests, ok bool) {
	info, ok := t.describe(s)
	if !ok || info == nil {
		return false, ok && c.sleep(20*time.Millisecond)
	}
	if info.InFlight+info.Owed == 0 && info.DeadLetters > 0 {
		list, ok := t.deadLetters(s)
		if ok && uint64(len(list)) != info.DeadLetters && list != nil {
			c.run.failf("%s: %d dead letters are counted, and the list has %d", s, info.DeadLetters, len(list))
		}
	}
	if info.DeadLetters > 0 {
		return false, t.handleDead(s, 64) && t.idle(0)
	}
	rests = info.Committed.Set && info.Committed.V == info.Tail && info.InFlight+info.Owed == 0 && info.Tail >= s.log.end
	if rests {
		c.run.marks.hit(dmarkDrained)
	}
	return rests, true
}

func (r *drun) groupsBehind() (out string) {
	for _, s := range r.groups.shards {
		for o := s.log.base; o < s.log.end; o++ {
			if x := s.records[o]; x == nil || !x.over() {
				out += fmt.Sprintf("%s is not finished; ", s.at(o))
			}
		}
	}
	return out
}

// over reports whether somebody finished a record, as far as anybody knows.
func (r *groupRecord) over() bool {
	return r.acked != never || r.maybe || r.discarded || r.at < r.shard.excused
}

// settled judges that every record of the log was finished by somebody who was told so.
func (s *groupShard) settled() error {
	for o := s.log.base; o < s.log.end; o++ {
		x := s.records[o]
		switch {
		case x == nil && o < s.excused, x == nil && s.book.run.plan.trims():
		case x == nil:
			return fmt.Errorf("%s is finished up to its end, and offset %d was never handed out", s, o)
		case !x.over() && !s.book.run.plan.trims():
			return fmt.Errorf("%s: finished, and nobody did that; %d deliveries", x, len(x.deliveries))
		}
	}
	return nil
}

// stillSettled asks a node that was started again how far the group is: nothing is left to do.
func (r *drun) stillSettled() error {
	if r.groups == nil {
		return nil
	}
	for _, s := range r.groups.shards {
		c := r.newClient()
		c.work("looking again", func() {
			t := c.connect()
			if t == nil {
				return
			}
			for tries := 0; ; tries++ {
				info, ok := t.describe(s)
				if info == nil && tries > 100 {
					r.failf("%s cannot be described after a start", s)
					break
				}
				if info != nil && (!info.Committed.Set || info.Committed.V != info.Tail || info.InFlight+info.Owed+info.DeadLetters > 0) {
					r.failf("%s: after a start it is at %v of %d, with %d in flight, %d owed, %d dead letters", s, info.Committed, info.Tail, info.InFlight, info.Owed, info.DeadLetters)
				}
				if info != nil || !ok || !c.sleep(10*time.Millisecond) {
					break
				}
			}
			if list, _ := t.poll(groupPoll{shard: s, most: 8}); len(list) > 0 {
				r.failf("%s: offset %d is handed out after everything was finished", s, list[0].record.at)
			}
			t.close()
		})
	}
	return r.await("the group was asked after the stop", liveWithin, func() bool { return r.busy == 0 })
}
