package sessionactor

import (
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func readFrom(o id.Offset, request uint64) *wire.StreamRead {
	return &wire.StreamRead{TenantID: tenant, Namespace: namespace, Stream: "orders", From: o, RequestID: request}
}

// Byte by byte, what the requests about a log are answered.
func TestReadsOfALogAreAnsweredAsTheProtocolSays(t *testing.T) {
	clock := actors.NewManualClock(time.UnixMicro(1_000_000))
	x, _ := durable(t, setting{clock: clock})
	l := dial(t, x.connect(), today())
	l.publish("orders", "a", "b")
	clock.Advance(time.Second)
	l.publish("orders", "c")
	at := func(micros uint64) *wire.OffsetForTime {
		return &wire.OffsetForTime{TenantID: tenant, Namespace: namespace, Stream: "orders", AtMicros: micros, RequestID: 2}
	}
	for _, c := range []struct {
		asked wire.Message
		want  string
	}{
		{readFrom(1, 1), `{"type":"stream_records","records":[{"offset":1,"payload":"Yg==","timestamp_micros":1000000},{"offset":2,"payload":"Yw==","timestamp_micros":2000000}],"next_offset":3,"request_id":1}`},
		{readFrom(3, 1), `{"type":"stream_records","records":[],"next_offset":3,"request_id":1}`},
		{readFrom(4, 1), `{"type":"subscribe_cursor_error","reason":"in_future","requested":4,"available":3}`},
		{at(0), `{"type":"offset_value","offset":0,"request_id":2}`},
		{at(1_500_000), `{"type":"offset_value","offset":2,"request_id":2}`},
		{at(2_500_000), `{"type":"offset_value","request_id":2}`},
	} {
		if f := l.ask(c.asked); string(f.payload) != c.want {
			t.Errorf("%+v was answered %s", c.asked, f.payload)
		}
	}
}

func TestAReadGetsAsManyRecordsAsTheBrokerAllowsAndIsToldWhereToGoOn(t *testing.T) {
	x, _ := durable(t, setting{change: func(o *Options) { o.ReadRecords = 1 }})
	l := dial(t, x.connect(), today())
	l.publish("orders", "a", "b")
	m, err := wire.DecodeJSON(l.ask(readFrom(0, 1)).payload)
	if got, ok := m.(*wire.StreamRecords); err != nil || !ok || len(got.Records) != 1 || got.NextOffset != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestAStateIsReadByEntityAndKey(t *testing.T) {
	x, _ := durable(t, setting{})
	l := dial(t, x.connect(), today())
	get := func(key string) string {
		return string(l.ask(&wire.StateGet{TenantID: tenant, Namespace: namespace, Stream: "orders", EntityKey: []byte("e"), Key: key, RequestID: 5}).payload)
	}
	if got := get("k"); got != `{"type":"state_value","value":null,"request_id":5}` {
		t.Errorf("before the first commit: %s", got)
	}
	b := commitBatch(commitTo("orders"))
	b.Base = 7
	if err := x.shardOf("orders", 0).State.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if got := get("k"); got != `{"type":"state_value","value":"dg==","version":7,"as_of":7,"request_id":5}` {
		t.Errorf("after it: %s", got)
	}
	if got := get("none"); got != `{"type":"state_value","value":null,"as_of":7,"request_id":5}` {
		t.Errorf("a key that nobody put: %s", got)
	}
}

// A read that waits for the disk holds up the answers behind it on its own stream, whose order clients count on, and nothing else: what it
// asks of shards is done meanwhile, and other streams are answered.
func TestAReadThatWaitsForTheDiskHoldsUpNobodyElse(t *testing.T) {
	x, log := durable(t, setting{})
	c := x.connect()
	l, other := dial(t, c, today()), dial(t, c, today())
	l.publish("orders", "a")
	entered, resume := log.stall()
	defer resume()
	l.send(readFrom(0, 1))
	want(t, entered, "the read waits")
	l.raw(batchTo("orders", 2, wire.AckPerBatch, "b"))
	x.counts("felix_published_records_total", 2)
	other.publish("orders", "c")
	resume()
	if m, ok := l.next().message.(*wire.StreamRecords); !ok || len(m.Records) != 1 { // up to the tail as it was when it began
		t.Errorf("the read was answered %+v", m)
	}
	if f := l.next(); f.ack.RequestID != 2 || f.ack.Refusal != nil {
		t.Errorf("then came %+v", f.ack)
	}
}

// So many reads of a connection, and so many of a node, are under way; the others wait for their places and are all answered.
func TestReadsUnderWayAreBounded(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"connection": func(o *Options) { o.Reads = 2 },
		"node":       func(o *Options) { o.Reads, o.NodeReads = 9, actors.NewCredit(1, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			x, log := durable(t, setting{change: change})
			c := x.connect()
			entered, resume := log.stall()
			defer resume()
			var lines []*line
			dial(t, c, today()).publish("orders", "a")
			for range 5 {
				l := dial(t, c, today())
				for n := range uint64(3) { // those of one stream are read one after the other
					l.send(readFrom(0, n))
				}
				lines = append(lines, l)
			}
			x.counts("felix_requests_total", float64(6+1+15)) // auth, the publish, the reads
			want(t, entered, "a read waits")
			want(t, entered, "another one waits")
			select {
			case <-entered:
				t.Error("a third one reads")
			default:
			}
			resume()
			for _, l := range lines {
				for n := range uint64(3) {
					if m, ok := l.next().message.(*wire.StreamRecords); !ok || m.RequestID != n {
						t.Errorf("read %d was answered %+v", n, m)
					}
				}
			}
			eventually(t, "the places are free again", func() bool { _, n := x.opts.NodeReads.InUse(); return n == 0 })
		})
	}
}

// A client that goes away lets what it had waiting for the disk come back: the read, and those behind it.
func TestAReadEndsWithItsStreamAndWithItsConnection(t *testing.T) {
	for name, end := range map[string]func(*memConn, *line){
		"stream":     func(_ *memConn, l *line) { l.w.CancelWrite() },
		"connection": func(c *memConn, _ *line) { c.leave() },
	} {
		t.Run(name, func(t *testing.T) {
			x, log := durable(t, setting{})
			c := x.connect()
			l := dial(t, c, today())
			l.publish("orders", "a")
			entered, resume := log.stall()
			defer resume()
			l.send(readFrom(0, 1))
			l.send(readFrom(0, 2))
			want(t, entered, "the read waits")
			end(c, l)
			x.balanced() // with the disk still not answering
			eventually(t, "the places are free again", func() bool { _, n := x.opts.NodeReads.InUse(); return n == 0 })
		})
	}
}

// What the disk does not give is refused by type and reported; the stream goes on, and the read can be repeated.
func TestDamageUnderAReadIsRefusedByTypeAndReported(t *testing.T) {
	events := &told{}
	x, log := durable(t, setting{change: func(o *Options) { o.Events = events }})
	l := dial(t, x.connect(), today())
	l.publish("orders", "a")
	log.fail(errDisk)
	for _, m := range []wire.Message{readFrom(0, 1), &wire.OffsetForTime{TenantID: tenant, Namespace: namespace, Stream: "orders", RequestID: 1}} {
		if r := refused(t, l.ask(m)); r.Code != wire.CodeStorage || r.Retry != wire.RetryRetry {
			t.Errorf("%T was answered %+v", m, r)
		}
	}
	if n := events.of("log_read_failed"); n != 2 || x.metric("felix_log_read_failures_total") != 2 {
		t.Errorf("%d events", n)
	}
	log.fail(nil)
	if m, ok := l.ask(readFrom(0, 1)).message.(*wire.StreamRecords); !ok || len(m.Records) != 1 {
		t.Errorf("healed: %+v", m)
	}
}

// A read that panics costs its connection, and leaves nobody without an answer and nothing held.
func TestAReadThatPanicsCostsItsConnection(t *testing.T) {
	x, _ := durable(t, setting{})
	e := x.opts.Table.Get(stream("orders", 1).Name)
	target, _ := e.Shard(0)
	h := *target.Shard
	h.History = wrecked{}
	target.Shard = &h
	e.SetShards([]shardactor.Target{target})
	c := x.connect()
	l := dial(t, c, today())
	l.raw(wire.AppendJSONFrame(wire.AppendJSONFrame(nil, readFrom(0, 1)), readFrom(0, 2))) // at once: the first one ends it all
	closedWith(t, c, CloseInternal)
	x.balanced()
	x.parked(0, 0)
}

// A shard whose log ends under a read says so, and that it is worth repeating.
func TestAReadOfALogThatWasClosedIsToBeRepeated(t *testing.T) {
	x, log := durable(t, setting{})
	l := dial(t, x.connect(), today())
	l.publish("orders", "a")
	entered, resume := log.stall()
	defer resume()
	h := x.shardOf("orders", 0)
	l.send(readFrom(0, 1))
	want(t, entered, "the read waits")
	x.desire(streams("wide")...)
	eventually(t, "the shard serves no more", func() bool { return !h.Serving() })
	resume()
	if r := refused(t, l.next()); r.Code != wire.CodeShardUnavailable || r.Retry != wire.RetryRetry {
		t.Errorf("answered %+v", r)
	}
}

// wrecked is a history that nobody has written.
type wrecked struct{ storage.History }
