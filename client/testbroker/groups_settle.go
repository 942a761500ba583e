package testbroker

import (
	"maps"
	"slices"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// handleGroup serves what is about groups; false when m is not.
func (b *Broker) handleGroup(s *Stream, m wire.Message) bool {
	switch m := m.(type) {
	case *wire.GroupPoll:
		b.groupPoll(s, m)
	case *wire.GroupAck:
		b.onGroup(s, m, m.GroupTarget, b.ok(m.RequestID, func(l *log, g *group) *wire.Refusal { return g.ack(l, m.Offset) }))
	case *wire.GroupNack:
		b.onGroup(s, m, m.GroupTarget, b.ok(m.RequestID, func(l *log, g *group) *wire.Refusal { return g.nack(l, m, b.options.GroupMaxAttempts) }))
	case *wire.GroupDeadLetter:
		b.onGroup(s, m, m.GroupTarget, b.ok(m.RequestID, func(l *log, g *group) *wire.Refusal { return g.giveUp(l, m.Offset) }))
	case *wire.GroupDiscard:
		b.onGroup(s, m, m.GroupTarget, b.ok(m.RequestID, func(_ *log, g *group) *wire.Refusal { return g.forget(m.Offset) }))
	case *wire.GroupRedrive:
		b.onGroup(s, m, m.GroupTarget, b.ok(m.RequestID, func(_ *log, g *group) *wire.Refusal { return g.redrive(m.Offset) }))
	case *wire.GroupExtend:
		b.onGroup(s, m, m.GroupTarget, func(_ *log, g *group) (wire.Message, *wire.Refusal) { return g.extend(m) })
	case *wire.GroupSeek:
		b.onGroup(s, m, m.GroupTarget, func(l *log, g *group) (wire.Message, *wire.Refusal) { return g.seek(l, m) })
	case *wire.GroupDeadLetters:
		b.onGroup(s, m, m.GroupTarget, func(_ *log, g *group) (wire.Message, *wire.Refusal) {
			return &wire.GroupDeadLetterList{RequestID: m.RequestID, Offsets: slices.Sorted(maps.Keys(g.dead))}, nil
		})
	default:
		return b.handleWholeGroup(s, m)
	}
	return true
}

// handleWholeGroup serves what must not make the group it is about.
func (b *Broker) handleWholeGroup(s *Stream, m wire.Message) bool {
	switch m := m.(type) {
	case *wire.GroupDescribe:
		if l := b.shardLog(s, m.Namespace, m.Stream, m.Shard); l != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			s.Send(l.describe(m))
		}
	case *wire.GroupDelete:
		if l := b.shardLog(s, m.Namespace, m.Stream, m.Shard); l != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			existed := l.groups[m.Group] != nil
			delete(l.groups, m.Group)
			s.Send(&wire.GroupDeleted{RequestID: m.RequestID, Existed: existed})
		}
	default:
		return false
	}
	return true
}

// onGroup does something to a group and answers with what comes of it.
func (b *Broker) onGroup(s *Stream, request wire.Message, t wire.GroupTarget, do func(l *log, g *group) (wire.Message, *wire.Refusal)) {
	l := b.shardLog(s, t.Namespace, t.Stream, t.Shard)
	if l == nil {
		return
	}
	l.mu.Lock()
	g := l.group(t.Group)
	g.lapse(time.Now(), b.options.GroupMaxAttempts)
	answer, refusal := do(l, g)
	l.ring()
	l.mu.Unlock()
	if refusal != nil {
		answer = wire.ErrorOf(*refusal, s.Grant)
	}
	b.answerGroup(s, request, answer)
}

func (b *Broker) ok(requestID uint64, do func(l *log, g *group) *wire.Refusal) func(l *log, g *group) (wire.Message, *wire.Refusal) {
	return func(l *log, g *group) (wire.Message, *wire.Refusal) {
		return &wire.CacheOK{RequestID: requestID}, do(l, g)
	}
}

