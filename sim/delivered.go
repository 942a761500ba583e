package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/felixd/felixd/wire"
)

// take judges one frame of events.
func (s *subscription) take(flags wire.Flags, body []byte) error {
	if flags == 0 {
		m, err := wire.DecodeJSON(body)
		if err != nil {
			return fmt.Errorf("events that do not decode: %w", err)
		}
		e, is := m.(*wire.EventBatchMessage)
		if !is || e.Stream != s.name.Name || e.TenantID != s.name.Tenant {
			return fmt.Errorf("not events of %s: %q", s.name, body)
		}
		for p, rest, ok := e.Records.Next(); ok; p, rest, ok = rest.Next() {
			if err := s.record(p); err != nil {
				return err
			}
		}
		return nil
	}
	e, err := wire.DecodeEventBatch(flags, body)
	if err != nil {
		return fmt.Errorf("events that do not decode: %w", err)
	}
	if flags.Has(wire.FlagEventBatch) && e.SubscriptionID != s.id {
		return fmt.Errorf("events of subscription %d", e.SubscriptionID)
	}
	for p, _, ok := e.Next(); ok; p, _, ok = e.Next() {
		if err := s.record(p); err != nil {
			return err
		}
	}
	return nil
}

// record judges one record: real, of this shard, of one incarnation, in order, once.
func (s *subscription) record(p []byte) error {
	id, ok := isPayload(p)
	if !ok {
		return fmt.Errorf("a payload that nobody published: %x", p)
	}
	truth := s.c.to.truth
	at, ok := truth.records[id]
	switch {
	case !ok:
		return fmt.Errorf("record %x, which no shard has stepped", id)
	case at.life.shard.name != s.name || at.life.shard.index != s.shard:
		return fmt.Errorf("record %x of %s/%d", id, at.life.shard.name, at.life.shard.index)
	case s.life == nil:
		s.life, s.first, s.next = at.life, at.at, at.at
	case s.life != at.life:
		return fmt.Errorf("record %x of another incarnation", id)
	case at.at < s.next:
		return fmt.Errorf("record %x at %d, where %d was due: twice or out of order", id, at.at, s.next)
	}
	if s.lost(at.at) {
		return fmt.Errorf("record %x at %d, which was counted as lost", id, at.at)
	}
	if gap := at.at - s.next; gap > 0 {
		if missing, ok := s.allLost(s.next, at.at); !ok {
			return fmt.Errorf("record %x at %d came, and %d before it is missing and in no hole", id, at.at, missing)
		}
		s.gaps += gap
		truth.lost += gap
		s.c.run.marks.hit(markDropSlow)
	}
	s.next = at.at + 1
	s.c.run.delivered++
	if s.c.run.heard != nil {
		s.c.run.heard(s, id)
	}
	return nil
}

// ended notes the end of the event stream.
func (s *subscription) ended(err error) {
	s.over, s.err = true, err
	if !errors.Is(err, io.EOF) && !errors.Is(err, errLost) && !errors.Is(err, errReset) {
		s.c.run.failf("%s: subscription %d to %s/%d: %v", s.c.name, s.id, s.name, s.shard, err)
		return
	}
	if errors.Is(err, io.EOF) && s.life != nil && s.life.over != 0 {
		if missing, ok := s.allLost(s.next, len(s.life.records)); !ok {
			s.c.run.failf("%s: subscription %d to %s/%d ended at record %d of %d, and %d is in no hole", s.c.name, s.id, s.name, s.shard, s.next, len(s.life.records), missing)
		}
	}
}

// settle judges a subscription once nothing moves any more: what was published after it was granted has come.
func (s *subscription) settle() error {
	truth := s.c.to.truth
	l := s.life
	if l == nil {
		l = s.onlyLife()
	}
	if l == nil {
		return nil // several incarnations could have been its
	}
	live := !s.over && !s.c.gone() && (s.begun || s.c.orphans == 0)
	if live && l.over != 0 {
		return fmt.Errorf("%s: subscription %d to %s/%d outlives its shard", s.c.name, s.id, s.name, s.shard)
	}
	if live && s.begins != nil {
		return s.exact()
	}
	if live && s.life != nil {
		if missing, ok := s.allLost(s.next, len(l.records)); !ok {
			return fmt.Errorf("%s: subscription %d to %s/%d got %d of %d records, and %d is in no hole", s.c.name, s.id, s.name, s.shard, s.next, len(l.records), missing)
		}
	}
	end := s.first
	if s.life == nil {
		if !live {
			return nil
		}
		end = len(l.records)
	}
	missed := 0
	for at := 0; at < end; at++ {
		p := s.c.run.sent[l.records[at]]
		if p.begun > s.granted || s.earliest && l.batches <= s.c.run.plan.Limits.RingBatches {
			missed++
		}
	}
	if missed > 0 && s.life == nil {
		return fmt.Errorf("%s: subscription %d to %s/%d got nothing and missed %d records", s.c.name, s.id, s.name, s.shard, missed)
	}
	if truth.lost += missed; missed > 0 {
		s.c.run.marks.hit(markDropSlow)
	}
	return nil
}

// onlyLife is the incarnation that the subscription must be of, nil when more than one was there between question and answer.
func (s *subscription) onlyLife() (only *life) {
	for _, l := range s.c.to.truth.shard(s.name, s.shard).lives {
		if l.born <= s.granted && (l.over == 0 || l.over >= s.asked) {
			if only != nil {
				return nil
			}
			only = l
		}
	}
	return only
}
