package sessionactor

import (
	"errors"
	"sync"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/wire/id"
)

// groupsPerConn bounds the groups that one connection polls, each shard's for itself: 64 shards with 16 groups each. They are remembered
// until the connection ends, in about 256 KiB with ordinary names.
const groupsPerConn = 1024

// polled are the groups that a connection has polled, which are told when it is gone.
type polled struct {
	use sessioncore.ParkUse // of Polls, under its lock

	mu    sync.Mutex
	index map[polledGroup]int // place in list
	list  []*groupLeave
}

type polledGroup struct {
	shard id.ShardID
	group string
}

// groupLeave is a message to one group, and where it goes: to the shard as it was when it was asked last.
type groupLeave struct {
	ref   shardactor.Ref
	group string
}

// add notes that a group is polled; false means that they are too many.
func (p *polled) add(h *shardactor.Handle, group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := polledGroup{h.Number, group}
	if i, ok := p.index[key]; ok {
		p.list[i].ref = h.Ref
		return true
	}
	if len(p.list) >= groupsPerConn {
		return false
	}
	if p.index == nil {
		p.index = make(map[polledGroup]int)
	}
	p.index[key] = len(p.list)
	p.list = append(p.list, &groupLeave{ref: h.Ref, group: group})
	return true
}

// all are the groups as they are now.
func (p *polled) all() []groupLeave {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]groupLeave, len(p.list))
	for i, x := range p.list {
		list[i] = *x
	}
	return list
}

// leaveGroups tells all groups that this connection takes no more records: its waiting polls are answered.
func (s *session) leaveGroups() { s.leave(s.groups.all()) }

// leaveAgain is after what time a shard is told again that had no room. Until then a poll that is over waits, and delivers nothing.
const leaveAgain = 20 * time.Millisecond

func (s *session) leave(list []groupLeave) {
	var rest []groupLeave
	for _, x := range list {
		m := &shardactor.GroupGone{Group: x.group, Conn: groupcore.Conn(s.number)}
		if err := x.ref.TrySend(m, shardactor.Size(m)); errors.Is(err, actors.ErrFull) {
			rest = append(rest, x)
		}
	}
	if len(rest) > 0 {
		s.opts.Clock.AfterFunc(leaveAgain, func() { s.leave(rest) })
	}
}
