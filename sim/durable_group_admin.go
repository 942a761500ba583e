package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// administering looks after the group: how far it is, what it gave up on, and where it is to be.
func (c *dclient) administering() {
	run := c.run
	r := run.world.Rand()
	c.each(run.plan.Group.Polls, func(t *dconn) bool {
		if run.plan.Group.Late && !c.rest(50*time.Millisecond) {
			return false
		}
		s := run.groups.shards[r.IntN(len(run.groups.shards))]
		ok := true
		switch n := r.IntN(12); {
		case n < 4:
			_, ok = t.describe(s)
		case n < 9:
			ok = t.handleDead(s, 3)
		case n < 10 && run.plan.Group.Seeks:
			ok = t.seek(s)
		case s.next > 0:
			if x := s.records[id.Offset(r.Uint64N(uint64(s.next)))]; x != nil {
				ok = t.giveUp(x)
			}
		}
		return ok && t.idle(0) && c.sleep(20*time.Millisecond)
	})
}

// describe asks how far the group is; nil if it was refused. It waits for the answer.
func (t *dconn) describe(s *groupShard) (info *wire.GroupInfo, ok bool) {
	m := &wire.GroupDescribe{GroupTarget: s.target(t.c.run.nextID())}
	limit := uint64(t.c.run.plan.Group.Core.MaxInFlight)
	ok = t.do(&dask{what: "group_describe of " + s.log.String(), take: func(_ *dask, got answer) (err error) {
		if got.refusal != nil {
			return nil
		}
		if info, err = isMessage[*wire.GroupInfo](got); err != nil {
			return err
		}
		if info.Committed.V > info.Tail || info.InFlight > limit {
			return fmt.Errorf("%s: at %d of %d with %d in flight, and %d may be", s, info.Committed.V, info.Tail, info.InFlight, limit)
		}
		return nil
	}}, wire.AppendJSONFrame(nil, m))
	return info, ok
}

// deadLetters asks what the group gave up on, and waits for the answer.
func (t *dconn) deadLetters(s *groupShard) (list []id.Offset, ok bool) {
	run := t.c.run
	m := &wire.GroupDeadLetters{GroupTarget: s.target(run.nextID())}
	sent := run.world.Steps()
	ok = t.do(&dask{what: "group_dead_letters of " + s.log.String(), take: func(_ *dask, got answer) error {
		if got.refusal != nil {
			return nil
		}
		a, err := isMessage[*wire.GroupDeadLetterList](got)
		if err != nil {
			return err
		}
		list = a.Offsets
		return s.listed(list, sent)
	}}, wire.AppendJSONFrame(nil, m))
	return list, ok
}

const touchRemoves = touchAck | touchDiscard | touchRedrive

// listed judges the dead letters that a list has which was asked for in a step: all that are known, and none without a cause.
func (s *groupShard) listed(list []id.Offset, sent int) error {
	run := s.book.run
	core := &run.plan.Group.Core
	if len(list) > core.MaxDeadLetters {
		return fmt.Errorf("%s: %d dead letters, %d are the most", s, len(list), core.MaxDeadLetters)
	}
	for o := id.Offset(0); o < s.next; o++ {
		r := s.records[o]
		if r != nil && r.listed < sent && !r.touched(touchRemoves, r.listed, nil) && !slices.Contains(list, o) {
			return fmt.Errorf("%s: no dead letter any more, and it was one in step %d", r, r.listed)
		}
	}
	for _, o := range list {
		r := s.at(o)
		switch {
		case r.acked < sent && !r.touched(touchRedrive|touchSeek, r.ackedSent, nil):
			return fmt.Errorf("%s: a dead letter, and its settlement was acknowledged in step %d", r, r.acked)
		case !r.gaveUp && core.MaxAttempts == 0:
			return fmt.Errorf("%s: a dead letter, and nobody asked for that", r)
		case !r.gaveUp && s.lost == 0 && uint32(len(r.deliveries)) < core.MaxAttempts && !r.touched(touchRedrive, 0, nil):
			return fmt.Errorf("%s: a dead letter after %d deliveries, and it has %d", r, len(r.deliveries), core.MaxAttempts)
		}
		if !r.touched(touchRemoves, sent, nil) && r.listed == never {
			r.listed = run.world.Steps()
			run.marks.hit(dmarkDead)
		}
	}
	return nil
}

// giveUp asks the group to give up on a record.
func (t *dconn) giveUp(r *groupRecord) bool {
	run := t.c.run
	x, era := r.touch(touchGiveUp), r.shard.era
	r.gaveUp = true
	return t.groupSend("group_dead_letter", r, x, &wire.GroupDeadLetter{GroupTarget: r.shard.target(run.nextID()), Offset: r.at}, func(got answer, f *wire.Refusal) error {
		if f != nil {
			return nil
		}
		if _, err := isMessage[*wire.CacheOK](got); err != nil {
			return err
		}
		run.marks.hit(dmarkGivenUp)
		if era == r.shard.era && !r.touched(touchRemoves, x.sent, nil) {
			r.listed = run.world.Steps()
		}
		return nil
	})
}

