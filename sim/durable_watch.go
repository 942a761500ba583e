package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// dwatch is one watch over all the connections that it takes. From offset since on it misses no change of what it watches, unless it is told
// that it begins anew with current values.
type dwatch struct {
	c        *dclient
	shard    *cacheShard
	name     string // of the key, or the prefix
	prefix   bool
	retained bool // begins with current values
	begun    bool
	next     id.Offset // the first change that it has not seen
	since    id.Offset
	sinceAt  int                // step by which it was so
	got      map[id.Offset]bool // changes that it was told; never iterated
	ahead    bool               // a power cut may have taken the end of what it has got
	pause    time.Duration
	stint    int           // messages after which it goes away by itself; 0: never
	away     time.Duration // for how long
	live     bool          // it has an event stream

	values *watchValues        // that this event stream begins with; nil if it does not
	last   wire.Opt[id.Offset] // of this event stream
}

func (x *dwatch) String() string {
	return fmt.Sprintf("%s: watch of %q (prefix: %v) of %s at %d", x.c.name, x.name, x.prefix, x.shard, x.next)
}

func (x *dwatch) has(key string) bool {
	return key == x.name || x.prefix && strings.HasPrefix(key, x.name)
}

// watching is the life of a watcher; it goes when the world is finished.
func (c *dclient) watching(x *dwatch) {
	x.c, x.got = c, map[id.Offset]bool{}
	c.run.watches = append(c.run.watches, x)
	for {
		t := c.connect()
		if t == nil {
			return
		}
		if x.watch(t) {
			c.vain = 0
			x.receive(t)
		}
		x.live = false
		t.close()
		if x.stint > 0 && !c.run.calm && !c.sleep(x.away) || !c.retry() {
			return
		}
	}
}

// watch asks for the changes from where the watcher is; false when there are none to come.
func (x *dwatch) watch(t *dconn) bool {
	run, n := x.c.run, x.shard.cache.Name
	m := &wire.CacheWatch{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: wire.Some(x.name)}
	if x.prefix {
		m.Key, m.Prefix, m.Shard = wire.Opt[string]{}, wire.Some(x.name), wire.Some(x.shard.index)
	}
	if x.begun {
		m.FromOffset = wire.Some(x.next)
	} else {
		m.Retained = x.retained
	}
	values := &watchValues{of: x, got: map[string]id.Offset{}}
	end := x.shard.end
	granted := false
	ok := t.do(&dask{what: fmt.Sprintf("cache_watch of %q (prefix: %v) from %v", x.name, x.prefix, m.FromOffset), take: func(_ *dask, got answer) error {
		switch a := got.message.(type) {
		case *wire.CacheWatchStarted:
			granted = true
			return x.granted(m, a, end, values)
		case *wire.SubscribeCursorError:
			return x.cannot(m, a)
		case *wire.ErrorAnswer:
			return nil
		}
		return fmt.Errorf("answered %s", got)
	}}, wire.AppendJSONFrame(nil, m))
	if granted && m.FromOffset.Set {
		run.marks.hit(dmarkWatchResumed)
	}
	return ok && granted
}

// granted judges where a watch begins. end is where the log had come to, as everybody knew, when it was asked for.
func (x *dwatch) granted(m *wire.CacheWatch, a *wire.CacheWatchStarted, end id.Offset, values *watchValues) error {
	run := x.c.run
	asked := m.FromOffset
	switch {
	case a.RetainedCount.Set != m.Retained:
		return fmt.Errorf("retained: %v, and the number of values is %v", m.Retained, a.RetainedCount)
	case a.Resnapshot && !asked.Set:
		return fmt.Errorf("a watch from now on begins anew")
	case a.Resnapshot && !mayCompact(x.shard.written) && asked.V <= x.shard.lost: // else it was told of what a power cut took
		return fmt.Errorf("from %d on nothing is there any more, and %d bytes were written in all", asked.V, x.shard.written)
	case (!asked.Set || a.Resnapshot) && a.ResumeOffset < end:
		return fmt.Errorf("begins at %d, and offset %d was there before", a.ResumeOffset, end-1)
	}
	x.last, x.values = wire.Opt[id.Offset]{}, nil
	if !asked.Set || a.Resnapshot { // from here on it misses nothing
		x.since, x.sinceAt = a.ResumeOffset, run.world.Steps()
	} else if x.ahead {
		x.since, x.sinceAt = asked.V, run.world.Steps()
	}
	x.ahead = false
	if a.Resnapshot {
		run.marks.hit(dmarkResnapshot)
	}
	if !a.Resnapshot && !m.Retained {
		x.begun, x.next = true, asked.Or(a.ResumeOffset)
		return nil
	}
	values.frontier, values.count = a.ResumeOffset, a.RetainedCount
	run.snapshots = append(run.snapshots, values)
	x.values = values
	x.complete()
	return nil
}

// complete notes that all current values have come, when they have; before that, a watcher that loses its connection asks for them again.
func (x *dwatch) complete() {
	if v := x.values; v.count.Set && uint64(len(v.got)) == v.count.V {
		v.whole, x.begun, x.next = true, true, v.frontier
	}
}

// cannot judges why a watch cannot go on where it was.
func (x *dwatch) cannot(m *wire.CacheWatch, a *wire.SubscribeCursorError) error {
	if !m.FromOffset.Set || a.Reason != wire.CursorInFuture || a.Requested != m.FromOffset.V || a.Available >= a.Requested || !x.ahead {
		return fmt.Errorf("asked from %v and was told that %d is %v, available is %d", m.FromOffset, a.Requested, a.Reason, a.Available)
	}
	x.c.run.marks.hit(dmarkInFuture)
	x.next, x.ahead = a.Available, false
	x.since, x.sinceAt = x.next, x.c.run.world.Steps() // what was there by then it does not ask for
	return nil
}

// receive takes events until the stream of them is over.
func (x *dwatch) receive(t *dconn) {
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
	for n := 1; x.stint == 0 || n <= x.stint || run.calm; n++ {
		_, body, err := readFrame(p, &rest)
		if err != nil {
			run.world.Note("the events end: %v", err)
			return
		}
		if run.plan.weak() && t.link.client.ctx.Err() != nil {
			return // it comes too late to count, see dsub
		}
		m, err := wire.DecodeJSON(body)
		if err == nil {
			err = x.take(m)
		}
		if err != nil {
			run.failf("%s: %s: %w", t.name, x, err)
			return
		}
		if x.pause > 0 && !run.calm && !x.c.sleep(x.pause) {
			return
		}
	}
}
