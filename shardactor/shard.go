package shardactor

import (
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// Ref is the address of a Shard.
type Ref = actors.Ref[Message]

// right is what readers look at instead of asking the shard.
type right struct{ may atomic.Uint32 }

const (
	mayShow  = 1 << iota // what is committed and in memory
	mayServe             // anything
)

// set says what readers may do from now on.
func (r *right) set(e shardcore.Serving) {
	may := uint32(0)
	if e.Shows {
		may |= mayShow
	}
	if e.On {
		may |= mayServe
	}
	r.may.Store(may)
}

// giveUp: readers may do nothing.
func (r *right) giveUp() { r.may.Store(0) }

// Shard runs one replica of one shard: the single owner of its generation, log tail and commit offset. It only translates
// and performs; shardcore decides.
//
//	path     shards/<n>, child of Host             lanes    data 1024 items / 8 MiB, control, cells
//	blocks   never                                 failure  stop; Host brings a new one up
//
//	in               from             then
//	Publish          Session          one Answer
//	CachePut         Session          one Answer
//	CacheDelete      Session          one Answer with what was there
//	CachePutIf       Session          one Answer, whether it was applied
//	CacheDeleteIf    Session          one Answer, whether it was applied
//	CounterAdd       Session          one Answer with the sum
//	GroupRequest     Session          passed on to its Group
//	GroupGone        Session          passed on to its Group
//	GroupNames       the node         Done is called with the names
//	groupWrite       Group            one Answer when it is durable
//	groupIdle        Group            it is stopped, unless it was asked something meanwhile
//	roomMade         its log          answers that waited for a reader leave, under the policy block
//	diskNews         the disk pool    what it did for the log
//	Drain            Host             Drained
type Shard struct {
	core    *shardcore.Core
	log     backend
	cache   *caching // nil on a stream
	groups  *groups  // nil on a cache, and on an ephemeral stream
	self    Ref
	right   *right
	blocks  bool     // publishers wait for readers that have no room
	replies []Reply  // answered in this turn, flushed at its end
	busy    *request // at hand; a failure meanwhile is laid at its door
	started time.Time
	opts    shardOptions

	drained  bool // nothing claimed is left, and nothing more will be
	appended appendTime
	coreWake time.Time // deadline of the core, zero = none
	workAt   time.Time // when the logs need to be worked on, zero = never
}

// shardOptions is what Host gives to a shard.
type shardOptions struct {
	number     id.ShardID
	generation id.Generation
	log        backend
	cache      *caching // nil on a stream
	groups     *groups
	right      *right
	blocks     bool
	events     actors.EventSink
	name       string
	metrics    *Metrics
	timings    *stages.Timings
}

// shardBounds is the mailbox of a shard: 1024 requests or 8 MiB, whichever comes first, is about what one turn of the
// shard's tenant lets through in a tenth of a second; more waiting would only add delay.
var shardBounds = actors.Bounds{DataItems: 1024, DataBytes: 8 << 20, ControlItems: 64}

func newShard(o shardOptions) *Shard {
	core := shardcore.DefaultOptions()
	core.Blocking = o.blocks
	if o.cache != nil {
		core.Book = o.cache
	}
	if o.groups != nil {
		core.Book = o.groups
	}
	return &Shard{core: shardcore.New(core), log: o.log, cache: o.cache, groups: o.groups, right: o.right, blocks: o.blocks, opts: o, appended: appendTime{sampler: o.timings.Sampler()}}
}

// Receive is one turn: translate, step, perform.
func (s *Shard) Receive(t *actors.Turn) {
	switch t.Lifecycle() {
	case actors.Started:
		s.started = t.Now()
		ref := actors.RefOf[Message](t)
		s.self = ref // it refuses once the shard stops: nobody waits then
		s.log.begin(func() { _ = ref.Complete(&roomMade{}) }, func() { _ = ref.Complete(&diskNews{}) })
		s.core.Step(s.at(t), shardcore.Open{Generation: s.opts.generation})
	case actors.Stopping, actors.Stopped:
		s.right.giveUp()
		s.flush() // what was answered before the turn failed
		if t.Lifecycle() == actors.Stopped && t.Failed() == nil {
			s.log.finish(s.core)
		}
		return
	}
	at := s.at(t)
	if t.Wake() {
		s.wake(t, at)
	}
	for _, x := range t.ChildTerminated() {
		s.groupEnded(t, x)
	}
	for _, m := range t.Messages() {
		if in := s.translate(t, m, at); in != nil {
			s.core.Step(at, in)
		}
	}
	s.busy = nil
	s.perform(t)
	s.work(t)
	s.rearm(t) // before the answers leave: who has one and moves a clock by hand finds the timer armed
	s.flush()
}

// wake serves whichever of the deadlines has passed.
func (s *Shard) wake(t *actors.Turn, at shardcore.At) {
	now := t.Now()
	if again := s.log.reopenAt(); !again.IsZero() && !now.Before(again) {
		s.core.Step(at, shardcore.Open{Generation: s.opts.generation})
	}
	if !s.coreWake.IsZero() && !now.Before(s.coreWake) {
		s.coreWake = time.Time{}
		s.core.Step(at, shardcore.Wake{})
	}
	s.groupsWake(at)
}

// work has the logs worked on, until they need no more for now. The effects of what that steps are performed before it is asked again, since
// they may be what it waits for.
func (s *Shard) work(t *actors.Turn) {
	at := s.at(t)
	for {
		s.workAt = s.log.work(s.core, at)
		if !s.perform(t) {
			return
		}
	}
}

// rearm arms the one timer for the earliest of the deadlines. An actor re-arms only to an earlier moment; a wake that
// comes too early finds nothing due and arms again.
func (s *Shard) rearm(t *actors.Turn) {
	next := sooner(sooner(s.coreWake, s.workAt), sooner(s.log.reopenAt(), s.groupsWakeAt()))
	if !next.IsZero() {
		t.ArmWake(next)
	}
}

// flush lets the answers of this turn leave, those of one stream together.
func (s *Shard) flush() {
	for _, r := range s.replies {
		r.Flush()
	}
	clear(s.replies)
	s.replies = s.replies[:0]
}

func (s *Shard) at(t *actors.Turn) shardcore.At {
	now := t.Now()
	return shardcore.At{Wall: now, Mono: now.Sub(s.started)}
}

// drain asks a shard to finish.
type drain struct{}

func (*drain) shardMessage() {}

// begin takes a request at hand.
func (s *Shard) begin(r *request, at shardcore.At) {
	s.busy = r
	if r.Sent != 0 {
		s.queued(r.Sent, at)
	}
}

// translate says what a message is to the core; nil when it was dealt with.
func (s *Shard) translate(t *actors.Turn, m any, at shardcore.At) shardcore.Input {
	switch m := m.(type) {
	case *Publish:
		s.begin(&m.request, at)
		if m.Batch.Kind == batch.Commit {
			if f := s.log.admit(&m.Batch); f != nil {
				s.settle(&m.request, Answer{Refusal: f})
				return nil
			}
		}
		m.write = shardcore.Write{Reply: &m.request, Batch: &m.Batch, HasExpected: m.HasExpected, Expected: m.Expected, AtClaim: m.AtClaim}
		return &m.write
	case *CachePut:
		s.begin(&m.request, at)
		return s.cachePut(m)
	case *CachePutIf:
		s.begin(&m.request, at)
		return s.cachePutIf(m)
	case *CacheDelete:
		s.begin(&m.request, at)
		return s.cacheDelete(m)
	case *CacheDeleteIf:
		s.begin(&m.request, at)
		return s.cacheDeleteIf(m)
	case *CounterAdd:
		s.begin(&m.request, at)
		return s.counterAdd(m)
	case *roomMade:
		s.busy = nil
		return shardcore.Released{End: s.log.released()}
	case *diskNews:
		s.busy = nil
		s.log.take(s.core, at)
		s.answerCold()
		s.stopWhenDone(t)
		if s.groups != nil {
			s.groupsLook(t)
		}
		return nil
	case *GroupRequest:
		s.busy = nil
		s.groupRequest(t, m)
		return nil
	case *groupWrite:
		s.begin(&m.request, at)
		return s.groups.write(m)
	case *groupIdle:
		s.busy = nil
		s.groups.idle(m)
		return nil
	case *GroupNames:
		s.busy = nil
		s.groupNames(m)
		return nil
	case *GroupGone:
		s.busy = nil
		if s.groups != nil {
			s.groups.gone(m)
		}
		return nil
	case *drain:
		s.busy = nil
		s.stopGroups()
		return shardcore.Drain{}
	}
	panic("shardactor: a message of unknown type")
}

// perform carries out the effects of a turn, and those of the inputs that complete at once, until there are none. It reports whether there
// were any.
func (s *Shard) perform(t *actors.Turn) (any bool) {
	for effects := s.core.Take(); len(effects) > 0; effects = s.core.Take() {
		any = true
		at := s.at(t)
		for _, e := range effects {
			s.performOne(t, at, e)
		}
	}
	return any
}

func (s *Shard) performOne(t *actors.Turn, at shardcore.At, e shardcore.Effect) {
	switch e := e.(type) {
	case shardcore.Recover:
		if in := s.log.open(s.opts.generation); in != nil {
			s.core.Step(at, in)
		}
	case shardcore.Save:
		if s.log.save(e) {
			s.core.Step(at, shardcore.Persisted{Seq: e.Seq})
		}
	case shardcore.Append:
		s.beginAppend(e)
		if s.log.append(e) {
			s.core.Step(at, shardcore.Persisted{Log: e.Log, Seq: e.Seq})
		}
	case shardcore.Fold:
		s.log.fold(at, e.Log, e.Batches)
	case shardcore.Readable:
		s.log.readable(e.Log, e.End)
		if e.Log == shardcore.LogMain {
			s.endAppend(e.End)
			s.advanceGroups(e.End, at.Wall)
		}
		if s.blocks {
			s.core.Step(at, shardcore.Released{End: s.log.released()})
		}
	case shardcore.AckedLost:
		s.opts.metrics.AckedLost.Add(float64(e.Records))
	case *shardcore.Answers:
		for i := range e.List {
			s.answer(&e.List[i])
		}
	case shardcore.Deadline:
		s.coreWake = time.Time{}
		if e.At != 0 {
			s.coreWake = s.started.Add(e.At)
		}
	case shardcore.Serving:
		s.right.set(e)
		s.log.serving(e.On)
	case shardcore.RoleChanged:
		s.opts.events.Emit(roleChanged{shard: s.opts.number, name: s.opts.name, change: e})
	case shardcore.Gate: // the mailbox stays open: what arrives waits in the core, which is bounded
	case shardcore.Drained:
		s.drained = true
		s.stopWhenDone(t)
	default:
		panic("shardactor: an effect of unknown type")
	}
}

// answer gives one answer, has it completed first, or takes back a write that is to be asked for again.
func (s *Shard) answer(a *shardcore.Answer) {
	r := a.Reply.(*request)
	s.busy = r
	if a.Again {
		r.again()
		s.busy = nil
		return
	}
	out := Answer{Refusal: a.Refusal, Refused: a.Refused, Offset: a.Offset, NoOffset: a.NoOffset}
	if a.Refusal == nil && s.cache != nil {
		out = s.cache.outcome(r, a)
	}
	if a.Refusal == nil && r.later != nil {
		r.later(out)
		s.busy = nil
		return
	}
	s.settle(r, out)
}

// stopWhenDone ends a shard that is drained once nobody waits for anything any more.
func (s *Shard) stopWhenDone(t *actors.Turn) {
	if s.drained && !s.owesValues() {
		t.Stop()
	}
}

// settle gives an answer that leaves with the turn.
func (s *Shard) settle(r *request, a Answer) {
	if r.done != nil {
		r.done()
	}
	r.settle(a)
	s.busy = nil
	reply := r.Reply
	r.Reply = nil // the batch lies in the same message and may stay in a ring for long: it must not keep a connection
	for _, seen := range s.replies {
		if seen == reply {
			return
		}
	}
	s.replies = append(s.replies, reply)
}
