package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// groupBook is what clients were told of the group, all of them together. Nothing of the product's own knowledge is in it.
type groupBook struct {
	run    *drun
	shards []*groupShard
}

// groupShard is the group on one shard.
//
// What was finished once is finished for good, and a delivery stands until its end; each request that may change that is kept, from when it
// was sent until it was answered, as a touch. Seeks touch every record.
type groupShard struct {
	book    *groupBook
	log     *shardBook
	records map[id.Offset]*groupRecord // never iterated
	touches []*touch                   // seeks and reclaims
	life    int                        // it changes whenever claims may be gone
	era     int                        // it changes when positions or records may be
	excused id.Offset                  // below this a seek may have finished what nobody settled
	lost    int                        // polls whose answer nobody has got
	next    id.Offset                  // behind the highest offset that was handed out or asked for
}

// groupRecord is one record as the group knows it.
type groupRecord struct {
	shard      *groupShard
	at         id.Offset
	acked      int  // step in which the first acknowledgement came that is still good; never if none is
	ackedSent  int  // step in which that was asked for
	maybe      bool // a settlement may have happened of which nobody knows
	discarded  bool // a discard may have finished it
	listed     int  // step since which it is known to be a dead letter; never if it is not
	gaveUp     bool // somebody asked for that
	durable    uint32
	deliveries []*groupDelivery
	touches    []*touch
}

// groupDelivery is a record in an answer to a poll.
type groupDelivery struct {
	record    *groupRecord
	conn      *dconn
	member    string
	number    uint32
	sent, got int           // steps: its poll, its arrival
	least     time.Duration // true time until which the claim stands at least, if nobody ends it
	most      time.Duration // at most
	life, era int           // life is -1 if it is not known
	given     bool          // a nack of it was acknowledged
	extending int           // extends of it that are not answered
}

// touchKind says what a request may do to a record.
type touchKind uint8

const (
	touchAck touchKind = 1 << iota
	touchNack
	touchGiveUp
	touchDiscard
	touchRedrive
	touchSeek
	touchReclaim
)

// touch is one such request.
type touch struct {
	kind   touchKind
	sent   int    // step
	done   int    // step of its answer; never if there is none, nothing if it did nothing
	member string // of a reclaim
}

func newGroupBook(r *drun) *groupBook {
	b := &groupBook{run: r}
	for _, s := range r.book.shards {
		if s.stream.Name == r.resources[ordersStream].Name {
			b.shards = append(b.shards, &groupShard{book: b, log: s, records: map[id.Offset]*groupRecord{}})
		}
	}
	return b
}

func (s *groupShard) String() string { return fmt.Sprintf("the group on %s", s.log) }

func (r *groupRecord) String() string { return fmt.Sprintf("%s, offset %d", r.shard, r.at) }

// at is the record at an offset.
func (s *groupShard) at(o id.Offset) *groupRecord {
	r := s.records[o]
	if r == nil {
		r = &groupRecord{shard: s, at: o, acked: never, listed: never}
		s.records[o] = r
	}
	s.next = max(s.next, o+1)
	return r
}

// touch notes a request that may change a record.
func (r *groupRecord) touch(kind touchKind) *touch {
	t := &touch{kind: kind, sent: r.shard.book.run.world.Steps(), done: never}
	r.touches = append(r.touches, t)
	return t
}

func (s *groupShard) touch(kind touchKind, member string) *touch {
	t := &touch{kind: kind, sent: s.book.run.world.Steps(), done: never, member: member}
	s.touches = append(s.touches, t)
	return t
}

// touched reports whether a request of some kind, but for one, may have had its effect since a step.
func (r *groupRecord) touched(kinds touchKind, since int, but *touch) bool {
	for _, t := range r.touches {
		if t != but && t.kind&kinds != 0 && t.done >= since {
			return true
		}
	}
	for _, t := range r.shard.touches {
		if t != but && t.kind&kinds&touchSeek != 0 && t.done >= since {
			return true
		}
	}
	return false
}

// reclaimed reports whether a member may have taken back what it holds since a step.
func (s *groupShard) reclaimed(member string, since int) bool {
	for _, t := range s.touches {
		if t.kind == touchReclaim && t.member == member && t.done >= since {
			return true
		}
	}
	return false
}

// groupLives notes that the claims of a shard may be gone; "" means of every shard.
func (r *drun) groupLives(name string) {
	if r.groups == nil {
		return
	}
	for _, s := range r.groups.shards {
		if name == "" || s.log.String() == name {
			s.life++
		}
	}
}

// sawGroup notes which groups run: one that comes after another in a shard is one that was idle and is asked again, since groups do not fail.
func (n *dnode) sawGroup(path string) {
	shard, number, ok := strings.Cut(path, "/group/")
	if !ok || slices.Contains(n.groups, path) {
		return
	}
	n.groups = append(n.groups, path)
	if number != "1" && slices.Contains(n.groups, shard+"/group/1") {
		n.run.marks.hit(dmarkGroupAgain)
	}
}

// groupsLost notes what power cuts have left, before anybody is let in: no settlement is certain any more, and what the log has lost may come
// again as another record.
func (r *drun) groupsLost() {
	if r.groups == nil {
		return
	}
	for _, s := range r.groups.shards {
		s.life++
		s.era++
		for o := id.Offset(0); o < s.next; o++ {
			x := s.records[o]
			switch {
			case x == nil:
			case o >= s.log.end:
				delete(s.records, o)
				r.marks.hit(dmarkGroupLost)
			default:
				x.maybe = true // a dead letter may be gone as well, where the cursor is not
				x.acked, x.listed, x.durable = never, never, 0
			}
		}
		s.next = min(s.next, s.log.end)
	}
}

// claimTime is how long a claim of d stands in true time.
func (r *drun) claimTime(d time.Duration) time.Duration {
	return time.Duration(float64(d) * 1e6 / float64(r.plan.Clock.ppm))
}

// claimSlack is what clocks and timers round.
const claimSlack = time.Millisecond

// nothing is the step in which a request was done that did nothing.
const nothing = -1
