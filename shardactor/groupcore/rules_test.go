package groupcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// I1, I2, L11; mission 263
func TestI1AckAboveAnOpenRecordLeavesTheCursorAndIsNotForgotten(t *testing.T) {
	s := newShell(small(), 6)
	expect(t, "poll", told(s.records(Poll{Max: 6})), "0:1 1:1 2:1 3:1 4:1 5:1")
	for _, o := range []id.Offset{0, 1, 2, 4} {
		expect(t, "ack", refused(s.ack(o)), "ok")
	}
	expect(t, "cursor", s.core.Info().Cursor, 3)
	s.crash([logCount]bool{})
	expect(t, "cursor after a restart", s.core.Info().Cursor, 3)
	expect(t, "first poll", told(s.records(Poll{Max: 6})), "3:2") // 4 was acknowledged
	expect(t, "ack 3", refused(s.ack(3)), "ok")
	expect(t, "cursor", s.core.Info().Cursor, 5)
	expect(t, "second poll", told(s.records(Poll{Max: 6})), "5:2")
}

// I3; mission 264, 265
func TestI3ADeadConsumersRecordsAreOwedAgainAfterTheirVisibility(t *testing.T) {
	s := newShell(DefaultOptions("g"), 10)
	s.poll(Poll{Conn: 1, Max: 10})
	s.wait(30*time.Second - 1)
	expect(t, "before", told(s.records(Poll{Conn: 2, Max: 10})), "")
	s.wait(1)
	for i := range 10 {
		h := s.records(Poll{Conn: 2, Max: 10})
		if len(h) != 1 || h[0].Offset != id.Offset(i) || h[0].Attempts != 2 {
			t.Fatalf("poll %d gets %s", i, told(h))
		}
	}
}

// I4; mission 270
func TestI4ALateAckSettlesAndTheHoldersIsADuplicate(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Conn: 1, Max: 1})
	s.wait(10 * time.Second)
	expect(t, "again", told(s.records(Poll{Conn: 2, Max: 1})), "0:2")
	expect(t, "late ack", refused(s.ack(0)), "ok")
	expect(t, "holder's ack", refused(s.ack(0)), "ok")
	expect(t, "settled", s.core.Counts().Settled, 1)
}

// I5; mission 249
func TestI5ALateNackOrExtendIsRefusedAndTheHolderKeepsTheRecord(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Conn: 1, Max: 1})
	s.wait(10 * time.Second)
	expect(t, "late nack", refused(s.nack(0, 1)), "stale_claim fatal")
	expect(t, "again", told(s.records(Poll{Conn: 2, Max: 1})), "0:2")
	expect(t, "late nack", refused(s.nack(0, 1)), "stale_claim fatal")
	expect(t, "late extend", refused(s.do(Extend{Ask: s.ask(), Conn: 1, Offset: 0, Attempts: 1, Extend: time.Hour}).Refusal), "stale_claim fatal")
	expect(t, "in flight", s.core.Info().InFlight, 1)
	expect(t, "nobody else", told(s.records(Poll{Conn: 3, Max: 1})), "")
}

// I6; mission 266, 267, 268
func TestI6APoisonRecordIsGivenUpAfterFiveFailuresAndTheQueueMovesOn(t *testing.T) {
	s := newShell(small(), 3)
	s.poll(Poll{Max: 1})
	for n := uint32(1); n <= 5; n++ {
		expect(t, "nack", refused(s.nack(0, n)), "ok")
		s.wait(4 * time.Second)
		h := s.records(Poll{Max: 3})
		if n < 5 && (len(h) != 1 || h[0] != Handed{Offset: 0, Attempts: n + 1}) {
			t.Fatalf("after %d failures: %s", n, told(h))
		}
		if n == 5 {
			expect(t, "the queue moves on", told(h), "1:1 2:1")
		}
	}
	expect(t, "dead letters", s.deads(), []id.Offset{0})
	expect(t, "cursor", s.core.Info().Cursor, 1)
}

