package sessionactor

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// From the client's bytes to the disk and back, over a restart: what was acknowledged is there under the same offsets, a numbered batch
// that is sent again lands once, and what commits said of an entity is known.
//
// mission 371, REP-10, REP-11
//
// matrix J1, J4
func TestWhatWasAcknowledgedOutlivesTheBroker(t *testing.T) {
	disk := newSiteDisk()
	for life := range 2 {
		x := disk.stored(t, setting{})
		c := x.connect()
		l := dial(t, c, today())
		if life == 0 {
			l.raw(batchTo("orders", 1, wire.AckPerBatch, "a", "b"))
			if f := l.next(); !f.ack.HasOffset || f.ack.Offset != 0 {
				t.Fatalf("the first publish was answered %+v", f.ack)
			}
		}
		for _, q := range []struct {
			payload string
			want    string
		}{
			{"n", `{"type":"publish_ok","request_id":6,"offset":2}`},
			{"other", `{"type":"publish_refused","request_id":6,"reason":"sequence_reused","message":"the sequence was used for other payloads; nothing was appended"}`},
		} {
			l.raw(numberedTo("orders", 6, 11, 0, q.payload))
			if f := l.next(); string(f.payload) != q.want {
				t.Errorf("life %d: %s was answered %s", life, q.payload, f.payload)
			}
		}
		if life == 0 {
			if f := l.ask(publishIf("orders", 9, "x")); string(f.payload) != `{"type":"publish_refused","request_id":3,"reason":{"offset_mismatch":{"tail":3}},"message":"the next offset of the shard is 3; nothing was appended"}` {
				t.Errorf("publish_if was answered %s", f.payload)
			}
			if f := l.ask(commitTo("orders")); string(f.payload) != `{"type":"commit_ok","request_id":4,"offset":3}` {
				t.Errorf("commit was answered %s", f.payload)
			}
		}
		if f := l.ask(&wire.StateGet{TenantID: tenant, Namespace: namespace, Stream: "orders", EntityKey: []byte("e"), Key: "k", RequestID: 5}); string(f.payload) != `{"type":"state_value","value":"dg==","version":3,"as_of":3,"request_id":5}` {
			t.Errorf("life %d: state_get was answered %s", life, f.payload)
		}
		m, ok := l.ask(readFrom(0, 1)).message.(*wire.StreamRecords)
		if !ok || len(m.Records) != 4 || m.Records[3].Offset != 3 || string(m.Records[3].Payload) != "paid" || m.NextOffset != 4 {
			t.Errorf("life %d: stream_read was answered %+v", life, m)
		}
		s := l.subscribe(c, subscribeAt("orders", 1))
		for i, want := range []string{"b", "n", "paid"} {
			f := s.next()
			e, err := wire.DecodeEventBatch(f.flags, f.payload)
			p, _, _ := e.Next()
			if err != nil || string(p) != want || e.BaseOffset != id.Offset(1+i) {
				t.Errorf("life %d: event %q at %d, %v", life, p, e.BaseOffset, err)
			}
		}
		x.close()
	}
}

// STR-04: a replay begins on disk and goes on in memory, with a small window and a policy that drops. All that was there when it began
// arrives, in order and without a gap, whatever is published meanwhile; of what came later each gap shows.
func TestAReplayDeliversEveryRecordBelowWhereItIsLive(t *testing.T) {
	disk := newSiteDisk()
	x := disk.stored(t, setting{ringBatches: 4, ringBytes: 1 << 20})
	l := dial(t, x.connect(), today())
	const history = 300
	for i := range history {
		l.publish("orders", fmt.Sprintf("%06d", i))
	}
	c := x.connect(func(c *memConn) { c.window = 256 })
	reader := dial(t, c, today())
	f := reader.ask(asking("orders", wire.StartEarliest, 4))
	begun, ok := f.message.(*wire.Subscribed)
	if !ok || begun.StartOffset.V != 0 || begun.LiveOffset.V != history {
		t.Fatalf("answered %s", f.payload)
	}
	h := want(t, c.toClient, "the event stream")
	s := subscription{line: &line{t: t, s: h, h: h}}
	s.next()
	for i := range 50 {
		l.publish("orders", fmt.Sprintf("%06d", history+i))
	}
	next, last := id.Offset(0), id.Offset(0)
	for last < history-1 {
		f := s.next()
		e, err := wire.DecodeEventBatch(f.flags, f.payload)
		if err != nil {
			t.Fatalf("%v: %q", err, f.payload)
		}
		if lost := uint64(e.BaseOffset-next) - e.SkippedBefore; lost != 0 {
			t.Fatalf("%d records are missing before %d", lost, e.BaseOffset)
		}
		for p, _, ok := e.Next(); ok; p, _, ok = e.Next() {
			if string(p) != fmt.Sprintf("%06d", e.BaseOffset) {
				t.Fatalf("%q at %d", p, e.BaseOffset)
			}
			last = e.BaseOffset
			e.BaseOffset++
		}
		next = e.BaseOffset
	}
}
