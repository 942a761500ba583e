package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// sumBook is one counter: what was added for certain, and what may have been.
type sumBook struct {
	shard *cacheShard
	name  string
	adds  []*sumAdd
	cut   bool // a power cut may have taken what was acknowledged
}

// sumAdd is one counter_add.
type sumAdd struct {
	delta   int64
	sent    int // step
	done    int // step of its acknowledgement; never if there is none
	refused bool
	sum     wire.Opt[int64] // that it was told
}

// lost notes that nobody knows any more what was added.
func (s *sumBook) lost() {
	for _, a := range s.adds {
		a.done = never
	}
	s.cut = true
}

// judge judges a sum that was read by a request of a step, of an add if by is not nil: all that was known then is in it, and nothing that was
// refused.
func (s *sumBook) judge(sum int64, sent int, by *sumAdd) error {
	least, most := int64(0), int64(0)
	for _, a := range s.adds {
		switch {
		case a.refused:
		case a == by || a.done < sent:
			least, most = least+a.delta, most+a.delta
		default:
			least, most = least+min(0, a.delta), most+max(0, a.delta)
		}
	}
	if sum < least || sum > most {
		return fmt.Errorf("%s: counter %.20s is at %d, and what was added makes %d to %d", s.shard, s.name, sum, least, most)
	}
	return nil
}

// counterRequest adds to a counter, or reads it.
func (t *dconn) counterRequest() bool {
	r, b := t.c.run.world.Rand(), t.c.run.caches
	names := t.c.run.plan.Cache.counters()
	name := names[r.IntN(len(names))]
	for _, s := range b.of(name).sums {
		if s.name != name {
			continue
		}
		if r.IntN(3) == 0 {
			return t.sum(s, nil)
		}
		delta := 1 + r.Int64N(1<<20)
		if t.c.run.plan.Cache.Down && r.IntN(3) == 0 {
			delta = -delta
		}
		return t.add(s, delta)
	}
	panic("sim: no such counter")
}

func (t *dconn) add(s *sumBook, delta int64) bool {
	n, run := s.shard.cache.Name, t.c.run
	x := &sumAdd{delta: delta, sent: run.world.Steps(), done: never}
	s.adds = append(s.adds, x)
	m := &wire.CounterAdd{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: s.name, Delta: delta, RequestID: run.nextID()}
	return t.send(&dask{what: fmt.Sprintf("counter_add of %d to %.20s", delta, s.name), take: func(a *dask, got answer) error {
		done, refused, err := s.shard.outcomeOf(a, got)
		x.refused = refused
		if err != nil || !done {
			return err
		}
		sum, err := s.answer(m.RequestID, got)
		if err != nil {
			return err
		}
		if !sum.Set {
			return fmt.Errorf("%s: counter %.20s was added to and has no value", s.shard, s.name)
		}
		x.done, x.sum = run.world.Steps(), sum
		run.marks.hit(dmarkAdded)
		if err := s.twice(x); err != nil {
			return err
		}
		return s.judge(sum.V, x.sent, x)
	}}, wire.AppendJSONFrame(nil, m))
}

// twice finds another add that was told the same sum, which cannot be where all only grows.
func (s *sumBook) twice(x *sumAdd) error {
	for _, a := range s.adds {
		if a != x && a.sum == x.sum && !s.cut && !s.shard.book.run.plan.Cache.Down {
			return fmt.Errorf("%s: two adds to counter %.20s were told the sum %d", s.shard, s.name, x.sum.V)
		}
	}
	return nil
}

func (s *sumBook) answer(request uint64, got answer) (wire.Opt[int64], error) {
	m, err := isMessage[*wire.CounterValue](got)
	if err != nil {
		return wire.Opt[int64]{}, err
	}
	if m.RequestID != request {
		return m.Value, fmt.Errorf("answered under id %d, want %d", m.RequestID, request)
	}
	return m.Value, nil
}

// sum reads a counter; final, when not nil, is called when it could be.
func (t *dconn) sum(s *sumBook, final func()) bool {
	n, run := s.shard.cache.Name, t.c.run
	m := &wire.CounterGet{TenantID: n.Tenant, Namespace: n.Namespace, Cache: n.Name, Key: s.name, RequestID: run.nextID()}
	sent := run.world.Steps()
	return t.send(&dask{what: fmt.Sprintf("counter_get of %.20s", s.name), take: func(_ *dask, got answer) error {
		if got.refusal != nil {
			return nil
		}
		sum, err := s.answer(m.RequestID, got)
		if err == nil {
			err = s.judge(sum.V, sent, nil) // one that is not there is at 0
		}
		if err == nil && final != nil {
			final()
		}
		return err
	}}, wire.AppendJSONFrame(nil, m))
}
