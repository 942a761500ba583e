package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
)

// spoiled is a shard of a cache with a fault: what the product would be like if it had made that mistake.
type spoiled struct {
	n      *dnode
	name   route.Name
	shard  uint32
	ref    shardactor.Ref
	staged map[string]*shardactor.CachePut // puts that the shard was given; never iterated
	older  map[string]*shardactor.CachePut // the put before the last one of a key; never iterated
	handle *shardactor.Handle              // once there is one
}

// spoil is given to the node as WrapShard.
func (n *dnode) spoil(name route.Name, shard uint32, a actors.Actor) actors.Actor {
	if name != n.run.resources[flagsCache].Name {
		return a
	}
	s := &spoiled{n: n, name: name, shard: shard, staged: map[string]*shardactor.CachePut{}, older: map[string]*shardactor.CachePut{}}
	n.spoiled = append(n.spoiled, s)
	return actors.Around(a, s.before, s.after)
}

// spoilReaders puts faults between a cache and its readers, as soon as there are any.
func (n *dnode) spoilReaders() {
	for _, s := range n.spoiled {
		e := n.node.Table.Get(s.name)
		if e == nil || s.handle != nil {
			continue
		}
		t, _ := e.Shard(s.shard)
		if t.State != route.Local || t.Shard.Keyed == nil {
			continue
		}
		s.handle = t.Shard
		switch n.run.plan.Defect {
		case SeenBeforeDurable:
			s.handle.Cache = early{t.Shard.Keyed, s}
		case WatchSkips:
			s.handle.Log = skipping{s.handle.Log}
		}
	}
}

func (s *spoiled) before(t *actors.Turn) {
	s.ref = actors.RefOf[shardactor.Message](t)
	if t.Lifecycle() != actors.None {
		return
	}
	for _, m := range t.Messages() {
		switch m := m.(type) {
		case *shardactor.CachePut:
			s.put(m)
		case *shardactor.CachePutIf:
			if s.n.run.plan.Defect == ConditionIgnored && s.handle != nil {
				now, there := s.handle.Keyed.Get(m.Key, 0)
				m.HasVersion, m.Version = there, now.Version
			}
		case *shardactor.CounterAdd:
			if s.n.run.plan.Defect == AddsTwice {
				m.Delta *= 2
			}
		}
	}
}

func (s *spoiled) put(m *shardactor.CachePut) {
	switch s.n.run.plan.Defect {
	case AnsweredBeforeDurable:
		m.Reply.Answer(m.Token, shardactor.Answer{})
		m.Reply.Flush()
		m.To(nobody{}, 0)
	case SeenBeforeDurable:
		s.staged[m.Key] = m
	case ExpiresAnyVersion:
		if m.HasTTL {
			s.n.at.clock.AfterFunc(time.Duration(m.TTLMillis+1)*time.Millisecond, func() { s.ask(&shardactor.CacheDelete{Key: m.Key}) })
		}
	case CopiesStale:
		s.older[m.Key], s.staged[m.Key] = s.staged[m.Key], m
	}
}

func (s *spoiled) after(*actors.Turn) {
	if s.n.compacted == 0 {
		return
	}
	s.n.compacted = 0
	for _, k := range s.n.run.caches.shards[s.shard].keys {
		if m := s.older[k.name]; m != nil {
			s.ask(&shardactor.CachePut{Key: m.Key, Value: m.Value})
		}
	}
}

// ask sends a request that nobody has made.
func (s *spoiled) ask(m shardactor.Message) {
	switch m := m.(type) {
	case *shardactor.CacheDelete:
		m.To(nobody{}, 0)
	case *shardactor.CachePut:
		m.To(nobody{}, 0)
	default:
		panic(fmt.Sprintf("sim: nobody asks for a %T", m))
	}
	if err := s.ref.TrySend(m, shardactor.Size(m)); err != nil {
		s.n.run.world.Note("%v", err) // it has ended
	}
}

// nobody hears no answers.
type nobody struct{}

var _ shardactor.Reply = nobody{}

// Answer implements shardactor.Reply.
func (nobody) Answer(shardcore.Token, shardactor.Answer) {}

// Flush implements shardactor.Reply.
func (nobody) Flush() {}

// early shows readers what the shard has been asked for and has not written.
type early struct {
	*reading.KeyedCache
	of *spoiled
}

// Get implements reading.CacheView.
func (e early) Get(key string, now uint64) (reading.Live, bool) {
	v, found := e.KeyedCache.Get(key, now)
	m := e.of.staged[key]
	if m == nil || found && !v.Cold && string(v.Value) == string(m.Value) {
		return v, found
	}
	return reading.Live{Value: m.Value, Version: e.AsOf(), Offset: e.AsOf()}, true
}

// skipping lets readers begin one record late.
type skipping struct{ storage.Reader }

// Register implements storage.Reader.
func (s skipping) Register(o storage.CursorOptions) (storage.Cursor, error) {
	if _, end := s.Bounds(); o.Start == storage.StartOffset && o.Offset < end {
		o.Offset++
	}
	return s.Reader.Register(o)
}
