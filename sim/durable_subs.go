package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// dsub is one subscription over all the connections that it takes: from where it began on, it must get each record once and in order.
type dsub struct {
	c     *dclient
	shard *shardBook
	start wire.Start
	begun bool      // it knows where it began
	next  id.Offset // the record that is due
	ahead bool      // a power cut may have taken what it has got
	pause time.Duration
	live  bool // it has an event stream
}

// subscribing is the life of a subscriber; it goes when the world is finished.
func (c *dclient) subscribing(s *shardBook, start wire.Start) {
	x := &dsub{c: c, shard: s, start: start}
	if c.run.world.Rand().IntN(3) == 0 {
		x.pause = time.Duration(1 + c.run.world.Rand().Int64N(int64(10*time.Millisecond)))
	}
	c.run.subs = append(c.run.subs, x)
	for {
		t := c.connect()
		if t == nil {
			return
		}
		if x.subscribe(t) {
			c.vain = 0
			x.receive(t)
		}
		x.live = false
		t.close()
		if !c.retry() {
			return
		}
	}
}

// subscribe asks for the events from where the subscriber is; false when there are none to come.
func (x *dsub) subscribe(t *dconn) bool {
	run, s := x.c.run, x.shard
	m := &wire.Subscribe{TenantID: durableTenant, Namespace: namespace, Stream: s.stream.Name.Name, Shard: wire.Some(s.index), Start: wire.Some(x.start)}
	if x.begun {
		m.Start = wire.Some(wire.Start{Kind: wire.StartOffset, Offset: x.next})
	}
	granted := false
	end := s.end
	ok := t.do(&dask{what: fmt.Sprintf("subscribe to %s from %v", s, m.Start.V), take: func(_ *dask, got answer) error {
		switch a := got.message.(type) {
		case *wire.Subscribed:
			granted = true
			return x.granted(m.Start.V, a, end)
		case *wire.SubscribeCursorError:
			return x.cannot(m.Start.V, a)
		case *wire.ErrorAnswer:
			return nil
		}
		return fmt.Errorf("answered %s", got)
	}}, wire.AppendJSONFrame(nil, m))
	if granted && m.Start.V.Kind == wire.StartOffset && x.begun {
		run.marks.hit(dmarkResumed)
	}
	return ok && granted
}

// granted judges where a subscription begins. end is where the log had come to, as everybody knew, when it was asked for.
func (x *dsub) granted(from wire.Start, a *wire.Subscribed, end id.Offset) error {
	if !a.StartOffset.Set || !a.LiveOffset.Set || a.LiveOffset.V < a.StartOffset.V {
		return fmt.Errorf("granted from %v, live from %v", a.StartOffset, a.LiveOffset)
	}
	start := a.StartOffset.V
	switch {
	case from.Kind == wire.StartOffset && start != from.Offset:
		return fmt.Errorf("asked for %d and begins at %d", from.Offset, start)
	case from.Kind == wire.StartLatest && start < end:
		return fmt.Errorf("begins at %d and should at the end, and offset %d is there already", start, end-1)
	case from.Kind == wire.StartEarliest && start > 0:
		if err := x.shard.trimmed(start); err != nil {
			return err
		}
	}
	if a.LiveOffset.V < end && !x.c.run.plan.weak() {
		return fmt.Errorf("live from %d, and offset %d is there already", a.LiveOffset.V, end-1)
	}
	x.begun, x.next, x.ahead = true, start, false
	return nil
}

// cannot judges why a subscription cannot go on where it was.
func (x *dsub) cannot(from wire.Start, a *wire.SubscribeCursorError) error {
	run := x.c.run
	if from.Kind != wire.StartOffset || a.Requested != from.Offset {
		return fmt.Errorf("asked from %v and was told that %d is %v", from, a.Requested, a.Reason)
	}
	switch a.Reason {
	case wire.CursorTooOld:
		if a.Available <= a.Requested {
			return fmt.Errorf("offset %d is too old, and %d is not", a.Requested, a.Available)
		}
		run.marks.hit(dmarkTooOld)
		if err := x.shard.trimmed(a.Available); err != nil {
			return err
		}
	case wire.CursorInFuture:
		if !x.ahead || a.Available >= a.Requested {
			return fmt.Errorf("offset %d is said to be in the future of a log that ends at %d", a.Requested, a.Available)
		}
		run.marks.hit(dmarkInFuture)
	}
	x.begun, x.next = true, a.Available
	return nil
}

// receive takes events until the stream of them is over.
func (x *dsub) receive(t *dconn) {
	run := x.c.run
	p, ok := t.link.client.oneWay.pop(t.link.client.ctx)
	if !ok {
		return
	}
	defer p.CancelRead()
	var rest []byte
	if _, body, err := readFrame(p, &rest); err != nil {
		return
	} else if m, err := wire.DecodeJSON(body); err != nil || m.MessageType() != "event_stream_hello" {
		run.failf("%s: an event stream begins with %q", t.name, body)
		return
	}
	x.live = true
	for {
		flags, body, err := readFrame(p, &rest)
		if err != nil {
			run.world.Note("the events end: %v", err)
			return
		}
		if run.plan.weak() && t.link.client.ctx.Err() != nil {
			return // it comes too late to count: what is left after a power cut was looked at by now
		}
		if err := x.take(flags, body); err != nil {
			run.failf("%s: subscription to %s at %d: %w", t.name, x.shard, x.next, err)
			return
		}
		if x.pause > 0 && !run.calm && !x.c.sleep(x.pause) {
			return
		}
	}
}

// take judges one frame.
func (x *dsub) take(flags wire.Flags, body []byte) error {
	if flags == 0 {
		return x.last(body)
	}
	e, err := wire.DecodeEventBatch(flags, body)
	if err != nil {
		return err
	}
	if !e.HasOffset || e.BaseOffset != x.next || e.SkippedBefore != 0 {
		return fmt.Errorf("events from %d on (%v), %d skipped before", e.BaseOffset, e.HasOffset, e.SkippedBefore)
	}
	for p, _, ok := e.Next(); ok; p, _, ok = e.Next() {
		id, good := isPayload(p)
		if !good {
			return fmt.Errorf("a payload that nobody published: %x", p)
		}
		if err := x.shard.saw(x.next, id); err != nil {
			return err
		}
		x.next++
		x.c.run.delivered++
	}
	return nil
}

// last judges the message at the end of an event stream: it goes on where the subscriber is.
func (x *dsub) last(body []byte) error {
	m, err := wire.DecodeJSON(body)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *wire.ShardMoved:
		x.c.run.marks.hit(dmarkMoved)
		if !m.ResumeFrom.Set || m.ResumeFrom.V != x.next {
			return fmt.Errorf("shard_moved, to resume from %v", m.ResumeFrom)
		}
	case *wire.SubscriptionLagged:
		x.c.run.marks.hit(dmarkLagged)
		if m.ResumeFrom != x.next {
			return fmt.Errorf("subscription_lagged, to resume from %d", m.ResumeFrom)
		}
	default:
		return fmt.Errorf("not an event: %q", body)
	}
	return nil
}
