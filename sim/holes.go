package main

import (
	"fmt"
	"strings"

	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// holder names a subscription of a node: the path of its session, and its number there.
type holder struct {
	session string
	number  uint64
}

// holes is what a node says that a subscription does not get: the offsets, each of which is one record in a simulation. They are
// told when they are lost, before anything behind them is delivered.
type holes struct {
	offsets map[id.Offset]bool // never iterated
}

// drops is given to the node as Dropped.
func (b *broker) drops(d storage.Drop) {
	owner := d.Owner.(*sessionactor.SubscriptionOwner)
	key := holder{fmt.Sprintf("%s/sessions/%d", b.name, owner.Session), owner.Subscription}
	h := b.holes[key]
	if h == nil {
		h = &holes{offsets: map[id.Offset]bool{}}
		b.holes[key] = h
	}
	for o := d.From; o < d.To; o++ {
		if h.offsets[o] {
			b.run.failf("%s: offset %d was lost to subscription %d of session %d twice", b.name, o, owner.Subscription, owner.Session)
		}
		h.offsets[o] = true
	}
	if d.Records != d.To.Since(d.From) {
		b.run.failf("%s: %d records were counted for [%d, %d)", b.name, d.Records, d.From, d.To)
	}
	b.dropped += d.Records
	if b.run.plan.Limits.Overflow == storage.Block {
		b.run.failf("%s: under block, [%d, %d) was lost to subscription %d of session %d", b.name, d.From, d.To, owner.Subscription, owner.Session)
	}
	if d.Why == storage.BudgetUsed {
		b.run.marks.hit(markBudgetUsed)
	}
}

// lost reports whether the node has said that the subscription does not get what lies at a place.
func (s *subscription) lost(at int) bool {
	h := s.c.to.holes[s.holder()]
	return h != nil && h.offsets[id.Offset(at)]
}

// lostCount is how many records the node has said that it does not get.
func (s *subscription) lostCount() int {
	if h := s.c.to.holes[s.holder()]; h != nil {
		return len(h.offsets)
	}
	return 0
}

func (s *subscription) holder() holder { return holder{s.c.link.session, s.id} }

// allLost is the first place of from up to end whose record the subscription should have got; ok when there is none.
func (s *subscription) allLost(from, end int) (missing int, ok bool) {
	for at := from; at < end; at++ {
		if !s.lost(at) {
			return at, false
		}
	}
	return end, true
}

// checkQueue judges the queue that a subscription was granted.
func (s *subscription) checkQueue(got wire.Opt[uint32]) error {
	most := uint32(s.c.run.plan.Limits.Delivery.CapacityMax)
	if want := min(max(s.queue.V, 1), most); got.Set != s.queue.Set || got.Set && got.V != want {
		return fmt.Errorf("asked for a queue of %v and was granted %v", s.queue, got)
	}
	return nil
}

// findStart looks where the subscription begins, in the moment in which the client hears that it does.
func (s *subscription) findStart() {
	e := s.c.to.node.Table.Get(s.name)
	if e == nil {
		return
	}
	t, ok := e.Shard(s.shard)
	if !ok || t.State != route.Local {
		return
	}
	for _, c := range t.Shard.Log.Cursors(0, 1<<20) {
		owner := c.Owner.(*sessionactor.SubscriptionOwner)
		if owner.Subscription == s.id && strings.HasSuffix(s.c.link.session, fmt.Sprintf("/sessions/%d", owner.Session)) {
			// A log is there before its shard is born, and beside the one that it replaces: then there is no telling yet which life it
			// will be.
			if lives := s.c.to.truth.shard(s.name, s.shard).lives; lives[len(lives)-1].ref == t.Shard.Ref.ID() {
				s.start, s.begins = c.Start, lives[len(lives)-1]
			}
		}
	}
}

// exact judges a subscription whose beginning is known, once nothing moves any more: from there on, every record was delivered or is one
// of its holes, and none is both.
func (s *subscription) exact() error {
	l := s.begins
	first := s.first
	if s.life == nil {
		first = len(l.records)
		s.next = first
	}
	if s.life != nil && s.life != l {
		return fmt.Errorf("%s: subscription %d to %s/%d was registered with one incarnation and delivers another", s.c.name, s.id, s.name, s.shard)
	}
	if first < int(s.start) {
		return fmt.Errorf("%s: subscription %d to %s/%d begins at %d and delivers %d", s.c.name, s.id, s.name, s.shard, s.start, first)
	}
	for _, span := range [][2]int{{int(s.start), first}, {s.next, len(l.records)}} {
		if at, ok := s.allLost(span[0], span[1]); !ok {
			return fmt.Errorf("%s: subscription %d to %s/%d misses record %d of %d, which is in no hole of it", s.c.name, s.id, s.name, s.shard, at, len(l.records))
		}
	}
	if missed := first - int(s.start) + s.gaps + len(l.records) - s.next; missed != s.lostCount() {
		return fmt.Errorf("%s: subscription %d to %s/%d misses %d records, its holes have %d", s.c.name, s.id, s.name, s.shard, missed, s.lostCount())
	}
	return nil
}

// fullReaders lists the subscriptions that have as much queued as they may: under block, publishers wait for them.
func (b *broker) fullReaders() (out []string) {
	for _, e := range b.node.Table.Entries() {
		for n, t := range e.Shards() {
			if e.Name.Kind != route.Stream || t.State != route.Local {
				continue
			}
			for _, c := range t.Shard.Log.Cursors(0, 1<<20) {
				if owner := c.Owner.(*sessionactor.SubscriptionOwner); c.Queued >= c.Capacity {
					out = append(out, fmt.Sprintf("%s/%d: %s/sessions/%d/sub/%d has %d of %d queued", e.Name, n, b.name, owner.Session, owner.Subscription, c.Queued, c.Capacity))
				}
			}
		}
	}
	return out
}
