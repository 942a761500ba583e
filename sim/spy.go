package main

import (
	"errors"
	"fmt"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
)

// errPlanned is what a planned panic of a shard is.
var errPlanned = errors.New("a planned panic")

// spy stands around a real shard actor: it tells the truth what was stepped, in which order, and panics where chaos asks for it.
type spy struct {
	b    *broker
	life *life
	told map[shardactor.Message]shardactor.Answer // answers to cache writes of the turn; never iterated
}

// eavesdropper is the reply of a cache write, overheard by the spy.
type eavesdropper struct {
	shardactor.Reply
	spy     *spy
	message shardactor.Message
}

// Answer implements shardactor.Reply.
func (e eavesdropper) Answer(t shardcore.Token, a shardactor.Answer) {
	if e.spy.told != nil { // nobody is told after a turn that failed
		e.spy.told[e.message] = a
	}
	e.Reply.Answer(t, a)
}

// wrap is given to the node as WrapShard.
func (b *broker) wrap(name route.Name, shard uint32, a actors.Actor) actors.Actor {
	s := &spy{b: b, life: b.truth.born(name, shard)}
	return actors.Around(a, s.before, s.after)
}

// before is called before a turn of the shard.
func (s *spy) before(t *actors.Turn) {
	s.life.ref = actors.RefOf[shardactor.Message](t).ID()
	if l := t.Lifecycle(); l == actors.Stopping || l == actors.Stopped {
		s.life.end(s.b.run.world.Steps())
	}
	s.listen(t)
	s.b.plans.spring(s, t, before)
}

// listen overhears what becomes of the cache writes of a turn.
func (s *spy) listen(t *actors.Turn) {
	s.told = map[shardactor.Message]shardactor.Answer{}
	for _, m := range t.Messages() {
		switch m := m.(type) {
		case *shardactor.CachePut:
			m.Reply = eavesdropper{m.Reply, s, m}
		case *shardactor.CachePutIf:
			m.Reply = eavesdropper{m.Reply, s, m}
		case *shardactor.CacheDeleteIf:
			m.Reply = eavesdropper{m.Reply, s, m}
		}
	}
}

// after is called after a turn that did not fail.
func (s *spy) after(t *actors.Turn) {
	s.stepped(t)
	s.b.plans.spring(s, t, after)
}

// stepped tells the truth of a turn that did not fail.
func (s *spy) stepped(t *actors.Turn) {
	for _, m := range t.Messages() {
		switch m := m.(type) {
		case *shardactor.Publish:
			if m.Batch.Generation != 0 { // claimed
				s.life.published(&m.Batch)
			}
		case *shardactor.CachePut:
			if !s.life.drained {
				s.life.put(m.Key, m.Value, wire.Opt[uint64]{V: m.TTLMillis, Set: m.HasTTL}, s.told[m].Offset, t.Now())
			}
		case *shardactor.CachePutIf:
			if a := s.told[m]; a.Applied {
				s.life.put(m.Key, m.Value, wire.Opt[uint64]{V: m.TTLMillis, Set: m.HasTTL}, a.Version, t.Now())
			}
		case *shardactor.CacheDeleteIf:
			if s.told[m].Applied {
				s.life.deleted(m.Key, t.Now())
			}
		case *shardactor.CacheDelete:
			if !s.life.drained {
				s.life.deleted(m.Key, t.Now())
			}
		default:
			switch fmt.Sprintf("%T", m) {
			case "*shardactor.drain":
				s.life.drained = true
			case "*shardactor.roomMade":
				s.b.run.marks.hit(markHeldUp)
			}
		}
	}
}

// moment is where in a turn a planned panic strikes.
type moment uint8

const (
	before moment = iota // nothing of the turn happened
	after                // all of it did, and its answers are out
)

// faultPlan is one planned panic.
type faultPlan struct {
	at        moment
	lifecycle actors.Lifecycle
	name      route.Name
	shard     uint32
}

// faultPlans are those that have not struck yet.
type faultPlans struct{ list []faultPlan }

func (p *faultPlans) add(f faultPlan) { p.list = append(p.list, f) }

// spring panics when a plan fits the moment.
func (p *faultPlans) spring(s *spy, t *actors.Turn, at moment) {
	for i, f := range p.list {
		if f.at != at || f.lifecycle != t.Lifecycle() || f.name != s.life.shard.name || f.shard != s.life.shard.index {
			continue
		}
		if f.lifecycle == actors.None && len(t.Messages()) == 0 {
			continue
		}
		p.list = append(p.list[:i], p.list[i+1:]...)
		panic(errPlanned)
	}
}
