package groupcore

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// The list of dead letters and the polls are filled in transcripts, the records in flight by I16.

func TestASettlementThatFindsTooMuchToWriteIsOverloadedAndChangesNothing(t *testing.T) {
	o := small()
	o.MaxUnwritten = 6
	s := newShell(o, 40)
	s.poll(Poll{Max: 40})
	s.patient = true
	for i := range id.Offset(6) { // the first leaves at once, alone
		s.step(&Ack{Ask: s.ask(), Offset: 2*i + 1})
	}
	expect(t, "waiting", s.core.backlog.waiters(), 6)
	for range 10 {
		a := s.do(&Ack{Ask: s.ask(), Offset: 30})
		expect(t, "one more", refused(a.Refusal), "overloaded retry_after")
	}
	expect(t, "in play", s.core.play.byOffset[30] != nil, true)
	s.complete(LogCursors, true)
	s.take()
	expect(t, "there is room again", s.do(&Ack{Ask: s.ask(), Offset: 30}), (*Answer)(nil))
	s.patient = false
	s.settle()
	s.take()
	s.crash([logCount]bool{})
	expect(t, "owed", s.core.Info().Owed, 33)
}

func TestNothingIsHandedOutWhileTooMuchIsToBeWritten(t *testing.T) {
	o := small()
	o.MaxUnwritten = 3
	s := newShell(o, 9)
	s.poll(Poll{Max: 1})
	s.patient = true
	for range 4 {
		s.poll(Poll{Max: 1, Wait: time.Second})
		for len(s.fetches) > 0 {
			s.readOne(0)
			s.take()
		}
	}
	waits := s.poll(Poll{Max: 1, Wait: time.Second})
	expect(t, "the keys of three", len(s.core.backlog.logs[LogCursors].changed), 3)
	expect(t, "waits", waits.times, 0)
	s.patient = false
	s.settle()
	s.take()
	expect(t, "and is served", told(waits.deliver.Records), "5:1")
}

func TestAcksFromBeforeARestartCannotMakeMoreRangesThanFit(t *testing.T) {
	o := small()
	o.MaxInFlight = 5
	s := newShell(o, 1000)
	s.poll(Poll{Max: 1})
	s.crash([logCount]bool{})
	taken := 0
	for i := range id.Offset(400) {
		if s.ack(2*i+1) == nil {
			taken++
		}
	}
	expect(t, "ranges", []int{taken, len(s.core.settled.spans)}, []int{10, 10})
	expect(t, "one that joins two is taken", refused(s.ack(2)), "ok")
	for i := range id.Offset(1000) { // whatever is handed out is taken
		for _, h := range s.records(Poll{Max: 5}) {
			expect(t, fmt.Sprint("ack ", i), refused(s.ack(h.Offset)), "ok")
		}
	}
	expect(t, "cursor", s.core.Info().Cursor, 1000)
}

func TestGivingUpOnWhatANewCoreDidNotHandOutIsBoundedToo(t *testing.T) {
	o := small()
	o.MaxInFlight = 2
	s := newShell(o, 100)
	s.poll(Poll{Max: 1})
	s.crash([logCount]bool{})
	s.patient = true
	taken := 0
	for i := range id.Offset(20) {
		if a := s.do(GiveUp{Ask: s.ask(), Offset: 2 * i}); a == nil {
			taken++
		}
	}
	expect(t, "taken", taken, 4)
}

func TestAsManyDeadLettersAsMayBeInFlightAreRedrivenAtOnce(t *testing.T) {
	o := small()
	o.MaxInFlight = 3
	s := newShell(o, 9)
	for range 3 {
		for _, h := range s.records(Poll{Max: 3}) {
			s.do(GiveUp{Ask: s.ask(), Offset: h.Offset})
		}
	}
	for i, o := range s.deads() {
		want := "ok"
		if i >= 3 {
			want = "overloaded retry_after"
		}
		expect(t, "redrive", refused(s.do(Redrive{Ask: s.ask(), Offset: o}).Refusal), want)
	}
}

// Members that come once and go leave nothing behind.
func TestMembersThatHoldNothingAreForgotten(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Conn: 1, Member: "holder", Max: 1, Visibility: time.Hour})
	for n := range Conn(5 * membersKept) {
		s.poll(Poll{Conn: n + 2, Member: fmt.Sprint("m", n), Max: 1, Reclaim: true})
		s.step(Gone{Conn: n + 2})
	}
	if n := len(s.core.members); n > 2*membersKept {
		t.Errorf("%d members are remembered", n)
	}
	expect(t, "connections", len(s.core.conns), 1)
	expect(t, "who holds something is not", told(s.records(Poll{Conn: 1 << 40, Member: "holder", Max: 1, Reclaim: true})), "0:2")
}

