package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

const (
	// resumePatience is how long a subscription tries to go on when Options.RetryDeadline does not say: a failover takes a
	// second, the restart of a broker some more.
	resumePatience = 30 * time.Second
	// steadyAfter is how long an event stream has to last for its end to be no fault of the way it was opened.
	steadyAfter = 10 * time.Second
)

// resuming is a resumption under way. It belongs to the source, not to whoever pulls, so that callers with little patience
// still get there. Its results may be read once done is closed.
type resuming struct {
	lost  error // what ended the stream before
	from  wire.Start
	exact bool
	again bool // what is there now is another than it was
	done  chan struct{}
	err   error
}

// remade says that what was read was not there for a while: if it is again, it is another one of that name, which the offsets of the one before say
// nothing of. A watch begins anew with what there is.
func (r *resuming) remade(values bool) {
	r.exact = false
	if values && r.from.Kind == wire.StartOffset {
		r.from, r.again = wire.Start{Kind: wire.StartEarliest}, true
	}
}

// after decides what follows the end of an event stream: nothing, or another stream. ok is false when it is the end of the
// source.
func (s *source) after(lost error) (p piece, ok bool) {
	s.current().stop()
	r := s.plan(lost)
	if r == nil || s.tired() {
		s.end = lost
		return piece{}, false
	}
	if !s.client.life.spawn(func() { s.run(r) }) {
		s.end = closedError(s.op)
		return piece{}, false
	}
	s.resuming = r
	var moved *ShardMovedError
	if errors.As(lost, &moved) {
		return piece{kind: ItemShardMoved, err: lost}, true
	}
	return piece{kind: ItemShardLost, err: lost}, true
}

// plan says where to go on; nil for nowhere.
func (s *source) plan(lost error) *resuming {
	if s.resume == ResumeNever || s.over() != nil {
		return nil
	}
	var lagged *SubscriptionLaggedError
	var moved *ShardMovedError
	var broken *SubscriptionLostError
	var refused *BrokerError
	tail := s.resume == ResumeTail
	switch {
	case errors.As(lost, &lagged) && s.sparse:
		s.placed, s.next = true, max(s.next, lagged.ResumeFrom)
	case errors.As(lost, &lagged):
		s.startAt(lagged.ResumeFrom)
	case errors.As(lost, &moved):
		if moved.ResumeFrom.Set {
			s.placed, s.next = true, max(s.next, moved.ResumeFrom.V)
		}
		s.route.learn(s.client, wire.Owner{NodeID: moved.NodeID, Addr: moved.Addr, Generation: moved.Generation})
		tail = true
	case errors.As(lost, &broken), lost == io.EOF && s.whole:
	case errors.As(lost, &refused) && repeatable(lost):
	default:
		return nil
	}
	switch {
	case s.snap != nil: // what came of it cannot be gone on from
		return &resuming{lost: lost, from: s.snap.again, done: make(chan struct{})}
	case s.placed:
		return &resuming{lost: lost, from: wire.Start{Kind: wire.StartOffset, Offset: s.next}, exact: true, done: make(chan struct{})}
	case tail:
		return &resuming{lost: lost, done: make(chan struct{})}
	}
	return nil
}

// errSnapshotCut is why a watch cannot go on: part of a snapshot was returned, and the broker offers no other.
var errSnapshotCut = errors.New("the broker began to send current values, and now has changes instead: watch again with Retained")

// startAt is where to go on if nothing was delivered yet.
func (s *source) startAt(offset id.Offset) {
	if !s.placed {
		s.placed, s.next = true, offset
	}
}

// tired reports whether too many event streams in a row ended at once and brought nothing.
func (s *source) tired() bool {
	if s.brought || s.client.now().Sub(s.since) >= steadyAfter {
		s.fruitless = 0
		return false
	}
	s.fruitless++
	return s.fruitless >= s.client.opts.Attempts
}

// run subscribes again. While it does, nobody else touches what belongs to whoever pulls.
func (s *source) run(r *resuming) {
	defer close(r.done)
	c := s.client
	if s.fruitless > 0 {
		if r.err = c.sleep(s.ctx, c.pause(s.fruitless, r.lost)); r.err != nil {
			return
		}
	}
	var o *opened
	bounds := limits{time: orDefault(c.opts.RetryDeadline, resumePatience), first: s.fruitless}
	r.err = c.repeatWithin(s.ctx, s.op, bounds, repeatable, func() (err error) {
		if o, err = s.open(s.ctx, r.from); errors.Is(err, ErrNotFound) {
			r.remade(s.sparse)
		}
		return err
	})
	if r.err == nil && r.again && o.snap != nil {
		o.snap.replaces, o.snap.back = true, wire.Some(s.next)
	}
	if r.err == nil && s.snap != nil && o.snap == nil {
		o.stop()
		r.err = errSnapshotCut
		return
	}
	if r.err == nil && !s.install(o) {
		r.err = s.over()
	}
}

// awaitResumption waits for the outcome. Nothing comes when ctx ends, or the resumption failed and with it the source.
func (s *source) awaitResumption(ctx context.Context) (p piece, ok bool) {
	r := s.resuming
	select {
	case <-r.done:
	case <-ctx.Done():
		return piece{}, false
	}
	s.resuming = nil
	var cursor *CursorError
	switch {
	case r.err == nil:
		s.gap = s.gap || !r.exact
		s.client.stats.resumes.Add(1)
		p = piece{kind: ItemShardRecovered, exact: r.exact && s.snap == nil && len(s.ahead) == 0}
		if p.exact && s.placed {
			p.at = wire.Some(s.next)
		}
		return p, true
	case s.over() != nil: // the next look at it tells
	case errors.As(r.err, &cursor):
		s.end = r.err
	default:
		s.end = &SubscriptionLostError{Op: s.op, Err: fmt.Errorf("%w; going on failed: %w", r.lost, r.err)}
	}
	return piece{}, false
}
