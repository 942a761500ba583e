package groupcore

import (
	"fmt"
	"math"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Core is one group of one shard. It is not safe for concurrent use: its actor owns it.
//
// Invariants, checked after every Step where that is cheap and by CheckAll altogether:
//
//  1. base <= cursor <= next, and every offset in [cursor, next) is settled or in play, and in both only if redriven or listed;
//  2. settled ranges ascend, touch neither each other nor the cursor, and are bounded, see mostRanges;
//  3. a record in play is in the heap of its state and in no other, and has at most one holder;
//  4. a record is redriven exactly if a dead letter says that it is owed;
//  5. waiting polls are in the ring and among the ends; polls that are read for are in neither;
//  6. of each log at most one Persist is on its way, and a settlement waits only while something of it is not durable.
type Core struct {
	opts Options
	now  time.Duration

	exists      bool
	epoch, born uint64
	seen        uint64    // the highest epoch that anything in the logs has
	tombstone   bool      // the log says that there was a group
	cursor      id.Offset // one past the contiguous run of finished records
	safeCursor  id.Offset // that is durable
	next        id.Offset // first that was not looked at
	base        id.Offset // oldest the log holds
	end         id.Offset // of the log
	committed   id.Offset // end of what may be handed out
	// ackBelow is the end of the log when this core was made: what lies below may have been handed out by an earlier one. usedBelow is the
	// end of what may have been handed out under numbers that are used again.
	ackBelow, usedBelow id.Offset
	gapEnd              id.Offset // end of the last stretch without records
	gapCount            uint64    // and how many offsets it has

	settled   settled
	inherited int // settled ranges, and records in play, that the logs brought along
	play      play
	dead      deadLetters
	backlog   backlog
	ration    ration
	keep      ration // of keys, in units of KeptUnit bytes

	waiting     waiting
	ends        heap[*poll]
	reading     pollList
	polls       int
	pollID      uint64
	conns       map[Conn]*conn
	members     map[string]*worker
	membersNext int
	freePolls   []*poll

	counts  Counts
	stopped *wire.Refusal
	armed   time.Duration // the Wake that was asked for
	touched time.Duration
	idleAt  time.Duration
	turn    *turn
	spare   *turn
}

// Counts are how often things happened since the core was made.
type Counts struct {
	Delivered    uint64 // records in answers
	Redelivered  uint64 // of those, with a number above 1
	Settled      uint64 // finished by somebody
	Nacked       uint64
	Lapsed       uint64 // claims
	Reclaimed    uint64
	DeadLettered uint64
	Skipped      uint64 // offsets that held no record any more, or never one for clients
	PollsCapped  uint64 // answered empty because too much was in flight
}

// never is later than any moment.
const never = time.Duration(math.MaxInt64)

// Loaded is what a new core begins with.
type Loaded struct {
	State *State // what the logs say of the group; nil: nothing
	Base  id.Offset
	Tail  Tail
	// If Options.Counted: Kept is what it holds already beyond Kept of a group without keys, and for Backed of that there was room.
	Kept, Backed int
}

// New returns the core of a group as its logs say it is, at the monotonic time now.
func New(opts Options, now time.Duration, in Loaded) *Core {
	opts.verify()
	c := &Core{
		opts: opts, now: now, base: in.Base, end: in.Tail.End, committed: in.Tail.Committed, ackBelow: in.Tail.End, usedBelow: in.Tail.End,
		play: newPlay(), conns: make(map[Conn]*conn), members: make(map[string]*worker), membersNext: membersKept,
		armed: never, touched: now, idleAt: now + opts.IdleAfter, turn: &turn{}, spare: &turn{},
	}
	c.ends = heap[*poll]{place: func(p *poll) *int { return &p.place }, less: func(a, b *poll) bool {
		return a.end < b.end || a.end == b.end && a.id < b.id
	}}
	c.reading.byID = make(map[uint64]*poll)
	c.keep.granted, c.keep.backed = in.Kept, in.Backed
	c.backlog.begin()
	if in.State != nil {
		c.load(in.State)
	}
	if c.exists {
		c.trim(c.base)
	}
	c.safeCursor, c.inherited = c.cursor, len(c.settled.spans)+len(c.play.all)
	c.backKept()
	c.finish()
	return c
}

// Step takes one input at the monotonic time now. It cannot fail and cannot wait.
func (c *Core) Step(now time.Duration, in Input) {
	if w, asking := c.Wants(); asking {
		if _, ok := in.(Granted); !ok {
			panic(fmt.Sprintf("groupcore: %T while an answer is due to %+v", in, w))
		}
	}
	c.now = max(c.now, now)
	c.lapse()
	if ask, ok := asks(in); ok {
		c.touched = c.now
		if c.stopped != nil {
			c.answer(Answer{Ask: ask, Refusal: c.stopped})
			return
		}
		c.request(in)
	} else {
		c.news(in)
	}
	c.finish()
	if !c.exists && !c.tombstone && c.stopped == nil && c.Resting() {
		c.emit(Idle{}) // there is nothing to keep of a group that is not there: whoever asks for names that nobody uses takes no places
	}
	if err := c.check(); err != nil {
		panic(fmt.Sprintf("groupcore: after %T: %v", in, err))
	}
}

// asks says where the answer of a request goes; false for what is none.
func asks(in Input) (Ask, bool) {
	switch in := in.(type) {
	case *Poll:
		return in.Ask, true
	case *Ack:
		return in.Ask, true
	case Nack:
		return in.Ask, true
	case Extend:
		return in.Ask, true
	case GiveUp:
		return in.Ask, true
	case ListDead:
		return in.Ask, true
	case Discard:
		return in.Ask, true
	case Redrive:
		return in.Ask, true
	case Seek:
		return in.Ask, true
	case Describe:
		return in.Ask, true
	case Remove:
		return in.Ask, true
	case Read, ReadFailed, Gone, Tail, Trimmed, Persisted, Failed, Wake, Granted, Stop:
	}
	return Ask{}, false
}

func (c *Core) request(in Input) {
	switch in := in.(type) {
	case *Poll:
		c.pollIn(in)
	case *Ack:
		c.ack(in)
	case Nack:
		c.nack(in)
	case Extend:
		c.extend(in)
	case GiveUp:
		c.giveUpAsked(in)
	case ListDead:
		c.listDead(in)
	case Discard:
		c.discard(in)
	case Redrive:
		c.redrive(in)
	case Seek:
		c.seek(in)
	case Describe:
		c.answer(Answer{Ask: in.Ask, Info: c.Info()})
	case Remove:
		c.remove(in)
	default:
		panic(fmt.Sprintf("groupcore: unknown request %T", in))
	}
}

// news takes what is no request. After Stop it still takes completions, which change nothing that anybody sees.
func (c *Core) news(in Input) {
	switch in := in.(type) {
	case Read:
		c.read(in, nil)
	case ReadFailed:
		c.read(Read{Poll: in.Poll}, in.Refusal)
	case Gone:
		c.gone(in.Conn)
	case Tail:
		c.end, c.committed = in.End, max(c.committed, in.Committed)
	case Trimmed:
		c.trim(in.Base)
	case Persisted:
		c.persisted(in.Seq)
	case Failed:
		c.failed(in.Seq, in.Reason)
	case Wake:
		if c.armed <= c.now { // an earlier one may be on its way still when the moment has moved
			c.armed = never
		}
		c.beIdle()
	case Granted:
		c.rationOf(in.Of).take(in)
	case Stop:
		c.stop(in.Refusal)
	default:
		panic(fmt.Sprintf("groupcore: unknown input %T", in))
	}
}

// finish does what follows from any input: it serves who waits, ends waits, and asks for the next Wake.
func (c *Core) finish() {
	c.serve()
	_, asking := c.Wants()
	for c.ends.len() > 0 && c.ends.top().end <= c.now && !asking { // the answer to that may be what they wait for
		p := c.ends.top()
		c.unwait(p)
		if c.capped() {
			c.counts.PollsCapped++
		}
		c.deliver(p, 0, nil)
	}
	c.balance()
	c.balanceKept()
	c.arm()
}

// arm asks for a Wake at the next moment something is due, if that is earlier than the one that was asked for.
func (c *Core) arm() {
	next := c.idleAt
	if c.backlog.retryAt > c.now { // if not, the Take that follows repeats what failed
		next = min(next, c.backlog.retryAt)
	}
	if c.play.timers.len() > 0 && !c.backlog.full(c.opts.MaxUnwritten) { // if it is, the write that makes room is a step
		next = min(next, c.play.timers.top().until)
	}
	if _, asking := c.Wants(); c.ends.len() > 0 && !asking {
		next = min(next, c.ends.top().end)
	}
	if next < c.armed {
		c.armed = next
		c.emit(Deadline{At: next})
	}
}

// beIdle looks whether the group was untouched long enough, and begins to wait again if not.
func (c *Core) beIdle() {
	if c.idleAt > c.now || c.stopped != nil {
		return
	}
	if rests := c.touched + c.opts.IdleAfter; rests > c.now {
		c.idleAt = rests
		return
	}
	c.idleAt = c.now + c.opts.IdleAfter // it says so again: whoever heard it may have had something on its way here
	if c.Resting() && !c.noteFailures() {
		c.emit(Idle{})
	}
}

// noteFailures has the failures written down that the logs do not know, and reports whether there are any. A crash may forget some; a group that
// is let go of may not, or a record whose workers come less often than that would never be given up on.
func (c *Core) noteFailures() (any bool) {
	for _, r := range c.play.all {
		switch {
		case r.failures == r.noted:
			continue
		case r.redriven:
			c.dirtyDead(r.offset)
		default:
			c.play.number(r)
			c.dirty(dkey{KindNumber, r.offset})
		}
		any = true
	}
	if any {
		c.idleAt = c.now + c.opts.WriteRetry // look again when it is written
	}
	return any
}

// Resting reports whether only what the logs say is in memory: no claim, delay or reservation stands, nobody waits, nothing is to be written.
func (c *Core) Resting() bool {
	return c.play.held() == 0 && c.polls == 0 && c.backlog.empty()
}

// stop ends the group here.
func (c *Core) stop(f *wire.Refusal) {
	if c.stopped != nil {
		return
	}
	c.stopped = f
	c.endWaits(func(*poll) bool { return true })
	c.endReads(func(*poll) bool { return true })
	unknown := wire.Refuse(wire.CodeLeadershipLost, "the group is served elsewhere from now on; whether this was written is not known")
	c.backlog.refuseAll(c, &unknown)
	c.idleAt, c.backlog.retryAt = never, never
}

// Info is how far the group is, as Describe answers it.
func (c *Core) Info() Info {
	n := &c.play.counts
	return Info{
		Exists: c.exists, Cursor: c.safeCursor, Tail: c.end, InFlight: n[fetching] + n[claimed], Delayed: n[delayed] + n[listing],
		Owed: n[owed] + n[reserved], Dead: len(c.dead.list) - c.dead.owed,
	}
}

// Counts are how often things happened.
func (c *Core) Counts() Counts { return c.counts }

// Waiting reports whether polls wait for records: whoever drives the core tells it at once when the log goes on.
func (c *Core) Waiting() bool { return c.waiting.head != nil }
