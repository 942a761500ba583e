package sessionactor

import (
	"context"
	"errors"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// logOf is a shard whose log is read.
type logOf struct {
	entry *shardactor.Entry
	shard uint32
	*shardactor.Handle
}

// durableShard finds a shard of a durable stream, or answers why there is none to be read here; choose picks it.
func (l *lane) durableShard(t sessioncore.Token, tenant, namespace, stream string, choose func(e *shardactor.Entry) (uint32, shardactor.Target, bool)) (logOf, bool) {
	e := l.find(route.Stream, tenant, namespace, stream)
	if e == nil {
		l.refuse(t, notFound("stream", tenant, namespace, stream))
		return logOf{}, false
	}
	if !e.Durable {
		l.refuse(t, onlyDurable())
		return logOf{}, false
	}
	n, target, ok := choose(e)
	switch {
	case !ok:
		l.refuse(t, noSuchShard(e, n))
	case target.State != route.Local:
		l.refuse(t, elsewhere(target))
	case !target.Shard.Serving() || target.Shard.History == nil || target.Shard.State == nil:
		l.refuse(t, notReady())
	default:
		return logOf{e, n, target.Shard}, true
	}
	return logOf{}, false
}

func theShard(n uint32) func(e *shardactor.Entry) (uint32, shardactor.Target, bool) {
	return func(e *shardactor.Entry) (uint32, shardactor.Target, bool) {
		target, ok := e.Shard(n)
		return n, target, ok
	}
}

func notReady() wire.Refusal {
	return unavailable(wire.ReasonNotReady, "the shard does not serve right now; repeat the request")
}

// stateGet reads the view that commits make, under the shard's right to serve, before the read and after it.
func (l *lane) stateGet(t sessioncore.Token, m *wire.StateGet) {
	h, ok := l.durableShard(t, m.TenantID, m.Namespace, m.Stream, func(e *shardactor.Entry) (uint32, shardactor.Target, bool) {
		n, target := e.Resolve(m.EntityKey, true)
		return n, target, true
	})
	if !ok {
		return
	}
	v := h.State.Get(m.EntityKey, m.Key)
	if !h.Serving() {
		l.refuse(t, notReady())
		return
	}
	answer := &wire.StateValue{RequestID: m.RequestID}
	if v.Found {
		answer.Value, answer.Version = wire.Some(v.Value), wire.Some(v.Version)
	}
	if v.Any {
		answer.AsOf = wire.Some(v.AsOf)
	}
	l.settle(t, sessioncore.Answer{Message: answer})
}

func (l *lane) streamRead(t sessioncore.Token, m *wire.StreamRead) {
	h, ok := l.durableShard(t, m.TenantID, m.Namespace, m.Stream, theShard(m.Shard))
	if !ok {
		return
	}
	l.later(t, h.History, namesLen(m.TenantID, m.Namespace, m.Stream), func(ctx context.Context) sessioncore.Answer {
		records, err := readRange(ctx, h.History, m, l.session.opts.ReadRecords)
		if f := l.unread(h, err); f != nil {
			return *f
		}
		return sessioncore.Answer{Frame: wire.AppendJSONFrame(nil, records)} // here: it may be long, and the lane is not to wait for it
	})
}

func (l *lane) offsetForTime(t sessioncore.Token, m *wire.OffsetForTime) {
	h, ok := l.durableShard(t, m.TenantID, m.Namespace, m.Stream, theShard(m.Shard))
	if !ok {
		return
	}
	l.later(t, h.History, namesLen(m.TenantID, m.Namespace, m.Stream), func(ctx context.Context) sessioncore.Answer {
		o, found, err := h.History.OffsetForTime(ctx, m.AtMicros)
		if f := l.unread(h, err); f != nil {
			return *f
		}
		answer := &wire.OffsetValue{RequestID: m.RequestID}
		if found {
			answer.Offset = wire.Some(o)
		}
		return sessioncore.Answer{Message: answer}
	})
}

// unread is the answer to a read that found err, nil if it is good. What was read while the shard lost its right to serve is not: it may
// say that a log has ended which goes on elsewhere.
func (l *lane) unread(h logOf, err error) *sessioncore.Answer {
	serves := h.Serving()
	if m := cursorError(err); m != nil && serves {
		return &sessioncore.Answer{Message: m}
	}
	var f wire.Refusal
	var closed *storage.ClosedError
	var long *recordTooLongError
	switch {
	case err == nil && serves:
		return nil
	case err == nil || cursorError(err) != nil:
		f = notReady()
	case errors.As(err, &closed):
		f = unavailable(wire.ReasonNotReady, "the shard was closed ("+closed.Reason.String()+"); repeat the request")
	case errors.As(err, &long):
		f = wire.Refuse(wire.CodeLimitExceeded, long.Error())
	case errors.Is(err, context.Canceled):
		f = streamGone()
	default:
		l.session.readFailed(h.entry, h.shard, err)
		f = wire.Refuse(wire.CodeStorage, "the log could not be read; the broker's log says why").WithRetry(wire.RetryRetry)
	}
	return &sessioncore.Answer{Refusal: &f}
}

// cursorError tells a client that an offset cannot be read; nil when err says something else.
func cursorError(err error) wire.Message {
	var old *storage.TooOldError
	var future *storage.InFutureError
	switch {
	case errors.As(err, &old):
		return &wire.SubscribeCursorError{Reason: wire.CursorTooOld, Requested: old.Requested, Available: old.Oldest}
	case errors.As(err, &future):
		return &wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: future.Requested, Available: future.Tail}
	}
	return nil
}

// readFailed notes that a log could not be read, for its operator.
func (s *session) readFailed(e *shardactor.Entry, shard uint32, err error) {
	s.opts.Metrics.ReadFailures.Inc()
	s.opts.Events.Emit(logReadFailed{session: s.number, stream: e.Name.String(), shard: shard, err: err})
}
