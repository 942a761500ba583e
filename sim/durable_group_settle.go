package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/felixd/felixd/wire"
)

// unknownOutcome reports whether a refusal leaves open what became of the request.
func unknownOutcome(f *wire.Refusal) bool {
	return f.Code == wire.CodeUnknown || f.Code == wire.CodeStorage && f.Retry != wire.RetryAfter || f.Retry == wire.RetryOutcomeUnknown
}

// groupSend sends a request that touches a record. done is told whether it was done, or refused for certain; neither: nobody knows.
func (t *dconn) groupSend(what string, r *groupRecord, touched *touch, m wire.Message, done func(got answer, f *wire.Refusal) error) bool {
	run := t.c.run
	return t.send(&dask{what: fmt.Sprintf("%s of offset %d of %s", what, r.at, r.shard.log), take: func(_ *dask, got answer) error {
		touched.done = run.world.Steps()
		if f := got.refusal; f != nil {
			if unknownOutcome(f) {
				touched.done = never
				if touched.kind == touchAck || touched.kind == touchDiscard {
					r.maybe = true
				}
				run.marks.hit(dmarkGroupFailed)
			} else {
				touched.done = nothing
			}
		}
		return done(got, got.refusal)
	}, lost: func() { r.maybe = r.maybe || touched.kind == touchAck || touched.kind == touchDiscard }}, wire.AppendJSONFrame(nil, m))
}

// ack finishes a record.
func (t *dconn) ack(r *groupRecord) bool {
	run, s := t.c.run, r.shard
	x := r.touch(touchAck)
	era := s.era
	given := len(r.deliveries) > 0 && r.deliveries[len(r.deliveries)-1].era == era
	late := given && r.deliveries[len(r.deliveries)-1].most < run.world.Now()
	first := 0
	if given {
		first = r.deliveries[len(r.deliveries)-1].sent
	}
	m := &wire.GroupAck{GroupTarget: s.target(run.nextID()), Offset: r.at}
	return t.groupSend("group_ack", r, x, m, func(got answer, f *wire.Refusal) error {
		if era != s.era {
			r.maybe = true // what it was acknowledged for is gone, or not
			return nil
		}
		if f != nil {
			if f.Code == wire.CodeStaleClaim && strings.Contains(f.Message, "no such group") && r.deliveries[len(r.deliveries)-1].life != s.life {
				return nil // its beginning was lost with the process
			}
			crowded := run.plan.Group.Core.MaxInFlight < 1000 && r.deliveries[len(r.deliveries)-1].life != s.life
			if given && (f.Code == wire.CodeStaleClaim && !crowded || f.Code == wire.CodeInvalidRequest) && !r.touched(touchSeek, first, nil) {
				return fmt.Errorf("%s: a late settlement settles, and it was refused: %v", r, f)
			}
			return nil
		}
		if _, err := isMessage[*wire.CacheOK](got); err != nil {
			return err
		}
		if late {
			run.marks.hit(dmarkLateAck)
		}
		if r.touched(touchRedrive|touchSeek, x.sent, nil) {
			r.maybe = true // nobody knows which was first
			return nil
		}
		if r.acked == never {
			r.acked, r.ackedSent = run.world.Steps(), x.sent
		}
		run.marks.hit(dmarkSettled)
		s.noted(x.sent)
		return nil
	})
}

// noted takes that the numbers of all that was handed out before a step are in the log: a settlement waits for them.
func (s *groupShard) noted(before int) {
	if s.book.run.plan.weak() {
		return
	}
	for o := s.log.base; o < s.next; o++ {
		if r := s.records[o]; r != nil {
			for _, d := range r.deliveries {
				if d.got < before && d.life >= 0 && d.era == s.era && d.life == s.life {
					r.durable = max(r.durable, d.number)
				}
			}
		}
	}
}

// fell reports whether a delivery does not stand any more, for certain, for a request that was sent in a step.
func (d *groupDelivery) fell(sent int, now time.Duration) bool {
	r := d.record
	if now > d.most && d.extending == 0 || r.acked < sent || d.given {
		return true
	}
	for _, o := range r.deliveries {
		if o.life == d.life && o.number > d.number && o.got < sent && !r.touched(touchRedrive|touchSeek, min(d.sent, o.sent), nil) {
			return true
		}
	}
	return false
}

