package shardactor

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// groupMessage is everything a Group accepts.
//
//sumtype:decl
type groupMessage interface{ groupMessage() }

// groupAsked is a request that the shard passed on.
type groupAsked struct{ *GroupRequest }

// Settled reports whether the request has got its answer; the actor wrapper asks when the group dies.
func (m groupAsked) Settled() bool { return m.settled }

// groupRing says that there is something in the inbox.
type groupRing struct{}

func (groupAsked) groupMessage() {}
func (groupRing) groupMessage()  {}

// groupInbox is what a group is told that is no request. However much it is, the mailbox holds one message that says to look.
type groupInbox struct {
	mu   sync.Mutex
	ring func()
	rung bool
	list []groupNews
}

// groupNews is one thing that a group is told.
type groupNews struct {
	in groupcore.Input
	// after is how many requests it comes behind; of a poll, fetch is the number of its Fetch that this completes.
	after uint64
	poll  *GroupRequest
	fetch uint64
}

// tell adds what is told and calls the group unless it was called.
func (b *groupInbox) tell(in groupcore.Input) { b.add(groupNews{in: in}) }

// add is tell with more around it. Without an input the group only looks how far the log is.
func (b *groupInbox) add(n groupNews) {
	b.mu.Lock()
	if n.in != nil {
		b.list = append(b.list, n)
	}
	call := !b.rung && b.ring != nil
	b.rung = b.rung || call
	ring := b.ring
	b.mu.Unlock()
	if call {
		ring()
	}
}

// take returns what was told since the last take.
func (b *groupInbox) take() []groupNews {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.rung, b.list = false, nil
	return list
}

// open sets what calls the group, and calls it if something is there.
func (b *groupInbox) open(ring func()) {
	b.mu.Lock()
	b.ring = ring
	b.rung = len(b.list) > 0
	call := b.rung
	b.mu.Unlock()
	if call {
		ring()
	}
}

// logEnds are the bounds of a shard's main log, as its groups look at them.
type logEnds struct {
	base, end, committed atomic.Uint64
	ages                 ages
}

// Group runs one consumer group of one shard. It only translates and performs; groupcore decides.
//
//	path     shards/<n>/group/<k>, child of Shard     lanes    data 1024 items / 1 MiB, control
//	blocks   never                                    failure  stop; the next request brings a new one up, from what is durable
//
//	in               from               then
//	groupAsked       Session, by Shard  one answer
//	groupRing        its inbox          what was read, saved, or left is taken; waiting polls are looked at when the log has gone on
type Group struct {
	core    *groupcore.Core
	opts    groupOptions
	holder  *groupcore.Holder // in opts.claims, while it runs
	started time.Time
	known   groupcore.Tail // as the core knows it
	base    id.Offset
	stepped uint64      // requests that were taken
	behind  []groupNews // for requests that were not
	read    []groupNews // in this turn
	flushes []GroupReply
	shown   groupShown
	unsent  []*groupWrite // for which the shard had no room: one of each log at most

	coreWake time.Time // deadline of the core, zero = none
}

// groupOptions is what a shard gives to a group.
type groupOptions struct {
	core    groupcore.Options
	loaded  *groupcore.State
	ends    *logEnds
	hungry  *atomic.Bool // polls wait: the shard is to tell when the log goes on
	inbox   *groupInbox
	child   *groupChild
	shard   Ref
	metrics *GroupMetrics
	claims  *groupClaims // of the node, of which the tenant's groups have a share
	tenant  string
	kept    *groupClaims      // of the node, too
	keeper  *groupcore.Holder // in kept; the shard's, which outlives the group
	beyond  int               // that it holds at first, beyond what a group without keys does
	backed  int               // for how much of that there was room
}

// groupBounds is the mailbox of a group: as many requests as a shard's, which it gets them from.
var groupBounds = actors.Bounds{DataItems: 1024, DataBytes: 1 << 20, ControlItems: 1}

