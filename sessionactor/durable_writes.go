package sessionactor

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// onlyDurable refuses what takes a log that lasts.
func onlyDurable() wire.Refusal {
	return wire.Refuse(wire.CodeInvalidRequest, "the stream is ephemeral and has no log: this needs a durable stream").WithReason("ephemeral", 0)
}

// refuseNumbered refuses a publish that is numbered or conditional, for what can be told without its shard; nil when it goes on.
func refuseNumbered(r sessioncore.Request, entry *shardactor.Entry) *wire.Refusal {
	var f wire.Refusal
	switch p := r.Publish; {
	case r.Kind == wire.KindPublish:
		return nil
	case !entry.Durable:
		f = onlyDurable()
	case p.Count == 0:
		f = wire.Refuse(wire.CodeInvalidRequest, "a numbered or conditional publish needs at least one record")
	case r.Kind == wire.KindPublishIdempotent && p.ProducerID == 0:
		f = wire.Refuse(wire.CodeInvalidRequest, "0 is no producer id; ask for one with producer_init")
	default:
		return nil
	}
	return &f
}

// refuseElsewhere refuses a publish for a shard that is not served here. Numbered ones are told so in their own words.
func (l *lane) refuseElsewhere(r sessioncore.Request, target shardactor.Target) {
	if r.Kind != wire.KindPublishIdempotent || target.State != route.Remote {
		l.refuse(r.Token, elsewhere(target))
		return
	}
	reason := &wire.RefusedReason{Kind: wire.RefusedNotLeader, NodeID: target.Node, Addr: wire.Opt[string]{V: target.Addr, Set: target.Addr != ""}}
	l.settle(r.Token, sessioncore.Answer{Refused: reason})
}

// toLog makes a publish one to a durable stream. The sum is computed here and not in the shard, which serves others meanwhile.
func (l *lane) toLog(msg *shardactor.Publish, r sessioncore.Request) {
	l.core.Logged(r.Token)
	switch r.Kind {
	case wire.KindPublishIdempotent:
		msg.Batch.ProducerID, msg.Batch.Sequence = r.Publish.ProducerID, r.Publish.Sequence
	case wire.KindPublishIf:
		msg.HasExpected, msg.Expected = true, r.Message.(*wire.PublishIf).ExpectedOffset
	default:
		// What nobody is told of is not acknowledged, and so can't be lost after that.
		msg.AtClaim = l.session.opts.AckAtClaim && !l.core.Silent(r.Token) && !l.core.Grant().Features.Has(wire.FeatureAckOnCommit)
	}
	msg.Batch.Summarize()
}

// commit sends a commit to the shard of its entity.
func (l *lane) commit(ctx context.Context, t sessioncore.Token, m *wire.Commit) {
	e := l.find(route.Stream, m.TenantID, m.Namespace, m.Stream)
	if e == nil {
		l.refuse(t, notFound("stream", m.TenantID, m.Namespace, m.Stream))
		return
	}
	if !e.Durable {
		l.refuse(t, onlyDurable())
		return
	}
	_, target := e.Resolve(m.EntityKey, true)
	if target.State != route.Local {
		l.refuse(t, elsewhere(target))
		return
	}
	msg := &shardactor.Publish{Batch: commitBatch(m), HasExpected: m.ExpectedOffset.Set, Expected: m.ExpectedOffset.V}
	bytes := msg.Batch.PayloadBytes
	msg.To(l, shardcore.Token(t))
	l.core.Logged(t)
	if l.submit(ctx, t, target.Shard, msg, msg.Batch.Size()) {
		l.awaitOutcome(t)
		l.session.opts.Metrics.Published.Inc()
		l.session.opts.Metrics.PublishedBytes.Add(float64(bytes))
	}
}

// commitBatch is a commit as the log stores it. Its event, which is all that subscribers see of it, is framed where it lies.
func commitBatch(m *wire.Commit) batch.Batch {
	buf := shardactor.CommitBody(sessioncore.RegionHeadroom, m)
	b := batch.Batch{Count: 1, Kind: batch.Commit, PayloadBytes: len(m.Event), Body: buf[sessioncore.RegionHeadroom:]}
	region := len(b.Region())
	wire.PutSharedEventHeader(buf, 1, region)
	b.Framed = buf[: sessioncore.RegionHeadroom+region : sessioncore.RegionHeadroom+region]
	b.Summarize()
	return b
}

// awaitOutcome sees to it that a write which a shard has is answered in time. mu is held.
func (l *lane) awaitOutcome(t sessioncore.Token) {
	wait := l.session.opts.AckWait
	if wait <= 0 || l.core.Silent(t) || !l.core.IsOpen(t) {
		return
	}
	l.core.Due(t, l.session.opts.Clock.Now().Add(wait).UnixNano())
	if !l.expiring { // one timer for all of the stream's, which looks again when the first may be due
		l.expireAfter(wait)
	}
}

func (l *lane) expireAfter(d time.Duration) {
	l.expiring = true
	if l.expiry == nil {
		l.expiry = l.session.opts.Clock.AfterFunc(d, l.expire)
		return
	}
	l.expiry.Reset(d)
}

// expire answers what has waited for its outcome long enough.
func (l *lane) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.session.opts.Clock.Now()
	f := wire.Refuse(wire.CodeUnacknowledged, fmt.Sprintf("the log did not answer within %s; whether the write was or will be done is not known", l.session.opts.AckWait))
	n, next := l.core.Expire(now.UnixNano(), &f)
	for range n {
		l.countRefusal(&f)
	}
	if s := &l.sample; s.state == sampleOpen && !l.core.IsOpen(s.token) {
		*s = sample{}
	}
	if l.expiring = false; next != 0 {
		l.expireAfter(time.Duration(next - now.UnixNano()))
	}
	if n > 0 {
		l.flush()
	}
}