// I7
func TestI7ACrashBetweenListingAndFinishingLeavesTheRecordListedAndOwedAndListsItOnce(t *testing.T) {
	s := newShell(small(), 2)
	s.poll(Poll{Max: 1})
	s.patient = true
	s.step(GiveUp{Ask: s.ask(), Offset: 0})
	s.complete(LogDeadLetters, true)
	s.take()
	s.crash([logCount]bool{})
	s.patient = false
	expect(t, "listed", s.deads(), []id.Offset{0})
	expect(t, "and owed", told(s.records(Poll{Max: 1})), "0:2")
	expect(t, "give up again", refused(s.do(GiveUp{Ask: s.ask(), Offset: 0}).Refusal), "ok")
	expect(t, "listed once", s.deads(), []id.Offset{0})
	s.crash([logCount]bool{})
	expect(t, "and finished", told(s.records(Poll{Max: 1})), "1:1")
}

// I8; mission 255
func TestI8ARedrivenRecordIsOwedAcrossACrashUntilItIsFinished(t *testing.T) {
	s := newShell(small(), 2)
	s.poll(Poll{Max: 2})
	s.ack(1)
	s.do(GiveUp{Ask: s.ask(), Offset: 0})
	expect(t, "redrive", refused(s.do(Redrive{Ask: s.ask(), Offset: 0}).Refusal), "ok")
	expect(t, "cursor is not moved", s.core.Info().Cursor, 2)
	s.crash([logCount]bool{})
	expect(t, "listed", len(s.deads()), 0)
	expect(t, "owed", s.core.Info().Owed, 1)
	expect(t, "delivered", told(s.records(Poll{Max: 2})), "0:1")
	expect(t, "ack", refused(s.ack(0)), "ok")
	s.crash([logCount]bool{})
	expect(t, "not again", told(s.records(Poll{Max: 2})), "")
}

// I9
func TestI9DiscardOfAnUnknownOffsetIsAnsweredWithoutEffect(t *testing.T) {
	s := newShell(small(), 2)
	s.poll(Poll{Max: 1})
	before := s.wrote
	expect(t, "discard", refused(s.do(Discard{Ask: s.ask(), Offset: 77}).Refusal), "ok")
	expect(t, "written", s.wrote-before, 0)
}

// I10
func TestI10AnAckAtOrPastTheEndIsRefusedAndTheLaterRecordStillDelivered(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	expect(t, "ack at the end", refused(s.ack(1)), "invalid_request fatal")
	expect(t, "ack past it", refused(s.ack(9)), "invalid_request fatal")
	s.publish(1)
	expect(t, "delivered", told(s.records(Poll{Max: 2})), "1:1")
}

// I11, I12
func TestI11AnAckFromBeforeARebuildIsAcceptedAndOneForANewerUndeliveredRecordIsNot(t *testing.T) {
	s := newShell(small(), 3)
	s.poll(Poll{Max: 2})
	s.crash([logCount]bool{})
	s.publish(2)
	expect(t, "below the end first seen", refused(s.ack(1)), "ok")
	expect(t, "never handed out by anybody, yet below it", refused(s.ack(2)), "ok")
	expect(t, "newer", refused(s.ack(3)), "stale_claim retry")
	expect(t, "poll", told(s.records(Poll{Max: 9})), "0:2")
	expect(t, "poll", told(s.records(Poll{Max: 9})), "3:1 4:1")
}

