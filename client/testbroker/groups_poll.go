package testbroker

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// groupPoll hands records out, waiting for them as long as the client says. The stream waits meanwhile.
func (b *Broker) groupPoll(s *Stream, m *wire.GroupPoll) {
	l := b.shardLog(s, m.Namespace, m.Stream, m.Shard)
	if l == nil {
		return
	}
	if m.MaxRecords == 0 || m.Consumer.Set && (m.Consumer.V == "" || len(m.Consumer.V) > 128) {
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "a poll asks for a record at least, and the name of a member has 1 to 128 bytes"))
		return
	}
	end := time.NewTimer(time.Duration(m.WaitMillis) * time.Millisecond)
	defer end.Stop()
	for over := false; ; {
		records, next, more := b.handOut(s, l, m)
		if len(records) > 0 || over {
			b.answerGroup(s, m, &wire.GroupRecords{RequestID: m.RequestID, Records: records})
			return
		}
		due := time.NewTimer(time.Hour)
		if !next.IsZero() {
			due.Reset(time.Until(next) + time.Millisecond)
		}
		select {
		case <-more:
		case <-due.C:
		case <-end.C:
			over = true
		case <-s.stream.Context().Done():
			due.Stop()
			return
		}
		due.Stop()
	}
}

// answerGroup sends an answer, unless a test has it lost.
func (b *Broker) answerGroup(s *Stream, request, answer wire.Message) {
	if b.options.OnGroupAnswer == nil || !b.options.OnGroupAnswer(s, request, answer) {
		s.Send(answer)
	}
}

// handOut claims what there is now: reclaimed records, else one that was delivered before, else new ones.
func (b *Broker) handOut(s *Stream, l *log, m *wire.GroupPoll) (records []wire.GroupRecord, next time.Time, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, now := l.group(m.Group), time.Now()
	conn, known := g.conns[s.Conn]
	if !known {
		conn = len(g.conns) + 1
		g.conns[s.Conn] = conn
	}
	g.lapse(now, b.options.GroupMaxAttempts)
	g.trim(l)
	again := g.reclaim(m, conn)
	due, next := g.owed(now)
	if len(again) == 0 {
		again = due[:min(1, len(due))]
	}
	var skipped uint64
	for _, at := range again[:min(len(again), int(m.MaxRecords))] {
		records = append(records, b.claim(s, l, g, m, at, 0, now, conn))
	}
	for len(again) == 0 && len(records) < int(m.MaxRecords) {
		i := l.find(g.fresh)
		if i == len(l.records) {
			break
		}
		at := l.records[i].offset
		skipped, g.fresh = at.Since(g.fresh), at.Add(1)
		records = append(records, b.claim(s, l, g, m, at, skipped, now, conn))
	}
	return records, next, l.more
}

// claim hands one record out.
func (b *Broker) claim(s *Stream, l *log, g *group, m *wire.GroupPoll, at id.Offset, skipped uint64, now time.Time, conn int) wire.GroupRecord {
	c := g.claims[at]
	if c == nil {
		c = &claim{}
		g.claims[at] = c
	}
	visibility := b.options.GroupVisibility
	if m.VisibilityMillis > 0 {
		visibility = time.Duration(m.VisibilityMillis) * time.Millisecond
	}
	c.attempts++
	c.held, c.until, c.member, c.conn = true, now.Add(visibility), m.Consumer.V, conn
	r := l.records[l.find(at)]
	record := wire.GroupRecord{Offset: at, Payload: r.payload, Attempts: c.attempts}
	if s.Grant.Features.Has(wire.FeatureGroupSkipped) {
		record.SkippedBefore = skipped
	}
	if s.Grant.Features.Has(wire.FeatureGroupPublisher) {
		record.Publisher = wire.Some("tester")
	}
	if s.Grant.Features.Has(wire.FeatureRecordTimestamps) {
		record.TimestampMicros = wire.Some(uint64(r.at.UnixMicro()))
	}
	return record
}
