package sessionactor

import (
	"fmt"
	"sort"
	"strings"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
)

// lanePolls are the polls of a lane that a shard has, in the order they came. A poll that waits is an entry here and in its group, and no
// goroutine. The window bounds them, and Polls those of all lanes. Used under the lane's lock.
type lanePolls []*heldPoll

// heldPoll is one of them.
type heldPoll struct {
	token   sessioncore.Token
	log     logOf
	records []wire.GroupRecord // that were read for it, without what only its group knows; they share memory with what was read
	places  bool               // it holds one of the connection's and one of the node's places for reads, while it has records
	bytes   int                // that it holds of Polls
}

func (l lanePolls) search(t sessioncore.Token) int {
	return sort.Search(len(l), func(i int) bool { return l[i].token >= t })
}

// find returns a poll; nil if it is over.
func (l lanePolls) find(t sessioncore.Token) *heldPoll {
	if i := l.search(t); i < len(l) && l[i].token == t {
		return l[i]
	}
	return nil
}

// take removes a poll; nil if it is no poll, or over.
func (l *lanePolls) take(t sessioncore.Token) *heldPoll {
	list := *l
	i := list.search(t)
	if i == len(list) || list[i].token != t {
		return nil
	}
	p := list[i]
	copy(list[i:], list[i+1:])
	list[len(list)-1] = nil
	if *l = list[:len(list)-1]; len(*l) == 0 {
		*l = nil
	}
	return p
}

// groupPoll has a poll done by its group. It takes no place in the admission, and none of what frames need, since it may wait: polls have a
// budget of their own, and are bounded by the windows of streams and by how many a group takes.
func (l *lane) groupPoll(t sessioncore.Token, m *wire.GroupPoll) {
	h, ok := l.groupShard(t, &m.GroupTarget)
	if !ok {
		return
	}
	if name := m.Consumer; name.Set && (name.V == "" || len(name.V) > wire.MaxConsumerBytes || strings.IndexByte(name.V, 0) >= 0) {
		l.refuseGroup(t, wire.Refuse(wire.CodeInvalidRequest, fmt.Sprintf("a consumer needs a name of 1 to %d bytes, and none of them 0", wire.MaxConsumerBytes)))
		return
	}
	if !l.session.groups.add(h.Handle, m.Group) {
		l.refuseGroup(t, wire.Refuse(wire.CodeLimitExceeded, "the connection polls too many groups; use another one for more"))
		return
	}
	subject := l.core.Grants().Subject()
	in := &groupcore.Poll{
		Conn: groupcore.Conn(l.session.number), Reclaim: m.Reclaim, Max: m.MaxRecords, Wait: millis(m.WaitMillis), Visibility: millis(m.VisibilityMillis),
	}
	if m.Consumer.Set {
		in.Member = m.Consumer.V + "\x00" + subject
	}
	held := pollBytes(m, subject)
	if f := l.takePoll(held); f != nil {
		l.refuseGroup(t, *f)
		return
	}
	msg := &shardactor.GroupRequest{Group: m.Group, In: in}
	msg.To(l, shardcore.Token(t))
	if err := h.Ref.TrySend(msg, shardactor.Size(msg)); err != nil {
		l.givePoll(held)
		l.countGroup(m, "refused")
		l.notTaken(t, err)
		return
	}
	l.polls = append(l.polls, &heldPoll{token: t, log: h, bytes: held}) // its answer needs the lock
	l.core.Lighten(t)
	l.session.opts.Metrics.GroupPolls.Inc()
}

func (l *lane) takePoll(bytes int) *wire.Refusal {
	f := l.session.opts.Polls.take(&l.session.groups.use, l.core.Grants().Tenant(), bytes)
	if f == nil {
		l.session.opts.Metrics.GroupPollBytes.Add(float64(bytes))
	}
	return f
}

func (l *lane) givePoll(bytes int) {
	l.session.opts.Polls.give(&l.session.groups.use, l.core.Grants().Tenant(), bytes)
	l.session.opts.Metrics.GroupPollBytes.Sub(float64(bytes))
}

// takeOver takes out a poll whose wait is over; nil if it is no poll, or over before. Its records, and the places that they hold, are the
// caller's.
func (l *lane) takeOver(t sessioncore.Token) *heldPoll {
	p := l.polls.take(t)
	if p != nil {
		l.givePoll(p.bytes)
		l.session.opts.Metrics.GroupPolls.Dec()
	}
	return p
}

// dropRecords lets go of what was read for a poll.
func (l *lane) dropRecords(p *heldPoll) {
	p.records = nil
	if p.places {
		p.places = false
		l.session.opts.NodeReads.Release(0, 1)
		l.session.reads.Release(0, 1)
	}
}

// Drop implements shardactor.GroupReply.
func (l *lane) Drop(t shardcore.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.polls.find(sessioncore.Token(t)); p != nil {
		l.dropRecords(p)
	}
}
