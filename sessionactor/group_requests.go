package sessionactor

import (
	"context"
	"strings"
	"time"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// group performs a request of a consumer group; false means that m is none.
func (l *lane) group(ctx context.Context, t sessioncore.Token, m wire.Message) bool {
	switch m := m.(type) {
	case *wire.GroupPoll:
		l.groupPoll(t, m)
	case *wire.GroupAck:
		l.groupSend(ctx, t, &m.GroupTarget, &groupcore.Ack{Offset: m.Offset})
	case *wire.GroupNack:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.Nack{
			Conn: groupcore.Conn(l.session.number), Offset: m.Offset, HasDelay: m.DelayMillis > 0, Delay: millis(m.DelayMillis), Attempts: m.Attempts,
		})
	case *wire.GroupExtend:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.Extend{
			Conn: groupcore.Conn(l.session.number), Offset: m.Offset, Attempts: m.Attempts, Extend: millis(m.ExtendMillis),
		})
	case *wire.GroupDeadLetter:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.GiveUp{Offset: m.Offset})
	case *wire.GroupDeadLetters:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.ListDead{Max: groupDeadMost})
	case *wire.GroupDiscard:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.Discard{Offset: m.Offset})
	case *wire.GroupRedrive:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.Redrive{Offset: m.Offset})
	case *wire.GroupSeek:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.Seek{Start: m.Start, IfNew: m.IfNew})
	case *wire.GroupDescribe:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.Describe{})
	case *wire.GroupDelete:
		l.groupSend(ctx, t, &m.GroupTarget, groupcore.Remove{})
	default:
		return false
	}
	return true
}

// groupDeadMost bounds the offsets in one answer. It is ten times what a group has by default, and as text at most 2.1 MiB of a frame.
const groupDeadMost = 100_000

// millis is a time that a client names. What is longer than any bound is as good as that: a month.
func millis(n uint64) time.Duration {
	const most = 31 * 24 * time.Hour
	return time.Duration(min(n, uint64(most/time.Millisecond))) * time.Millisecond
}

// groupOp is what the metric that counts a request calls it.
func groupOp(m wire.Message) string { return strings.TrimPrefix(m.MessageType(), "group_") }

func (l *lane) countGroup(m wire.Message, result string) {
	l.session.opts.Metrics.GroupRequests.WithLabelValues(groupOp(m), result).Inc()
}

// groupShard finds the shard of a group, or answers why there is none.
func (l *lane) groupShard(t sessioncore.Token, g *wire.GroupTarget) (logOf, bool) {
	m := l.core.Asked(t)
	h, ok := l.durableShard(t, g.TenantID, g.Namespace, g.Stream, theShard(g.Shard))
	if !ok {
		l.countGroup(m, "refused")
	}
	return h, ok
}

func (l *lane) refuseGroup(t sessioncore.Token, f wire.Refusal) {
	l.countGroup(l.core.Asked(t), "refused")
	l.refuse(t, f)
}

// groupSend has a request that is no poll done by its group.
func (l *lane) groupSend(ctx context.Context, t sessioncore.Token, g *wire.GroupTarget, in groupcore.Input) {
	h, ok := l.groupShard(t, g)
	if !ok {
		return
	}
	asked := l.core.Asked(t)
	msg := &shardactor.GroupRequest{Group: g.Group, In: in}
	msg.To(l, shardcore.Token(t))
	if !l.submit(ctx, t, h.Handle, msg, shardactor.Size(msg)) {
		l.countGroup(asked, "refused")
		return
	}
	l.awaitOutcome(t)
}

// AnswerGroup implements shardactor.GroupReply.
func (l *lane) AnswerGroup(t shardcore.Token, a *groupcore.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token := sessioncore.Token(t)
	if p := l.takeOver(token); p != nil {
		l.dropRecords(p)
	}
	if !l.core.IsOpen(token) {
		l.core.Outlived(token) // it came too late, and was answered
		return
	}
	asked := l.core.Asked(token)
	if a.Refusal != nil {
		l.countGroup(asked, "refused")
		l.settle(token, sessioncore.Answer{Refusal: a.Refusal})
		return
	}
	l.countGroup(asked, "ok")
	l.settle(token, sessioncore.Answer{Message: groupAnswer(asked, a)})
}

// groupAnswer says that a request was done.
func groupAnswer(asked wire.Message, a *groupcore.Answer) wire.Message {
	switch m := asked.(type) {
	case *wire.GroupExtend:
		return &wire.GroupExtended{VisibleMillis: uint64(a.Visible.Milliseconds()), RequestID: m.RequestID}
	case *wire.GroupDeadLetters:
		return &wire.GroupDeadLetterList{Offsets: a.Dead, RequestID: m.RequestID}
	case *wire.GroupSeek:
		return &wire.GroupPosition{Offset: a.Offset, Moved: a.Moved, RequestID: m.RequestID}
	case *wire.GroupDescribe:
		return &wire.GroupInfo{
			Committed: wire.Opt[id.Offset]{V: a.Info.Cursor, Set: a.Info.Exists}, Tail: a.Info.Tail, InFlight: uint64(a.Info.InFlight),
			Owed: uint64(a.Info.Owed + a.Info.Delayed), DeadLetters: uint64(a.Info.Dead), RequestID: m.RequestID,
		}
	case *wire.GroupDelete:
		return &wire.GroupDeleted{Existed: a.Existed, RequestID: m.RequestID}
	}
	return &wire.CacheOK{RequestID: wire.RequestIDOf(asked).V}
}
