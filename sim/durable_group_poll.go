package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// groupPoll is one poll.
type groupPoll struct {
	shard      *groupShard
	most       uint32
	wait       time.Duration
	visibility time.Duration // 0: the default
	member     string
	reclaim    bool
}

func (s *groupShard) target(request uint64) wire.GroupTarget {
	n := s.log.stream.Name
	return wire.GroupTarget{TenantID: n.Tenant, Namespace: n.Namespace, Stream: n.Name, Shard: s.log.index, Group: s.book.run.plan.Group.Name, RequestID: request}
}

// poll asks for records and waits for the answer; ok is false when the stream is over.
func (t *dconn) poll(p groupPoll) (list []*groupDelivery, ok bool) {
	run, s := t.c.run, p.shard
	m := &wire.GroupPoll{GroupTarget: s.target(run.nextID()), MaxRecords: p.most, WaitMillis: uint64(p.wait / time.Millisecond), Reclaim: p.reclaim,
		VisibilityMillis: uint64(p.visibility / time.Millisecond)}
	if p.member != "" {
		m.Consumer = wire.Some(p.member)
	}
	var claims *touch
	if p.reclaim {
		claims = s.touch(touchReclaim, p.member)
	}
	sent, at, life, end, era := run.world.Steps(), run.world.Now(), s.life, s.log.end, s.era
	ok = t.do(&dask{what: fmt.Sprintf("group_poll of %s for %d within %v", s.log, p.most, p.wait), lost: func() { s.lost++ }, take: func(_ *dask, got answer) error {
		if claims != nil {
			claims.done = run.world.Steps()
		}
		if got.refusal != nil {
			return pollRefused(got)
		}
		a, err := isMessage[*wire.GroupRecords](got)
		switch {
		case err != nil:
			return err
		case a.RequestID != m.RequestID:
			return fmt.Errorf("answered under id %d, want %d", a.RequestID, m.RequestID)
		case len(a.Records) > int(p.most):
			return fmt.Errorf("answered with %d records, and %d were asked for", len(a.Records), p.most)
		}
		for i := range a.Records {
			d := &groupDelivery{conn: t, member: p.member, sent: sent, got: run.world.Steps(), life: life, era: era}
			if life != s.life {
				d.life = -1
			}
			v := run.claimTime(run.plan.Group.visible(p.visibility))
			d.least, d.most = at+v-claimSlack, run.world.Now()+v+claimSlack
			if err := s.handed(d, &a.Records[i], len(a.Records)); err != nil {
				return err
			}
			if a.Records[i].Offset >= end && p.wait > 0 {
				run.marks.hit(dmarkPollWoken)
			}
			list = append(list, d)
		}
		return nil
	}}, wire.AppendJSONFrame(nil, m))
	return list, ok
}

// pollRefused judges a refusal: there is nothing wrong with what was asked.
func pollRefused(got answer) error {
	if f := got.refusal; f.Code == wire.CodeInvalidRequest || f.Code == wire.CodeStaleClaim {
		return fmt.Errorf("refused: %v", f)
	}
	return nil
}

// handed judges one record of an answer, and keeps it.
func (s *groupShard) handed(d *groupDelivery, g *wire.GroupRecord, among int) error {
	run := s.book.run
	id, good := isPayload(g.Payload)
	if !good {
		return fmt.Errorf("at offset %d is what nobody published: %.16x", g.Offset, g.Payload)
	}
	if err := s.log.saw(g.Offset, id); err != nil {
		return err
	}
	r := s.at(g.Offset)
	run.world.Note("handed %s, delivery %d", r, g.Attempts)
	d.record, d.number = r, g.Attempts
	limit := run.plan.Group.Core.MaxAttempts
	switch {
	case d.number == 0 || limit > 0 && d.number > limit:
		return fmt.Errorf("%s: handed out with %d attempts, %d are the most", r, d.number, limit)
	case d.number > 1 && among > 1:
		return fmt.Errorf("%s: delivery %d came with %d others", r, d.number, among-1)
	case g.SkippedBefore > 0 && !run.plan.trims():
		return fmt.Errorf("%s: %d records before it are said to be gone", r, g.SkippedBefore)
	case r.acked < d.sent && !r.touched(touchRedrive|touchSeek, r.ackedSent, nil):
		return fmt.Errorf("%s: handed out by a poll of step %d, and its settlement was acknowledged in step %d", r, d.sent, r.acked)
	case d.number <= r.durable && !run.plan.Group.limited(d.number) && !r.touched(touchRedrive|touchSeek, 0, nil):
		return fmt.Errorf("%s: delivery %d, and delivery %d is known to be noted", r, d.number, r.durable)
	}
	for _, other := range r.deliveries {
		if err := d.beside(other); err != nil {
			return err
		}
	}
	r.deliveries = append(r.deliveries, d)
	s.countDelivery(d)
	return nil
}

func (s *groupShard) countDelivery(d *groupDelivery) {
	m := &s.book.run.marks
	m.hit(dmarkHanded)
	if d.number == 1 {
		return
	}
	m.hit(dmarkRedelivered)
	list := d.record.deliveries
	if len(list) < 2 {
		return
	}
	last := list[len(list)-2]
	if last.life == d.life && !d.record.touched(touchNack, last.sent, nil) {
		if d.member != "" && d.member == last.member && last.conn != d.conn && s.reclaimed(d.member, last.got) {
			m.hit(dmarkReclaimed)
		} else if last.most < s.book.run.world.Now() {
			m.hit(dmarkLapsed)
		}
	}
}

// beside judges two deliveries of one record: in one life of its shard only one stands at a time, and each has a number of its own.
func (d *groupDelivery) beside(o *groupDelivery) error {
	r, run := d.record, d.record.shard.book.run
	if d.life < 0 || d.life != o.life || d.era != o.era || r.touched(touchRedrive|touchSeek, min(d.sent, o.sent), nil) {
		return nil
	}
	limited := run.plan.Group.limited(d.number) || run.plan.Group.limited(o.number)
	switch {
	case d.number == o.number && !limited:
		return fmt.Errorf("%s: two deliveries have the number %d", r, d.number)
	case d.sent > o.got && d.number < o.number:
		return fmt.Errorf("%s: delivery %d followed delivery %d", r, d.number, o.number)
	}
	if o.number > d.number || r.touched(touchNack|touchGiveUp, min(d.sent, o.sent), nil) || o.member != "" && r.shard.reclaimed(o.member, o.sent) {
		return nil
	}
	if limited && d.number == o.number && d.sent <= o.got {
		return nil // nobody knows which was first
	}
	if now := run.world.Now(); now < o.least {
		return fmt.Errorf("%s: delivery %d at %v, while delivery %d stands until %v", r, d.number, now, o.number, o.least)
	}
	return nil
}