// handleDead lists the dead letters, and has some of them handed out again, or forgotten.
func (t *dconn) handleDead(s *groupShard, most int) bool {
	list, ok := t.deadLetters(s)
	for _, o := range list[:min(len(list), most)] {
		r := s.at(o)
		redrives := 0
		for _, x := range r.touches {
			if x.kind == touchRedrive {
				redrives++
			}
		}
		if redrives < 2 && t.c.run.world.Rand().IntN(3) > 0 {
			ok = ok && t.redrive(r)
		} else {
			ok = ok && t.discard(r)
		}
	}
	return ok
}

func (t *dconn) redrive(r *groupRecord) bool {
	run := t.c.run
	x, era := r.touch(touchRedrive), r.shard.era
	known := r.listed
	return t.groupSend("group_redrive", r, x, &wire.GroupRedrive{GroupTarget: r.shard.target(run.nextID()), Offset: r.at}, func(got answer, f *wire.Refusal) error {
		switch {
		case f != nil && f.Code == wire.CodeInvalidRequest && known != never && known < x.sent && era == r.shard.era && !run.plan.trims() && !r.touched(touchRemoves, known, x):
			return fmt.Errorf("%s: a dead letter since step %d, and it cannot be redriven: %v", r, known, f)
		case f != nil:
			return nil
		}
		if _, err := isMessage[*wire.CacheOK](got); err != nil {
			return err
		}
		run.marks.hit(dmarkRedriven)
		if r.listed <= x.sent {
			r.listed = never
		}
		if r.acked != never && !r.touched(touchAck, x.sent, nil) { // it has to be settled again
			r.acked, r.maybe = never, false
		}
		r.discarded = r.discarded && r.touched(touchDiscard, x.sent, nil)
		return nil
	})
}

func (t *dconn) discard(r *groupRecord) bool {
	run := t.c.run
	x := r.touch(touchDiscard)
	return t.groupSend("group_discard", r, x, &wire.GroupDiscard{GroupTarget: r.shard.target(run.nextID()), Offset: r.at}, func(got answer, f *wire.Refusal) error {
		if f != nil {
			return nil
		}
		if _, err := isMessage[*wire.CacheOK](got); err != nil {
			return err
		}
		r.discarded = true
		run.marks.hit(dmarkDiscarded)
		if r.listed <= x.sent {
			r.listed = never
		}
		return nil
	})
}

// seek moves the group somewhere.
func (t *dconn) seek(s *groupShard) bool {
	run, r := t.c.run, t.c.run.world.Rand()
	m := &wire.GroupSeek{GroupTarget: s.target(run.nextID()), IfNew: r.IntN(3) == 0}
	m.Start.Kind = []wire.StartKind{wire.StartLatest, wire.StartEarliest, wire.StartOffset}[r.IntN(3)]
	if m.Start.Kind == wire.StartOffset {
		m.Start.Offset = id.Offset(r.Uint64N(uint64(s.log.end) + 1))
	}
	x := s.touch(touchSeek, "")
	return t.send(&dask{what: "group_seek of " + s.log.String(), lost: s.sought, take: func(_ *dask, got answer) error {
		if f := got.refusal; f != nil {
			if unknownOutcome(f) {
				s.sought()
			} else {
				x.done = nothing
			}
			return nil
		}
		a, err := isMessage[*wire.GroupPosition](got)
		switch {
		case err != nil:
			return err
		case !a.Moved && !m.IfNew:
			return fmt.Errorf("%s: it did not move", s)
		case !a.Moved:
			x.done = nothing
			return nil
		case m.Start.Kind == wire.StartOffset && a.Offset != m.Start.Offset:
			return fmt.Errorf("%s: moved to %d, want %d", s, a.Offset, m.Start.Offset)
		}
		run.marks.hit(dmarkSought)
		x.done = run.world.Steps()
		s.moved(a.Offset, x)
		return nil
	}}, wire.AppendJSONFrame(nil, m))
}

// sought notes that the group may have been moved: nothing below any end is certain.
func (s *groupShard) sought() {
	s.era++
	s.excused = never
}

// moved notes that the group is at an offset since a seek: what lies behind it is handed out again.
func (s *groupShard) moved(to id.Offset, x *touch) {
	s.era++
	if s.excused != never {
		s.excused = to
	}
	for o := id.Offset(0); o < s.next; o++ {
		if r := s.records[o]; r != nil {
			r.maybe = r.touched(touchAck|touchDiscard, x.sent, nil) && (r.maybe || r.acked != never || r.discarded)
			r.acked, r.durable = never, 0
			r.discarded = r.discarded && r.touched(touchDiscard, x.sent, nil)
		}
	}
}
