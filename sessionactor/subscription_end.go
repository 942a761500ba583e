package sessionactor

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// endCause is why a broker ends an event stream. An end by the client, or with the connection, is none of them: nobody reads
// a last frame then.
type endCause uint8

const (
	// endDeleted: the stream was deleted.
	endDeleted endCause = iota
	// endFailed: the shard failed; another incarnation of it takes its place, here or elsewhere.
	endFailed
	// endMoved: another broker serves the shard.
	endMoved
	// endDraining: this broker goes away.
	endDraining
	// endLagged: the subscriber fell too far behind.
	endLagged
	// endRevoked: the principal lost its right to it.
	endRevoked
)

// ending is an end and what is known about it.
type ending struct {
	cause      endCause
	durable    bool      // the stream keeps its records: they have offsets, and a subscriber can resume
	resume     id.Offset // the first one that was not offered to this subscriber
	generation id.Generation
	node, addr string // of the broker that serves the shard now, "" if that is not known
}

// endFrame is the last message on an event stream, nil when it just ends: a client takes only what it offered, and fails on any other message
// there. The protocol has two: shard_moved, for whatever ends with the records still to be had at the shard's next incarnation, and
// subscription_lagged. Both tell where to resume, so they belong to durable streams. The code stream_deleted and revoked have no
// message on event streams.
func endFrame(g wire.Grant, subscription uint64, e ending) wire.Message {
	if !e.durable {
		return nil
	}
	switch e.cause {
	case endLagged:
		if g.Features.Has(wire.FeatureSubscriptionLagged) {
			return &wire.SubscriptionLagged{SubscriptionID: subscription, ResumeFrom: e.resume}
		}
	case endFailed, endMoved, endDraining:
		if !g.Features.Has(wire.FeatureShardMoved) {
			break
		}
		m := &wire.ShardMoved{SubscriptionID: subscription, ResumeFrom: wire.Some(e.resume), Generation: e.generation}
		if e.node != "" && e.addr != "" {
			m.NodeID, m.Addr = wire.Some(e.node), wire.Some(e.addr)
		}
		return m
	case endDeleted, endRevoked:
	}
	return nil
}

// closedBy is the end that the end of a log means to its subscribers.
func closedBy(r storage.CloseReason) endCause {
	switch r {
	case storage.ClosedDeleted:
		return endDeleted
	case storage.ClosedFailed:
		return endFailed
	}
	return endDraining
}

// notRegistered is the answer to a subscribe that has no place in the log.
func (f *feed) notRegistered(err error) sessioncore.Answer {
	if m := cursorError(err); m != nil {
		return sessioncore.Answer{Message: m}
	}
	refusal := unavailable(wire.ReasonNotReady, "the shard's log is closed; repeat the request")
	var closed *storage.ClosedError
	if !errors.As(err, &closed) {
		f.session.readFailed(f.asked.entry, f.asked.number, err)
		refusal = wire.Refuse(wire.CodeStorage, "the log could not be read; the broker's log says why").WithRetry(wire.RetryRetry)
	}
	return sessioncore.Answer{Refusal: &refusal}
}

// endOfLog ends the subscription because its log gives no more.
//
// Nothing on an event stream can say that what comes next was removed by retention, or cannot be read. A stream that just ended would be
// taken for one that is complete, so it is broken off, unless the client can be told to resume: there it is told what is wrong.
func (f *feed) endOfLog(ctx context.Context, err error) error {
	var closed *storage.ClosedError
	var old *storage.TooOldError
	switch {
	case errors.As(err, &closed):
		return f.end(closedBy(closed.Reason))
	case ctx.Err() != nil:
		f.stream.CancelWrite()
		return context.Cause(ctx)
	case errors.As(err, &old) && f.endsWhenLagging():
		return f.end(endLagged)
	case errors.As(err, &old):
	default:
		f.session.readFailed(f.asked.entry, f.asked.number, err)
	}
	f.stream.CancelWrite()
	return fmt.Errorf("read events: %w", err)
}

// endsWhenLagging reports whether a subscriber that lost records is told so and ended, instead of going on behind the hole: that is for
// those who can resume. It then resumes at the first record it lost.
func (f *feed) endsWhenLagging() bool {
	return f.source.last(f.ending(endLagged)) != nil
}

// end writes the last frame, if there is one for this subscriber, and finishes the stream.
func (f *feed) end(cause endCause) error {
	if cause == endLagged && f.lagged != nil {
		f.lagged.Inc()
	}
	if m := f.source.last(f.ending(cause)); m != nil {
		if err := f.put(wire.AppendJSONFrame(nil, m)); err != nil {
			return err
		}
	}
	return f.stream.Close()
}

// ending is an end of this subscription, here and now.
func (f *feed) ending(cause endCause) ending {
	e := ending{cause: cause, durable: f.asked.entry.Durable, resume: f.next, generation: f.asked.generation}
	if t, ok := f.asked.entry.Shard(f.asked.number); ok && !f.asked.entry.Gone() {
		e.generation = max(e.generation, t.Generation)
		e.node, e.addr = t.Node, t.Addr
	}
	return e
}