// Receive is one turn.
func (g *Group) Receive(t *actors.Turn) {
	now := t.Now()
	switch t.Lifecycle() {
	case actors.Started:
		g.started = now
		ref := actors.RefOf[groupMessage](t)
		g.known, g.base = g.ends()
		g.holder = g.opts.claims.join(g.opts.tenant, g.opts.inbox)
		g.core = groupcore.New(g.opts.core, 0, groupcore.Loaded{State: g.opts.loaded, Base: g.base, Tail: g.known, Kept: g.opts.beyond, Backed: g.opts.backed})
		g.grant(0)
		g.opts.loaded = nil
		g.opts.metrics.Active.Inc()
		g.opts.inbox.open(func() { _ = ref.Complete(groupRing{}) }) // refused once the group is over: then nobody waits
	case actors.Stopping, actors.Stopped:
		g.flush()
		if t.Lifecycle() == actors.Stopped && g.core != nil {
			g.opts.metrics.forget(&g.shown)
			g.opts.metrics.Active.Dec()
			g.core = nil
			g.opts.claims.leave(g.holder)
		}
		return
	}
	at := now.Sub(g.started)
	g.look(at)
	if !g.coreWake.IsZero() && !now.Before(g.coreWake) {
		g.coreWake = time.Time{}
		g.step(at, groupcore.Wake{})
	}
	for _, m := range t.Messages() {
		g.take(at, m)
	}
	g.catchUp(at)
	g.resend(at)
	for {
		g.perform(t, at)
		// Whoever waits says so before it looks the last time: the log may go on in between.
		g.opts.hungry.Store(g.core.Waiting())
		if !g.look(at) {
			break
		}
	}
	g.rearm(t)
	g.dropUnused()
	g.opts.metrics.show(g.core, &g.shown, &g.opts.ends.ages)
	g.flush()
}

// step steps one input, and has the core given what it asks for before the next one.
func (g *Group) step(at time.Duration, in groupcore.Input) {
	g.core.Step(at, in)
	g.grant(at)
}

func (g *Group) grant(at time.Duration) {
	for w, ok := g.core.Wants(); ok; w, ok = g.core.Wants() {
		budget, holder := g.budget(w.Of)
		g.core.Step(at, budget.want(holder, w))
	}
}

// budget is what a group has its room of, and as whom.
func (g *Group) budget(of groupcore.Budget) (*groupClaims, *groupcore.Holder) {
	if of == groupcore.BudgetKept {
		return g.opts.kept, g.opts.keeper
	}
	return g.opts.claims, g.holder
}

// catchUp takes what came before the requests that it is to come behind.
func (g *Group) catchUp(at time.Duration) {
	list := g.behind
	g.behind = g.behind[:0]
	for _, n := range list {
		if n.after > g.stepped {
			g.behind = append(g.behind, n)
			continue
		}
		g.step(at, n.in)
	}
}

// dropUnused tells polls that wait on that nobody needs what was read for them: it was finished meanwhile, or is not there.
func (g *Group) dropUnused() {
	for _, n := range g.read {
		if !n.poll.settled && n.poll.fetches == n.fetch {
			n.poll.reply.Drop(n.poll.token)
		}
	}
	clear(g.read)
	g.read = g.read[:0]
}

func (g *Group) ends() (groupcore.Tail, id.Offset) {
	e := g.opts.ends
	return groupcore.Tail{End: id.Offset(e.end.Load()), Committed: id.Offset(e.committed.Load())}, id.Offset(e.base.Load())
}

// look tells the core how far the log is; it reports whether that was news.
func (g *Group) look(at time.Duration) (news bool) {
	tail, base := g.ends()
	if tail != g.known {
		g.known, news = tail, true
		g.step(at, tail)
	}
	if base != g.base {
		g.base, news = base, true
		g.step(at, groupcore.Trimmed{Base: base})
	}
	return news
}

func (g *Group) take(at time.Duration, m any) {
	switch m := m.(type) {
	case groupAsked:
		g.stepped++
		g.step(at, withAsk(m.In, groupcore.Ask{Reply: m.GroupRequest, Token: uint64(m.token)}))
	case groupRing:
		for _, n := range g.opts.inbox.take() {
			if n.poll != nil {
				g.read = append(g.read, n)
			}
			if n.after > g.stepped {
				g.behind = append(g.behind, n)
				continue
			}
			g.step(at, n.in)
		}
	default:
		panic("shardactor: a group got a message of unknown type")
	}
}

// withAsk sets where the answer of a request goes.
func withAsk(in groupcore.Input, ask groupcore.Ask) groupcore.Input {
	switch in := in.(type) {
	case *groupcore.Poll:
		in.Ask = ask
		return in
	case *groupcore.Ack:
		in.Ask = ask
		return in
	case groupcore.Nack:
		in.Ask = ask
		return in
	case groupcore.Extend:
		in.Ask = ask
		return in
	case groupcore.GiveUp:
		in.Ask = ask
		return in
	case groupcore.ListDead:
		in.Ask = ask
		return in
	case groupcore.Discard:
		in.Ask = ask
		return in
	case groupcore.Redrive:
		in.Ask = ask
		return in
	case groupcore.Seek:
		in.Ask = ask
		return in
	case groupcore.Describe:
		in.Ask = ask
		return in
	case groupcore.Remove:
		in.Ask = ask
		return in
	}
	panic("shardactor: a request of a group of unknown type")
}

func (g *Group) perform(t *actors.Turn, at time.Duration) {
	for effects := g.core.Take(); len(effects) > 0; effects = g.core.Take() {
		for _, e := range effects {
			g.performOne(t, at, e)
		}
	}
}

