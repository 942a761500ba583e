package main

import (
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// audit reads every shard of the present life from its beginning to its end: what anybody was told of before it began must be there.
func (r *drun) audit() {
	r.audits = len(r.book.shards)
	life := r.node
	for _, s := range r.book.shards {
		c := r.newClient()
		c.work("audit", func() {
			if c.audit(s, life) && r.node == life {
				r.audits--
			}
		})
	}
	r.auditCaches()
}

// audit reads a shard; false when the life that it was for has ended.
func (c *dclient) audit(s *shardBook, life *dnode) bool {
	known := s.end // by now at least
	if c.run.plan.weak() && !life.listens {
		known = 0 // not known before the node lets anybody in
	}
	for c.run.node == life && !c.run.finished {
		t := c.connect()
		if t == nil || c.run.node != life {
			return false
		}
		if known == 0 {
			known = s.end
		}
		end, done := t.readAll(s)
		t.close()
		if !done {
			if !c.retry() {
				return false
			}
			continue
		}
		if end < known && c.run.node == life {
			c.run.failf("%s: %s ends at %d, and offset %d was acknowledged, delivered or read before", c.name, s, end, known-1)
		}
		if end > 0 {
			c.run.marks.hit(dmarkHistory)
		}
		c.run.marks.hit(dmarkAudit)
		return true
	}
	return false
}

// readAll reads a shard from its beginning until there is nothing more; false when it cannot now.
func (t *dconn) readAll(s *shardBook) (end id.Offset, done bool) {
	run := t.c.run
	from, refused := id.Offset(0), false
	for {
		m := &wire.StreamRead{TenantID: durableTenant, Namespace: namespace, Stream: s.stream.Name.Name, Shard: s.index, From: from, RequestID: run.nextID()}
		if run.world.Rand().IntN(2) == 0 {
			m.MaxRecords = uint32(1 + run.world.Rand().IntN(40))
		}
		more := false
		ok := t.do(&dask{what: fmt.Sprintf("stream_read of %s from %d", s, from), take: func(_ *dask, got answer) (err error) {
			switch a := got.message.(type) {
			case *wire.StreamRecords:
				more = len(a.Records) > 0
				from, err = s.wasRead(from, a)
				return err
			case *wire.SubscribeCursorError:
				if a.Reason != wire.CursorTooOld || a.Requested != from || a.Available <= from {
					return fmt.Errorf("%d is %v, available is %d", a.Requested, a.Reason, a.Available)
				}
				more, from = true, a.Available
				return s.trimmed(a.Available)
			case *wire.ErrorAnswer:
				refused = true
				return nil
			}
			return fmt.Errorf("answered %s", got)
		}}, wire.AppendJSONFrame(nil, m))
		if !ok || refused {
			return from, false
		}
		if !more {
			return from, true
		}
	}
}

// wasRead judges an answer to stream_read: every offset has its record.
func (s *shardBook) wasRead(from id.Offset, a *wire.StreamRecords) (id.Offset, error) {
	for _, r := range a.Records {
		if r.Offset != from {
			return from, fmt.Errorf("offset %d follows, where %d was due", r.Offset, from)
		}
		id, good := isPayload(r.Payload)
		if !good {
			return from, fmt.Errorf("at offset %d lies what nobody published: %x", r.Offset, r.Payload)
		}
		if err := s.saw(r.Offset, id); err != nil {
			return from, err
		}
		from++
	}
	if a.NextOffset != from {
		return from, fmt.Errorf("to read on from %d, after offset %d", a.NextOffset, from)
	}
	return from, nil
}