// stands reports whether a delivery stands for certain now, for a request of its own.
func (d *groupDelivery) stands(t *dconn, now time.Duration, own *touch) bool {
	r, run := d.record, d.record.shard.book.run
	if d.life < 0 || d.life != r.shard.life || d.era != r.shard.era || d.conn != t || now >= d.least || d.extending > 0 || run.plan.trims() || d.given {
		return false
	}
	return !r.touched(touchAck|touchNack|touchGiveUp|touchDiscard|touchRedrive|touchSeek, d.sent, own) && (d.member == "" || !r.shard.reclaimed(d.member, d.sent))
}

// judge judges the answer to a nack or an extend of a delivery.
func (d *groupDelivery) judge(t *dconn, what string, own *touch, fell bool, life int, f *wire.Refusal) error {
	r, run := d.record, d.record.shard.book.run
	same := life == r.shard.life && d.life == life && d.era == r.shard.era && !run.plan.Group.limited(d.number) && !r.touched(touchRedrive|touchSeek, d.sent, nil)
	switch {
	case f == nil && fell && same:
		return fmt.Errorf("%s: a %s of delivery %d was done, and it did not stand any more", r, what, d.number)
	case f != nil && f.Code == wire.CodeStaleClaim && d.stands(t, run.world.Now(), own):
		return fmt.Errorf("%s: a %s of delivery %d was refused, and it stands until %v: %v", r, what, d.number, d.least, f)
	case f != nil && f.Code == wire.CodeInvalidRequest && same:
		return fmt.Errorf("%s: a %s of delivery %d: %v", r, what, d.number, f)
	case f != nil && f.Code == wire.CodeStaleClaim && fell:
		run.marks.hit(dmarkLateRefused)
	}
	return nil
}

// nack gives a delivery back; named says that it names it.
func (t *dconn) nack(d *groupDelivery, delay time.Duration, named bool) bool {
	run, r := t.c.run, d.record
	x := r.touch(touchNack)
	m := &wire.GroupNack{GroupTarget: r.shard.target(run.nextID()), Offset: r.at, DelayMillis: uint64(delay / time.Millisecond)}
	if named {
		m.Attempts = d.number
	}
	fell, life := named && d.fell(x.sent, run.world.Now()), r.shard.life
	return t.groupSend("group_nack", r, x, m, func(_ answer, f *wire.Refusal) error {
		err := d.judge(t, "nack", x, fell, life, f)
		if f == nil {
			d.given = d.given || named
			run.marks.hit(dmarkNacked)
		}
		return err
	})
}

// extend prolongs a delivery.
func (t *dconn) extend(d *groupDelivery, by time.Duration) bool {
	run, r := t.c.run, d.record
	x := &touch{sent: run.world.Steps()}
	granted := run.plan.Group.visible(by)
	now, life, fell := run.world.Now(), r.shard.life, d.fell(x.sent, run.world.Now())
	least := now + run.claimTime(granted) - claimSlack
	before := d.least
	d.least = min(d.least, least)
	d.extending++
	m := &wire.GroupExtend{GroupTarget: r.shard.target(run.nextID()), Offset: r.at, Attempts: d.number, ExtendMillis: uint64(by / time.Millisecond)}
	return t.send(&dask{what: fmt.Sprintf("group_extend of offset %d of %s", r.at, r.shard.log), take: func(_ *dask, got answer) error {
		d.extending--
		if got.refusal != nil {
			if !unknownOutcome(got.refusal) && d.least == least {
				d.least = before
			}
			return d.judge(t, "extend", x, fell, life, got.refusal)
		}
		a, err := isMessage[*wire.GroupExtended](got)
		switch {
		case err != nil:
			return err
		case a.VisibleMillis != uint64(granted/time.Millisecond):
			return fmt.Errorf("%s: extended by %d ms, want %v", r, a.VisibleMillis, granted)
		}
		run.marks.hit(dmarkExtended)
		if err := d.judge(t, "extend", x, fell, life, nil); err != nil {
			return err
		}
		d.least, d.most = least, run.world.Now()+run.claimTime(granted)+claimSlack
		return nil
	}}, wire.AppendJSONFrame(nil, m))
}