// I13; mission 256
func TestI13ASeekBackVoidsClaimsAndKeepsDeadLetters(t *testing.T) {
	s := newShell(small(), 5)
	s.poll(Poll{Max: 5})
	s.ack(0)
	s.ack(1)
	s.do(GiveUp{Ask: s.ask(), Offset: 2})
	a := s.seek(at(1), false)
	expect(t, "seek", []any{a.Refusal, a.Offset, a.Moved}, []any{(*wire.Refusal)(nil), 1, true})
	expect(t, "at or above", refused(s.ack(3)), "stale_claim retry")
	expect(t, "at or above", refused(s.nack(3, 1)), "stale_claim fatal")
	expect(t, "below", refused(s.ack(0)), "ok")
	expect(t, "dead letters", s.deads(), []id.Offset{2})
	expect(t, "poll", told(s.records(Poll{Max: 9})), "1:1 2:1 3:1 4:1")
}

// I14
func TestI14AnAckRacingASeekCannotMoveTheNewCursor(t *testing.T) {
	s := newShell(small(), 5)
	s.poll(Poll{Max: 5})
	s.patient = true
	s.step(&Ack{Ask: s.ask(), Offset: 0}) // on its way when the seek comes
	s.step(Seek{Ask: s.ask(), Start: at(3)})
	s.step(&Ack{Ask: s.ask(), Offset: 3})
	expect(t, "ack behind the seek", refused(s.got[s.token].answer.Refusal), "stale_claim retry")
	s.patient = false
	s.settle()
	s.take()
	expect(t, "cursor", s.core.Info().Cursor, 3)
	s.crash([logCount]bool{})
	expect(t, "cursor", s.core.Info().Cursor, 3)
}

// I15
func TestI15ASeekIfNewCreatesAGroupOnceAndNeverMovesIt(t *testing.T) {
	s := newShell(small(), 5)
	a := s.seek(wire.Start{Kind: wire.StartLatest}, true)
	expect(t, "created", []any{a.Offset, a.Moved}, []any{5, true})
	s.publish(2)
	a = s.seek(wire.Start{Kind: wire.StartEarliest}, true)
	expect(t, "there already", []any{a.Offset, a.Moved}, []any{5, false})
	expect(t, "poll", told(s.records(Poll{Max: 9})), "5:1 6:1")
	s.crash([logCount]bool{})
	expect(t, "still there", s.seek(wire.Start{Kind: wire.StartEarliest}, true).Moved, false)
}

// I16
func TestI16AtTheCapAPollIsAnsweredEmptyAfterItsWaitOrWokenByAnAck(t *testing.T) {
	o := small()
	o.MaxInFlight = 3
	s := newShell(o, 9)
	expect(t, "fill", told(s.records(Poll{Max: 9})), "0:1 1:1 2:1")
	first, second := s.poll(Poll{Conn: 2, Max: 9, Wait: time.Second}), s.poll(Poll{Conn: 3, Max: 9, Wait: 2 * time.Second})
	s.wait(time.Second)
	expect(t, "after its wait", told(first.deliver.Records), "")
	expect(t, "capped", s.core.Counts().PollsCapped, 1)
	s.ack(1)
	expect(t, "woken", told(second.deliver.Records), "3:1")
}

// I17; the bound of what retention takes
func TestI17RetentionSkipsWhatTheGroupHadNotReachedAndCountsIt(t *testing.T) {
	s := newShell(small(), 9)
	s.poll(Poll{Max: 2})
	s.base = 5
	s.step(Trimmed{Base: 5})
	expect(t, "cursor", s.core.Info().Cursor, 5)
	expect(t, "skipped", s.core.Counts().Skipped, 5)
	s.holes[6] = true
	expect(t, "poll", told(s.records(Poll{Max: 3})), "5:1(5) 7:1(1)")
	expect(t, "skipped", s.core.Counts().Skipped, 6)
	s.publish(4)
	s.holes[9], s.holes[10], s.holes[11] = true, true, true
	expect(t, "poll", told(s.records(Poll{Max: 9})), "8:1 12:1(3)")
	expect(t, "late ack of a record that is gone", refused(s.ack(1)), "ok")
	s.base = 0
	s.crash([logCount]bool{})
	expect(t, "cursor", s.core.Info().Cursor, 5)
}