func stale(retry wire.Retry) *wire.Refusal {
	r := wire.Refuse(wire.CodeStaleClaim, "that delivery does not stand")
	r.Retry = retry
	return &r
}

func invalid(text string) *wire.Refusal {
	r := wire.Refuse(wire.CodeInvalidRequest, text)
	return &r
}

func (g *group) finished(at id.Offset) bool {
	return g.claims[at] == nil && (at < g.cursor || g.settled[at])
}

// ack finishes a record, also after its claim has lapsed.
func (g *group) ack(l *log, at id.Offset) *wire.Refusal {
	switch {
	case at >= l.tail:
		return invalid("the offset is past the end")
	case g.finished(at):
		return nil
	case g.claims[at] == nil:
		return stale(wire.RetryRetry)
	}
	g.finish(l, at)
	return nil
}

func (g *group) nack(l *log, m *wire.GroupNack, most uint32) *wire.Refusal {
	c := g.claims[m.Offset]
	switch {
	case m.Offset >= l.tail:
		return invalid("the offset is past the end")
	case m.Attempts > 0 && (c == nil || !c.held || c.attempts != m.Attempts):
		return stale(wire.RetryFatal)
	case g.finished(m.Offset):
		return nil
	case c == nil:
		return stale(wire.RetryRetry)
	}
	g.failed(m.Offset, time.Now().Add(time.Duration(m.DelayMillis)*time.Millisecond), most)
	g.advance(l)
	return nil
}

func (g *group) extend(m *wire.GroupExtend) (wire.Message, *wire.Refusal) {
	c := g.claims[m.Offset]
	switch {
	case m.ExtendMillis == 0:
		return nil, invalid("a claim is extended by something")
	case c == nil || !c.held || c.attempts != m.Attempts:
		return nil, stale(wire.RetryFatal)
	}
	c.until = time.Now().Add(time.Duration(m.ExtendMillis) * time.Millisecond)
	return &wire.GroupExtended{RequestID: m.RequestID, VisibleMillis: m.ExtendMillis}, nil
}

func (g *group) giveUp(l *log, at id.Offset) *wire.Refusal {
	switch {
	case at >= l.tail || g.finished(at):
		return invalid("the record is finished, or not there")
	case g.claims[at] == nil:
		return stale(wire.RetryRetry)
	}
	g.dead[at] = true
	g.finish(l, at)
	return nil
}

func (g *group) forget(at id.Offset) *wire.Refusal {
	if !g.dead[at] {
		return invalid("no such dead letter")
	}
	delete(g.dead, at)
	return nil
}

func (g *group) redrive(at id.Offset) *wire.Refusal {
	if refusal := g.forget(at); refusal != nil {
		return refusal
	}
	g.claims[at] = &claim{}
	return nil
}

func (g *group) seek(l *log, m *wire.GroupSeek) (wire.Message, *wire.Refusal) {
	to := l.base
	switch m.Start.Kind {
	case wire.StartLatest:
		to = l.tail
	case wire.StartOffset:
		to = m.Start.Offset
	}
	switch isNew := g.fresh == l.base && len(g.claims) == 0; {
	case to < l.base || to > l.tail:
		return nil, invalid("the shard does not have that offset")
	case m.IfNew && !isNew:
		return &wire.GroupPosition{RequestID: m.RequestID, Offset: g.cursor}, nil
	}
	g.cursor, g.fresh = to, to
	clear(g.claims)
	clear(g.settled)
	return &wire.GroupPosition{RequestID: m.RequestID, Offset: to, Moved: true}, nil
}

// describe is how far a group is; one that is not there is not made. The lock is held.
func (l *log) describe(m *wire.GroupDescribe) *wire.GroupInfo {
	info := &wire.GroupInfo{RequestID: m.RequestID, Tail: l.tail}
	g := l.groups[m.Group]
	if g == nil {
		return info
	}
	info.Committed, info.DeadLetters = wire.Some(g.cursor), uint64(len(g.dead))
	for _, c := range g.claims {
		if c.held {
			info.InFlight++
		} else {
			info.Owed++
		}
	}
	return info
}
