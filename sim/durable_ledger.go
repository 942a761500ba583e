package main

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// entities are those whose state commits change.
var entities = []string{"anna", "bert", "cleo"}

// agreeing publishes only where it believes the log to end: several do, and each offset has one winner.
func (c *dclient) agreeing() {
	run := c.run
	s := run.book.of(ledgerStream, 0)
	expected := id.Offset(0)
	c.each(run.plan.Requests/2, func(t *dconn) bool {
		ids, region := c.makeRecords(s, 1+run.world.Rand().IntN(2))
		request, at := run.nextID(), expected
		ok := t.do(&dask{what: fmt.Sprintf("publish_if to %s at %d", s, at), take: func(a *dask, got answer) error {
			tail, err := s.conditional(a, request, at, ids, got)
			if err == nil {
				expected = tail
			}
			return err
		}}, wire.AppendJSONFrame(nil, &wire.PublishIf{TenantID: durableTenant, Namespace: namespace, Stream: s.stream.Name.Name, Records: region, Count: uint32(len(ids)),
			ExpectedOffset: at, RequestID: request}))
		return ok && c.sleep(4*time.Millisecond)
	})
}

// each does something so many times, over as many connections as that takes.
func (c *dclient) each(n int, do func(t *dconn) bool) {
	for n > 0 {
		t := c.connect()
		if t == nil {
			return
		}
		for n > 0 {
			n--
			if !do(t) {
				break
			}
		}
		t.close()
	}
}

// conditional judges the answer to a write that was to be at an offset, and returns where the next one may be.
func (s *shardBook) conditional(a *dask, request uint64, at id.Offset, ids []uint64, got answer) (id.Offset, error) {
	run := s.book.run
	o, err := run.judge(request, got)
	switch {
	case err != nil:
		return at, err
	case o.acked && (!o.offset.Set || o.offset.V != at):
		return at, fmt.Errorf("a write for offset %d was acknowledged at %v", at, o.offset)
	case o.acked:
		run.marks.hit(dmarkWon)
		return at.Add(uint64(len(ids))), s.acked(at, ids, a.sent)
	case !o.refused:
		return at, nil
	}
	for _, id := range ids {
		if err := s.book.refused(id); err != nil {
			return at, err
		}
	}
	if o.reason == nil {
		return at, nil
	}
	if o.reason.Kind != wire.RefusedOffsetMismatch || o.reason.Tail == at {
		return at, fmt.Errorf("a write for offset %d was refused: %v, the log ends at %d", at, o.reason.Kind, o.reason.Tail)
	}
	run.marks.hit(dmarkMismatch)
	return o.reason.Tail, nil
}

// committing changes the state of entities, and reads it.
func (c *dclient) committing() {
	run, rand := c.run, c.run.world.Rand()
	s := run.book.of(ledgerStream, 0)
	c.each(run.plan.Requests, func(t *dconn) bool {
		entity := entities[rand.IntN(len(entities))]
		if rand.IntN(3) == 0 {
			return t.state(s, entity, nil)
		}
		return t.commit(s, entity) && (rand.IntN(2) == 0 || c.sleep(4*time.Millisecond))
	})
}

// commit appends a record and makes it the state of an entity.
func (t *dconn) commit(s *shardBook, entity string) bool {
	run := t.c.run
	ids, region := t.c.makeRecords(s, 1)
	event, _, _ := region.Next()
	run.book.records[ids[0]].entity = entity
	m := &wire.Commit{TenantID: durableTenant, Namespace: namespace, Stream: s.stream.Name.Name, EntityKey: []byte(entity), Event: event,
		Changes: []wire.Change{{Key: "last", Value: event[:8]}}, RequestID: run.nextID()}
	conditional := run.world.Rand().IntN(3) == 0
	if conditional {
		m.ExpectedOffset = wire.Some(s.end)
	}
	return t.do(&dask{what: fmt.Sprintf("commit of %s to %s", entity, s), take: func(a *dask, got answer) error {
		if _, ok := got.message.(*wire.CommitOK); ok {
			run.marks.hit(dmarkCommit)
		}
		if conditional {
			_, err := s.conditional(a, m.RequestID, m.ExpectedOffset.V, ids, got)
			return err
		}
		return s.published(a, m.RequestID, ids, got)
	}}, wire.AppendJSONFrame(nil, m))
}

// state reads the state of an entity: a value that a commit gave it, and none older than one that was read before. final, when not nil, is
// told of the version.
func (t *dconn) state(s *shardBook, entity string, final func(version wire.Opt[id.Offset]) error) bool {
	run := t.c.run
	return t.do(&dask{what: "state_get of " + entity, take: func(_ *dask, got answer) error {
		if got.refusal != nil {
			if final != nil {
				return fmt.Errorf("answered %s", got)
			}
			return nil
		}
		m, err := isMessage[*wire.StateValue](got)
		if err != nil {
			return err
		}
		run.marks.hit(dmarkState)
		if m.AsOf.V < s.asOf && !run.plan.trims() || m.Version.Set && m.Version.V > m.AsOf.V {
			return fmt.Errorf("%s: version %v as of %v, and something was read as of %d before", s, m.Version, m.AsOf, s.asOf)
		}
		s.asOf = m.AsOf.V
		if before, ok := s.versions[entity]; ok && (!m.Version.Set || m.Version.V < before) && !run.plan.trims() {
			return fmt.Errorf("%s: %s is of version %v, and was of %d before", s, entity, m.Version, before)
		}
		if m.Version.Set {
			s.versions[entity] = m.Version.V
			if err := s.isState(entity, m); err != nil {
				return err
			}
		}
		if final != nil {
			return final(m.Version)
		}
		return nil
	}}, wire.AppendJSONFrame(nil, &wire.StateGet{TenantID: durableTenant, Namespace: namespace, Stream: s.stream.Name.Name, EntityKey: []byte(entity), Key: "last", RequestID: run.nextID()}))
}

// isState checks that a value is the one that the commit at its version gave.
func (s *shardBook) isState(entity string, m *wire.StateValue) error {
	value, ok := isPayload(m.Value.V)
	if !ok || len(m.Value.V) != 8 {
		return fmt.Errorf("%s has a value that no commit gave it: %x", entity, m.Value.V)
	}
	if r := s.book.records[value]; r == nil || r.entity != entity {
		return fmt.Errorf("%s has the value %x, which is not of a commit for it", entity, value)
	}
	return s.saw(m.Version.V, value)
}