// I18
func TestI18APollStopsAtTheCommittedMark(t *testing.T) {
	s := newShell(small(), 2)
	s.end = 5
	s.step(Tail{End: 5, Committed: 3})
	expect(t, "poll", told(s.records(Poll{Max: 9})), "0:1 1:1 2:1")
	waiting := s.poll(Poll{Max: 9, Wait: time.Second})
	s.step(Tail{End: 5, Committed: 4})
	expect(t, "committed meanwhile", told(waiting.deliver.Records), "3:1")
}

// I19
func TestI19ALostTailOfTheCursorLogGivesThePreviousCursorAndSkipsNothing(t *testing.T) {
	s := newShell(small(), 4)
	s.poll(Poll{Max: 4})
	s.ack(0)
	s.patient = true
	s.step(&Ack{Ask: s.ask(), Offset: 1})
	s.step(&Ack{Ask: s.ask(), Offset: 3})
	s.crash([logCount]bool{})
	s.patient = false
	expect(t, "cursor", s.core.Info().Cursor, 1)
	for _, want := range []string{"1:2", "2:2", "3:2"} {
		expect(t, "poll", told(s.records(Poll{Max: 9})), want)
	}
}

// I21
func TestI21AFailedWriteRefusesItsAcksAndIsRepeatedBeforeAnyIsConfirmed(t *testing.T) {
	s := newShell(small(), 4)
	s.poll(Poll{Max: 4})
	s.patient = true
	s.step(&Ack{Ask: s.ask(), Offset: 0})
	first := s.got[s.token]
	s.complete(LogCursors, false)
	s.take()
	expect(t, "ack", refused(first.answer.Refusal), "storage outcome_unknown")
	expect(t, "meanwhile nothing is taken", refused(s.do(&Ack{Ask: s.ask(), Offset: 1}).Refusal), "storage retry_after")
	expect(t, "nor handed out", s.poll(Poll{Conn: 2, Max: 1, Wait: time.Minute}).times, 0)
	expect(t, "written at once", s.writes[LogCursors] == nil, true)
	s.patient = false
	s.wait(time.Second)
	s.crash([logCount]bool{})
	expect(t, "it was repeated", s.core.Info().Cursor, 1)
}

// I22: the delay is lost with the memory; the number is not.
func TestI22AfterALeaderChangeADelayedRecordIsDeliveredAtOnce(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	s.do(Nack{Ask: s.ask(), Conn: 1, Offset: 0, HasDelay: true, Delay: time.Hour})
	expect(t, "delayed", told(s.records(Poll{Max: 1})), "")
	s.crash([logCount]bool{})
	expect(t, "at once", told(s.records(Poll{Max: 1})), "0:2")
}

// I23; QUE-11
func TestI23AReturningMemberGetsItsOwnRecordsFirstAndNobodyElseMeanwhile(t *testing.T) {
	s := newShell(small(), 6)
	s.poll(Poll{Conn: 1, Member: "m", Max: 3})
	s.poll(Poll{Conn: 9, Member: "other", Max: 1})
	waits := s.poll(Poll{Conn: 9, Member: "other", Max: 1, Wait: 0, Visibility: time.Minute})
	expect(t, "new ones go on", told(waits.deliver.Records), "4:1")
	expect(t, "first", told(s.records(Poll{Conn: 2, Member: "m", Max: 3, Reclaim: true})), "0:2")
	expect(t, "others get none of them", told(s.records(Poll{Conn: 9, Member: "other", Max: 1})), "5:1")
	expect(t, "others get none of them", told(s.records(Poll{Conn: 9, Member: "other", Max: 1})), "")
	expect(t, "second", told(s.records(Poll{Conn: 2, Member: "m", Max: 3})), "1:2")
	s.wait(10 * time.Second)
	// what was reserved and not fetched is anybody's, and is no worse for it
	if r := s.core.play.byOffset[2]; r.state != owed || r.failures != 1 {
		t.Fatalf("record 2: %+v", r)
	}
}

