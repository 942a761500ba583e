package shardactor

import (
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// groupsLook takes what the disk has told of the groups' logs.
func (s *Shard) groupsLook(t *actors.Turn) {
	g, at := s.groups, s.at(t)
	g.trimmed(g.disk.log)
	logs := g.disk.groups
	if logs == nil {
		return
	}
	if logs.begun {
		g.door.Began()
	}
	if logs.open() && g.disk.lost.kept && !g.door.Open() {
		for _, v := range g.door.Opened(at.Mono) {
			s.letIn(t, v)
		}
	}
	if err := logs.openErr; err != nil {
		logs.openErr = nil
		refuseVisits(g.door.Failed(at.Mono, vfs.WithoutFolders(err), isLasting(err)))
	}
	for i, l := range logs.logs() {
		if err := logs.poisoned[i]; err != nil {
			logs.poisoned[i] = nil
			s.groupsPoisoned(at, l, err)
		}
	}
}

// groupsPoisoned ends the groups of the shard, one of whose logs acknowledges nothing any more: what they were asked and did not answer is
// answered as unknown, and requests are refused until another process has opened the logs. The stream goes on without them.
func (s *Shard) groupsPoisoned(at shardcore.At, l *keysLog, err error) {
	g := s.groups
	s.core.Step(at, shardcore.LogFailed{Log: l.which, Reason: vfs.WithoutFolders(err)})
	l.opened = false
	s.opts.events.Emit(shardPoisonedSeen{shard: s.opts.number, name: groupLogName(l), err: err})
	refuseVisits(g.door.Failed(at.Mono, vfs.WithoutFolders(err), true))
	for _, c := range g.list {
		c.ref.Stop()
	}
}

// letIn passes on a request that waited.
func (s *Shard) letIn(t *actors.Turn, v groupcore.Visit) {
	m := v.Request.(*GroupRequest)
	switch g := s.groups; {
	case g.stopped != nil:
		m.refuse(*g.stopped)
	case !s.core.Serving():
		m.refuse(*notServing())
	default:
		if p, poll := m.In.(*groupcore.Poll); poll {
			p.Wait = v.Wait
		}
		g.pass(t, s.self, m)
	}
}

func refuseVisits(list []groupcore.Visit, f wire.Refusal) {
	for _, v := range list {
		v.Request.(*GroupRequest).refuse(f)
	}
}

// groupsWake ends the waits that are over, and opens the logs again when it is time.
func (s *Shard) groupsWake(at shardcore.At) {
	if s.groups == nil || s.groups.stopped != nil {
		return
	}
	over, f, open := s.groups.door.Wake(at.Mono)
	refuseVisits(over, f)
	if open {
		s.groups.disk.openGroups(s.opts.generation)
	}
}

// groupsWakeAt is when groupsWake has something to do; zero if never.
func (s *Shard) groupsWakeAt() time.Time {
	if s.groups == nil || s.groups.stopped != nil {
		return time.Time{}
	}
	d, ok := s.groups.door.Deadline()
	if !ok {
		return time.Time{}
	}
	return s.started.Add(d)
}
