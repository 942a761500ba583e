package sessionactor

import (
	"testing"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func groupOf(requestID uint64) wire.GroupTarget {
	return wire.GroupTarget{TenantID: tenant, Namespace: namespace, Stream: "orders", Group: "workers", RequestID: requestID}
}

func pollFor(most uint32, wait uint64) *wire.GroupPoll {
	return &wire.GroupPoll{GroupTarget: groupOf(1), MaxRecords: most, WaitMillis: wait}
}

// poll asks for records and returns them.
func (l *line) poll(m *wire.GroupPoll) []wire.GroupRecord {
	l.t.Helper()
	l.send(m)
	return l.polled(m.RequestID)
}

// polled is the answer to a poll.
func (l *line) polled(requestID uint64) []wire.GroupRecord {
	l.t.Helper()
	f := l.next()
	m, ok := f.message.(*wire.GroupRecords)
	if !ok || m.RequestID != requestID {
		l.t.Fatalf("poll %d was answered %s", requestID, f.payload)
	}
	return m.Records
}

// done asks for what is answered cache_ok.
func (l *line) done(m wire.Message) {
	l.t.Helper()
	f := l.ask(m)
	if ok, is := f.message.(*wire.CacheOK); !is || ok.RequestID != wire.RequestIDOf(m).V {
		l.t.Fatalf("%+v was answered %s", m, f.payload)
	}
}

// stale asks for what is refused, since the claim does not stand.
func (l *line) stale(m wire.Message, retry wire.Retry) {
	l.t.Helper()
	if r := refused(l.t, l.ask(m)); r.Code != wire.CodeStaleClaim || r.Retry != retry {
		l.t.Fatalf("%+v was refused %+v", m, r)
	}
}

func ack(o id.Offset) *wire.GroupAck { return &wire.GroupAck{GroupTarget: groupOf(2), Offset: o} }

func nack(o id.Offset, attempts uint32) *wire.GroupNack {
	return &wire.GroupNack{GroupTarget: groupOf(3), Offset: o, Attempts: attempts}
}

func extend(o id.Offset, attempts uint32, ms uint64) *wire.GroupExtend {
	return &wire.GroupExtend{GroupTarget: groupOf(4), Offset: o, Attempts: attempts, ExtendMillis: ms}
}

func (l *line) describe() *wire.GroupInfo {
	l.t.Helper()
	f := l.ask(&wire.GroupDescribe{GroupTarget: groupOf(5)})
	m, ok := f.message.(*wire.GroupInfo)
	if !ok {
		l.t.Fatalf("describe was answered %s", f.payload)
	}
	return m
}

// handed checks which records were handed out, and as which delivery.
func handed(t testing.TB, list []wire.GroupRecord, attempts uint32, want ...id.Offset) {
	t.Helper()
	if len(list) != len(want) {
		t.Fatalf("%d records were handed out, want %d: %+v", len(list), len(want), list)
	}
	for i, r := range list {
		if r.Offset != want[i] || r.Attempts != attempts {
			t.Fatalf("record %d is at %d as delivery %d, want %d as %d", i, r.Offset, r.Attempts, want[i], attempts)
		}
	}
}