func TestReclaimWorksOncePerConnectionAndFromOlderOnesOnly(t *testing.T) {
	s := newShell(small(), 4)
	s.poll(Poll{Conn: 5, Member: "m", Max: 1})
	expect(t, "from an older connection", told(s.records(Poll{Conn: 4, Member: "m", Max: 1, Reclaim: true})), "1:1")
	expect(t, "from a newer one", told(s.records(Poll{Conn: 6, Member: "m", Max: 1, Reclaim: true})), "0:2")
	expect(t, "the rest", told(s.records(Poll{Conn: 6, Member: "m", Max: 1})), "1:2")
	s.poll(Poll{Conn: 5, Member: "m", Max: 1})
	expect(t, "a second time", told(s.records(Poll{Conn: 6, Member: "m", Max: 1, Reclaim: true})), "3:1")
}

// I24
func TestI24NothingFinishedIsHandedOutAfterTheGroupWasElsewhere(t *testing.T) {
	s := newShell(small(), 6)
	s.poll(Poll{Max: 6})
	s.ack(0)
	s.ack(2)
	s.step(Stop{Refusal: &wire.Refusal{Code: wire.CodeNotLeader, Retry: wire.RetryRedirect}})
	expect(t, "afterwards", refused(s.ack(1)), "not_leader redirect")
	s.start()
	s.ack(4)
	s.crash([logCount]bool{})
	for _, want := range []string{"1:2", "3:2", "5:2", ""} {
		expect(t, "poll", told(s.records(Poll{Max: 9})), want)
	}
}

// I25: there is no wall clock here, and a monotonic one that is told to run back stands.
func TestI25AClockThatRunsBackLapsesNothing(t *testing.T) {
	s := newShell(small(), 1)
	s.now = time.Hour
	s.poll(Poll{Max: 1})
	s.now = 0
	expect(t, "held", told(s.records(Poll{Conn: 2, Max: 1})), "")
	s.now = time.Hour + 10*time.Second
	expect(t, "lapsed", told(s.records(Poll{Conn: 2, Max: 1})), "0:2")
}

// I26; mission 258
func TestI26ADeletedGroupBeginsAgainAtTheOldestRecord(t *testing.T) {
	s := newShell(small(), 6)
	s.poll(Poll{Max: 5})
	for _, o := range []id.Offset{0, 2, 4} {
		s.ack(o)
	}
	s.do(GiveUp{Ask: s.ask(), Offset: 1})
	expect(t, "existed", s.do(Remove{Ask: s.ask()}).Existed, true)
	expect(t, "and again", s.do(Remove{Ask: s.ask()}).Existed, false)
	for i := range s.tables {
		expect(t, "keys left", len(s.tables[i]), 0)
	}
	expect(t, "dead letters", len(s.deads()), 0)
	expect(t, "describe", s.core.Info().Exists, false)
	expect(t, "a claim from before", refused(s.ack(3)), "stale_claim retry")
	s.base = 2
	s.step(Trimmed{Base: 2})
	expect(t, "poll", told(s.records(Poll{Max: 2})), "2:1 3:1")
	s.crash([logCount]bool{})
	expect(t, "poll", told(s.records(Poll{Max: 2})), "2:2")
}

// I27
func TestI27APollGetsAtMostAThousandRecordsAndWhatAnAnswerHasRoomFor(t *testing.T) {
	o := DefaultOptions("g")
	s := newShell(o, 2001)
	expect(t, "records", len(s.records(Poll{Max: 5000})), 1000)
	s.budget = 2
	expect(t, "records", told(s.records(Poll{Max: 5})), "1000:1 1001:1")
	expect(t, "and the next", told(s.records(Poll{Max: 5})), "1002:1 1003:1")
	s.budget = 1000
	expect(t, "and what is left", len(s.records(Poll{Max: 5000})), 997)
}