// What retention or a seek leaves in the log goes a few keys at a time, and means nothing from the start.
func TestWhatASeekLeavesBehindIsSweptInSmallWrites(t *testing.T) {
	o := DefaultOptions("g")
	s := newShell(o, 2000)
	for range 2 {
		for _, h := range s.records(Poll{Max: 1000}) {
			if h.Offset%2 == 1 {
				s.ack(h.Offset)
			}
		}
	}
	if n := len(s.tables[LogCursors]); n < 1000 {
		t.Fatalf("%d keys", n)
	}
	s.patient = true
	s.step(Seek{Ask: s.ask(), Start: wire.Start{Kind: wire.StartLatest}})
	answered := s.got[s.token]
	writes := 0
	for ; s.writes[LogCursors] != nil; writes++ {
		if n := s.writes[LogCursors].Count; n > sweptAtOnce+1 {
			t.Fatalf("a write of %d records", n)
		}
		if writes == 2 {
			expect(t, "answered with the first", answered.times, 1)
			s.crash([logCount]bool{true, true})
			expect(t, "moved", s.core.Info(), Info{Exists: true, Cursor: 2000, Tail: 2000})
		}
		s.complete(LogCursors, true)
		s.take()
	}
	expect(t, "keys", len(s.tables[LogCursors]), 1)
	if writes < 3 {
		t.Errorf("%d writes", writes)
	}
}

func TestTheDefaultsArePublishedOnes(t *testing.T) {
	o := DefaultOptions("g")
	expect(t, "visibility, cap, wait, in flight, attempts", []any{o.Visibility, o.MaxVisibility, o.MaxWait, o.MaxInFlight, o.MaxAttempts},
		[]any{30 * time.Second, 43_200 * time.Second, 30 * time.Second, 10_000, 5})
	for failures, pause := range []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
		expect(t, "pause", o.backOff(uint32(failures)), pause)
	}
	o.BackOff = nil
	expect(t, "no pause", o.backOff(3), time.Duration(0))
	for _, spoil := range []func(*Options){
		func(o *Options) { o.Visibility = 0 }, func(o *Options) { o.MaxVisibility = o.Visibility - 1 }, func(o *Options) { o.MaxInFlight = 0 },
		func(o *Options) { o.MaxPolls = 0 }, func(o *Options) { o.WriteRetry = 0 }, func(o *Options) { o.Group = string(make([]byte, 256)) },
	} {
		bad := DefaultOptions("g")
		spoil(&bad)
		expect(t, "panics", panics(bad.verify), true)
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestBrokenDriversArePanics(t *testing.T) {
	c := newShell(small(), 1).core
	for _, in := range []Input{nil, Seek{Start: wire.Start{Kind: 9}}} {
		expect(t, fmt.Sprintf("%T", in), panics(func() { c.Step(0, in) }), true)
	}
	expect(t, "operation", panics(func() { AppendPayload(nil, Record{}) }), true)
	expect(t, "kind", panics(func() { AppendValue(nil, &Entry{}) }), true)
	expect(t, "name", panics(func() { AppendKeyPrefix(nil, string(make([]byte, 256))) }), true)
}

func TestAMemberWhoseRecordsAreBeingReadIsNotForgotten(t *testing.T) {
	s := newShell(small(), 1)
	s.patient = true
	s.poll(Poll{Conn: 1, Member: "reader", Max: 1})
	for n := range Conn(3 * membersKept) {
		s.poll(Poll{Conn: n + 2, Member: fmt.Sprint("m", n), Max: 1})
	}
	s.readOne(0)
	s.patient = false
	s.take()
	expect(t, "reclaimed", told(s.records(Poll{Conn: 1 << 40, Member: "reader", Max: 1, Reclaim: true})), "0:2")
}

// What is left of a group that had settled records which were lost with the end of their log is not written all anew: only what was cut, and
// what means nothing any more goes piece by piece.
func TestACorrectionAfterALostEndIsSmallWrites(t *testing.T) {
	const end = 1500
	s := newShell(DefaultOptions("g"), 2000)
	note := func(e Entry) {
		e.Epoch = 1
		s.tables[LogCursors][string(AppendKey(nil, "g", e.Kind, e.Offset))] = AppendValue(nil, &e)
	}
	note(Entry{Kind: KindPosition, Born: 1})
	for o := id.Offset(1); o < 2000; o += 2 {
		if o == end-1 {
			note(Entry{Kind: KindRange, Offset: o, End: o + 2}) // in which the log ends
		} else if o != end+1 {
			note(Entry{Kind: KindRange, Offset: o, End: o + 1})
		}
	}
	st := NewState("g")
	for i := range s.tables {
		for k, v := range s.tables[i] {
			if err := st.AddUntil([]byte(k), v, end); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.core, s.wakeAt = New(s.opts, s.now, Loaded{State: st, Tail: Tail{End: 2000, Committed: 2000}}), never
	s.patient = true
	s.take()
	for range 1000 {
		w := s.writes[LogCursors]
		if w == nil {
			break
		}
		if w.Count > sweptAtOnce+4 {
			t.Fatalf("a write of %d records", w.Count)
		}
		s.complete(LogCursors, true)
		s.take()
	}
	s.crash([logCount]bool{})
	spans := s.core.settled.spans
	expect(t, "ranges that are left", len(spans), end/2)
	expect(t, "the last one", spans[len(spans)-1], span{end - 1, end, true})
}
