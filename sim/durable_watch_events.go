package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// take judges one message of an event stream.
func (x *dwatch) take(m wire.Message) error {
	run := x.c.run
	switch m := m.(type) {
	case *wire.CacheEvent:
		return x.event(m)
	case *wire.ShardMoved:
		run.marks.hit(dmarkMoved)
		return x.resume(m.ResumeFrom)
	case *wire.CacheWatchLagged:
		run.marks.hit(dmarkWatchLagged)
		return x.resume(wire.Some(m.ResumeFrom))
	}
	return fmt.Errorf("not an event: %s", m.MessageType())
}

// resume is told from where to go on: nothing between there and what it has seen may be of what it watches.
func (x *dwatch) resume(from wire.Opt[id.Offset]) error {
	if !from.Set || x.last.Set && from.V <= x.last.V || x.values == nil && from.V < x.next {
		return fmt.Errorf("to resume from %v, after %v", from, x.last)
	}
	x.begun, x.next = true, from.V
	return nil
}

// event judges one change.
func (x *dwatch) event(e *wire.CacheEvent) error {
	run := x.c.run
	if !x.has(e.Key) {
		return fmt.Errorf("a change of key %q", e.Key)
	}
	if x.last.Set && e.Offset <= x.last.V {
		return fmt.Errorf("offset %d follows %d", e.Offset, x.last.V)
	}
	k, err := x.shard.find(e.Key)
	if err != nil {
		return err
	}
	x.last = wire.Some(e.Offset)
	v := x.values
	current := v != nil && e.Offset < v.frontier
	switch {
	case current:
		err = v.value(e)
	case v != nil && v.count.Set && !v.whole:
		return fmt.Errorf("a change at %d after %d values, and %d were to come", e.Offset, len(v.got), v.count.V)
	case v == nil && e.Offset < x.next:
		return fmt.Errorf("a change at %d", e.Offset)
	case v != nil:
		v.whole = true
	}
	if err != nil {
		return err
	}
	if x.begun || !current {
		x.begun, x.next = true, e.Offset+1
	}
	if current {
		x.complete()
	}
	x.got[e.Offset] = true
	run.delivered++
	run.marks.hit(dmarkWatched)
	if !e.Value.Set {
		return k.sawRemoved(e.Offset)
	}
	w, err := k.valueOf(e.Value.V)
	if err != nil {
		return err
	}
	if err := w.endsRight(e.ExpiresAtMillis); err != nil {
		return err
	}
	return k.saw(e.Offset, w, wire.Some(e.ExpiresAtMillis))
}

// value notes a current value.
func (v *watchValues) value(e *wire.CacheEvent) error {
	if !e.Value.Set {
		return fmt.Errorf("%s was removed at %d, among current values", e.Key, e.Offset)
	}
	if _, again := v.got[e.Key]; again {
		return fmt.Errorf("a second current value of %s", e.Key)
	}
	v.got[e.Key] = e.Offset
	v.of.c.run.marks.hit(dmarkRetained)
	if v.count.Set && uint64(len(v.got)) > v.count.V {
		return fmt.Errorf("%d current values, and %d were to come", len(v.got), v.count.V)
	}
	return nil
}