func (g *Group) performOne(t *actors.Turn, at time.Duration, e groupcore.Effect) {
	switch e := e.(type) {
	case *groupcore.Persist:
		g.persist(at, e)
	case *groupcore.Fetch:
		m := e.Reply.(*GroupRequest)
		m.fetches++
		poll, inbox, n := e.Poll, g.opts.inbox, groupNews{poll: m, fetch: m.fetches}
		m.reply.Fetch(m.token, slices.Clone(e.Offsets), func(r GroupRead) {
			if n.in = (groupcore.Read{Poll: poll, Found: r.Found, Unfit: r.Unfit}); r.Failure != nil {
				n.in = groupcore.ReadFailed{Poll: poll, Refusal: r.Failure}
			}
			inbox.add(n)
		})
	case *groupcore.Deliver:
		m := e.Reply.(*GroupRequest)
		m.settle()
		m.reply.Deliver(m.token, e.Records)
		g.flushLater(m.reply)
	case *groupcore.Answers:
		for i := range e.List {
			m := e.List[i].Reply.(*GroupRequest)
			m.settle()
			m.reply.AnswerGroup(m.token, &e.List[i])
			g.flushLater(m.reply)
		}
	case groupcore.Spare:
		budget, holder := g.budget(e.Of)
		budget.spare(holder, e)
	case groupcore.Deadline:
		g.coreWake = g.started.Add(e.At)
	case groupcore.Idle:
		if !g.core.Resting() { // a request of this turn came behind the moment at which it was
			return
		}
		m := &groupIdle{group: g.opts.core.Group, stepped: g.stepped}
		_ = g.opts.shard.TrySend(m, len(m.group)) // if it has no room now: the group asks again when it is next idle
	default:
		panic("shardactor: an effect of a group of unknown type")
	}
}

// persist has a batch appended, through the core of the shard.
func (g *Group) persist(at time.Duration, e *groupcore.Persist) {
	m := &groupWrite{log: shardcore.LogCursors, batch: batch.Batch{Kind: batch.Records, Count: e.Count, Body: e.Body, PayloadBytes: len(e.Body)}, group: g.opts.core.Group}
	if e.Log == groupcore.LogDeadLetters {
		m.log = shardcore.LogDeadLetters
	}
	m.To(groupSavedReply{g.opts.inbox, e.Seq}, 0)
	m.seq = e.Seq
	g.send(at, m)
}

// resendAfter is when a batch is sent again for which the shard had no room: publishers of the stream have filled its mailbox, which is
// no failure of the group's log. So often that a place of those that a busy shard makes is found soon.
const resendAfter = 2 * time.Millisecond

// send has the shard append a batch, or keeps it until there is room.
func (g *Group) send(at time.Duration, m *groupWrite) {
	m.from = g.opts.child
	m.from.sent.Add(1) // before the shard can come to it
	err := g.opts.shard.TrySend(m, len(m.batch.Body))
	if err == nil {
		return
	}
	m.from.sent.Add(^uint64(0))
	switch {
	case errors.Is(err, actors.ErrFull):
		g.unsent = append(g.unsent, m)
	default:
		g.step(at, groupcore.Failed{Seq: m.seq, Reason: err.Error()})
	}
}

// resend tries again what had no room.
func (g *Group) resend(at time.Duration) {
	list := g.unsent
	g.unsent = nil
	for _, m := range list {
		g.send(at, m)
	}
}

// rearm arms the one timer for the earlier of the core's deadline and the next try to send what had no room.
func (g *Group) rearm(t *actors.Turn) {
	next := g.coreWake
	if len(g.unsent) > 0 {
		next = sooner(next, t.Now().Add(resendAfter))
	}
	if !next.IsZero() {
		t.ArmWake(next)
	}
}

// groupSavedReply takes the outcome of a Persist.
type groupSavedReply struct {
	inbox *groupInbox
	seq   uint64
}

// Answer implements Reply.
func (r groupSavedReply) Answer(_ shardcore.Token, a Answer) {
	if a.Refusal != nil {
		r.inbox.tell(groupcore.Failed{Seq: r.seq, Reason: a.Refusal.Message})
		return
	}
	r.inbox.tell(groupcore.Persisted{Seq: r.seq})
}

// Flush implements Reply.
func (groupSavedReply) Flush() {}

func (g *Group) flushLater(r GroupReply) {
	for _, seen := range g.flushes {
		if seen == r {
			return
		}
	}
	g.flushes = append(g.flushes, r)
}

// flush lets the answers of this turn leave.
func (g *Group) flush() {
	for _, r := range g.flushes {
		r.Flush()
	}
	clear(g.flushes)
	g.flushes = g.flushes[:0]
}
