package groupcore

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// mission 245, 378; the wire's limit is in I27
func TestAPollGetsAtMostWhatItAsksForAndAtLeastOneMustBeAskedFor(t *testing.T) {
	s := newShell(small(), 100)
	expect(t, "ten of a hundred", len(s.records(Poll{Max: 10})), 10)
	expect(t, "none", refused(s.poll(Poll{Max: 0}).answer.Refusal), "invalid_request fatal")
}

// mission 246
func TestAWaitingPollIsWokenByWhateverGivesItWorkAndByNothingElse(t *testing.T) {
	for what, wake := range map[string]func(*shell){
		"publish": func(s *shell) { s.publish(1) },
		"nack":    func(s *shell) { s.nack(0, 0) },
		"lapse":   func(s *shell) { s.wait(10 * time.Second) },
		"delay ends": func(s *shell) {
			s.do(Nack{Ask: s.ask(), Offset: 0, HasDelay: true, Delay: time.Second})
			s.wait(time.Second)
		},
		"redrive": func(s *shell) { s.do(GiveUp{Ask: s.ask(), Offset: 0}); s.do(Redrive{Ask: s.ask(), Offset: 0}) },
		"seek":    func(s *shell) { s.seek(at(0), false) },
		"a failed read": func(s *shell) {
			s.patient = true
			s.publish(1)
			s.fetches = nil
			f := wire.Refuse(wire.CodeStorage, "no")
			s.step(ReadFailed{Poll: s.core.reading.first.id, Refusal: &f})
			s.patient = false
			s.settle()
			s.take()
		},
	} {
		s := newShell(small(), 1)
		s.poll(Poll{Max: 1})
		first, second := s.poll(Poll{Conn: 2, Max: 1, Wait: 20 * time.Second}), s.poll(Poll{Conn: 3, Max: 1, Wait: 20 * time.Second})
		s.step(Wake{})
		s.step(Tail{End: s.end, Committed: s.end})
		expect(t, what+": nothing yet", first.times+second.times, 0)
		wake(s)
		if what == "a failed read" {
			expect(t, what, fmt.Sprint(refused(first.answer.Refusal), told(second.deliver.Records)), "storage outcome_unknown1:1")
			continue
		}
		expect(t, what, first.times, 1)
		expect(t, what, len(first.deliver.Records), 1)
		expect(t, what, second.times, 0)
		s.wait(20 * time.Second)
		expect(t, what+": the other's wait ends", second.times, 1)
	}
}

func TestAWaitIsAsLongAsAskedForUpToTheCap(t *testing.T) {
	s := newShell(small(), 0)
	short, long := s.poll(Poll{Max: 1, Wait: time.Second}), s.poll(Poll{Max: 1, Wait: time.Hour})
	s.wait(time.Second - 1)
	expect(t, "before", short.times, 0)
	s.wait(1)
	expect(t, "after", short.times, 1)
	s.wait(29*time.Second - 1)
	expect(t, "before the cap", long.times, 0)
	s.wait(1)
	expect(t, "at the cap", long.times, 1)
	expect(t, "no time", s.poll(Poll{Max: 1}).times, 1)
	expect(t, "less than none", s.poll(Poll{Max: 1, Wait: -time.Second}).times, 1)
}

// mission 250, 251
func TestVisibilityIsThePollsOwnOrTheDefaultAndNeverAboveTheCap(t *testing.T) {
	for asked, stands := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: time.Second, 1000 * time.Hour: 12 * time.Hour} {
		s := newShell(small(), 1)
		s.poll(Poll{Max: 1, Visibility: asked})
		s.wait(stands - 1)
		expect(t, "before", told(s.records(Poll{Conn: 2, Max: 1})), "")
		s.wait(1)
		expect(t, "after", told(s.records(Poll{Conn: 2, Max: 1})), "0:2")
	}
}

func TestAnExtendCountsFromNowIsCappedAndNeedsADelivery(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	s.wait(9 * time.Second)
	extend := func(by time.Duration, attempts uint32) *Answer {
		return s.do(Extend{Ask: s.ask(), Conn: 1, Offset: 0, Attempts: attempts, Extend: by})
	}
	expect(t, "granted", extend(20*time.Second, 1).Visible, 20*time.Second)
	s.wait(20*time.Second - 1)
	expect(t, "stands", told(s.records(Poll{Conn: 2, Max: 1})), "")
	expect(t, "capped", extend(1000*time.Hour, 1).Visible, 12*time.Hour)
	expect(t, "shorter is shorter", extend(time.Second, 1).Visible, time.Second)
	expect(t, "by nothing", refused(extend(0, 1).Refusal), "invalid_request fatal")
	expect(t, "of nothing", refused(extend(time.Second, 0).Refusal), "invalid_request fatal")
	expect(t, "of another", refused(extend(time.Second, 2).Refusal), "stale_claim fatal")
	s.wait(time.Second)
	expect(t, "lapsed", told(s.records(Poll{Conn: 2, Max: 1})), "0:2")
}

// mission 248, 250
func TestADelayedRecordCountsAsInFlightAndNobodyHoldsIt(t *testing.T) {
	o := small()
	o.MaxInFlight = 1
	s := newShell(o, 2)
	s.poll(Poll{Max: 1})
	expect(t, "nack", refused(s.do(Nack{Ask: s.ask(), Conn: 1, Offset: 0, Attempts: 1, HasDelay: true, Delay: 3 * time.Second}).Refusal), "ok")
	expect(t, "nobody gets the next", told(s.records(Poll{Max: 1})), "")
	expect(t, "extend", refused(s.do(Extend{Ask: s.ask(), Conn: 1, Offset: 0, Attempts: 1, Extend: time.Hour}).Refusal), "stale_claim fatal")
	expect(t, "nack again", refused(s.nack(0, 1)), "stale_claim fatal")
	expect(t, "nack of any", refused(s.nack(0, 0)), "stale_claim retry")
	s.wait(3*time.Second - 1)
	expect(t, "not before", told(s.records(Poll{Max: 1})), "")
	s.wait(1)
	expect(t, "then", told(s.records(Poll{Max: 1})), "0:2")
	s.do(Nack{Ask: s.ask(), Conn: 1, Offset: 0, HasDelay: true, Delay: 1000 * time.Hour})
	expect(t, "an ack of it settles", refused(s.ack(0)), "ok")
	expect(t, "in flight", s.core.Info().Delayed, 0)
}

func TestADelayIsCappedLikeAClaim(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	s.do(Nack{Ask: s.ask(), Offset: 0, HasDelay: true, Delay: 1000 * time.Hour})
	s.wait(12 * time.Hour)
	expect(t, "after 12 h", told(s.records(Poll{Max: 1})), "0:2")
}

func TestOwedRecordsComeBeforeNewOnesLowestFirst(t *testing.T) {
	s := newShell(small(), 9)
	s.poll(Poll{Max: 5})
	s.nack(3, 1)
	s.nack(1, 1)
	for _, want := range []string{"1:2", "3:2", "5:1 6:1"} {
		expect(t, "poll", told(s.records(Poll{Max: 2})), want)
	}
}

func TestTheFirstPollBeginsAtTheOldestRecord(t *testing.T) {
	s := newShell(small(), 9)
	s.base = 4
	s.step(Trimmed{Base: 4})
	expect(t, "before", s.core.Info().Exists, false)
	expect(t, "poll", told(s.records(Poll{Max: 2})), "4:1 5:1")
	expect(t, "after", s.core.Info(), Info{Exists: true, Cursor: 4, Tail: 9, InFlight: 2})
}

// mission 252, 253, 254
func TestGivingUpListsAnOffsetOnceAndRefusesWhatIsFinishedOrWasNotHandedOut(t *testing.T) {
	s := newShell(small(), 2)
	give := func(o id.Offset) string { return refused(s.do(GiveUp{Ask: s.ask(), Offset: o}).Refusal) }
	s.poll(Poll{Max: 2})
	s.publish(2)
	s.ack(1)
	expect(t, "held", give(0), "ok")
	expect(t, "given up already", give(0), "invalid_request fatal")
	expect(t, "settled", give(1), "invalid_request fatal")
	expect(t, "not handed out", give(2), "stale_claim retry")
	expect(t, "past the end", give(4), "invalid_request fatal")
	expect(t, "listed", s.deads(), []id.Offset{0})
	expect(t, "discard", refused(s.do(Discard{Ask: s.ask(), Offset: 0}).Refusal), "ok")
	expect(t, "forgotten", len(s.deads()), 0)
	expect(t, "redrive of what is forgotten", refused(s.do(Redrive{Ask: s.ask(), Offset: 0}).Refusal), "invalid_request fatal")
	s.crash([logCount]bool{})
	expect(t, "still", len(s.deads()), 0)
}

func TestDeadLettersAreListedInPages(t *testing.T) {
	s := newShell(small(), 9)
	s.poll(Poll{Max: 9})
	for _, o := range []id.Offset{7, 2, 4, 5} {
		s.do(GiveUp{Ask: s.ask(), Offset: o})
	}
	s.do(Redrive{Ask: s.ask(), Offset: 4})
	page := func(in ListDead) []id.Offset { in.Ask = s.ask(); return s.do(in).Dead }
	expect(t, "first", page(ListDead{Max: 2}), []id.Offset{2, 5})
	expect(t, "next", page(ListDead{Max: 2, HasAfter: true, After: 5}), []id.Offset{7})
	expect(t, "none", page(ListDead{Max: 0}), []id.Offset{})
	expect(t, "counted", s.core.Info().Dead, 3)
}

// Whoever was late is done with the work all the same, and nobody has to look at its dead letter.
func TestALateAckOfADeadLetterSettlesIt(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	s.do(GiveUp{Ask: s.ask(), Offset: 0})
	expect(t, "late ack", refused(s.ack(0)), "ok")
	expect(t, "listed", len(s.deads()), 0)
	s.crash([logCount]bool{})
	expect(t, "listed", len(s.deads()), 0)
	expect(t, "owed", told(s.records(Poll{Max: 1})), "")
}

func TestARedrivenRecordThatFailsAgainIsListedAgain(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	s.do(GiveUp{Ask: s.ask(), Offset: 0})
	s.do(Redrive{Ask: s.ask(), Offset: 0})
	for n := uint32(1); n <= 5; n++ {
		expect(t, "poll", told(s.records(Poll{Max: 1})), fmt.Sprintf("0:%d", n))
		s.nack(0, n)
		s.crash([logCount]bool{})
		if n < 5 {
			expect(t, "its failures so far are known from its last delivery on", s.core.play.byOffset[0].failures, n-1)
			s.core.play.byOffset[0].failures = n
		}
		s.wait(4 * time.Second)
	}
	expect(t, "listed", s.deads(), []id.Offset{0})
	expect(t, "owed", s.core.Info().Owed, 0)
}

// decision 17
func TestRestartsAreNoFailuresAndNoAnswerGoesAboveTheLimit(t *testing.T) {
	s := newShell(small(), 1)
	for n := 1; n <= 9; n++ {
		expect(t, "poll", told(s.records(Poll{Conn: Conn(n), Max: 1})), fmt.Sprintf("0:%d", min(n, 5)))
		if n < 9 {
			s.crash([logCount]bool{})
		}
	}
	expect(t, "dead letters", len(s.deads()), 0)
	// 5 was told five times: it names the delivery on its own connection only
	expect(t, "an older holder", refused(s.do(Nack{Ask: s.ask(), Conn: 10, Offset: 0, Attempts: 5}).Refusal), "stale_claim fatal")
	expect(t, "the holder", refused(s.do(Nack{Ask: s.ask(), Conn: 9, Offset: 0, Attempts: 5}).Refusal), "ok")
}

// decision 17: the number was written and lost, so the new holder's is the same.
func TestAnOldHoldersNackDoesNotHitTheNewHoldersClaimAfterARestart(t *testing.T) {
	s := newShell(small(), 1)
	s.patient = true
	s.poll(Poll{Conn: 1, Max: 1})
	s.readOne(0)
	s.crash([logCount]bool{})
	s.patient = false
	expect(t, "the new holder", told(s.records(Poll{Conn: 3, Max: 1})), "0:1")
	old := Nack{Conn: 2, Offset: 0, Attempts: 1} // the old one, on the connection it made since
	old.Ask = s.ask()
	expect(t, "nack", refused(s.do(old).Refusal), "stale_claim fatal")
	expect(t, "extend", refused(s.do(Extend{Ask: s.ask(), Conn: 2, Offset: 0, Attempts: 1, Extend: 1}).Refusal), "stale_claim fatal")
	s.step(Gone{Conn: 3}) // a tool that polls and nacks in two processes
	old.Ask = s.ask()
	expect(t, "nack once the holder is gone", refused(s.do(old).Refusal), "ok")
}

// mission 256
func TestASeekGoesWhereRecordsAreAndNowhereElse(t *testing.T) {
	s := newShell(small(), 9)
	s.base = 2
	s.step(Trimmed{Base: 2})
	s.end = 12
	s.step(Tail{End: 12, Committed: 9})
	for _, c := range []struct {
		start wire.Start
		want  string
	}{
		{wire.Start{Kind: wire.StartEarliest}, "ok 2"}, {wire.Start{Kind: wire.StartLatest}, "ok 9"}, {at(5), "ok 5"}, {at(9), "ok 9"},
		{at(1), "invalid_request fatal 0"}, {at(10), "invalid_request fatal 0"},
	} {
		a := s.seek(c.start, false)
		expect(t, "seek", fmt.Sprint(refused(a.Refusal), " ", a.Offset), c.want)
	}
}

// mission 257, 262
func TestDescribeTellsTheDurableCursorAndALateAckDoesNotRewindIt(t *testing.T) {
	s := newShell(small(), 12)
	expect(t, "nothing", s.do(Describe{Ask: s.ask()}).Info, Info{Tail: 12})
	s.poll(Poll{Max: 11})
	for o := range id.Offset(10) {
		s.ack(o)
	}
	expect(t, "ack of 3", refused(s.ack(3)), "ok")
	s.do(Nack{Ask: s.ask(), Offset: 10, HasDelay: true, Delay: time.Second})
	expect(t, "describe", s.do(Describe{Ask: s.ask()}).Info, Info{Exists: true, Cursor: 10, Tail: 12, Delayed: 1})
	s.patient = true
	s.step(&Ack{Ask: s.ask(), Offset: 10})
	expect(t, "not durable yet", s.core.Info().Cursor, 10)
}

// Nobody takes turns with a worker that merely has more polls waiting.
func TestWaitingWorkersAreServedInTurnHoweverManyPollsEachHas(t *testing.T) {
	s := newShell(small(), 0)
	var polls [3][]*got
	for range 30 {
		polls[0] = append(polls[0], s.poll(Poll{Conn: 1, Max: 1, Wait: 9 * time.Second}))
	}
	for n := range 3 {
		polls[1] = append(polls[1], s.poll(Poll{Conn: Conn(2 + n), Member: "m", Max: 1, Wait: 9 * time.Second}))
		polls[2] = append(polls[2], s.poll(Poll{Conn: 9, Max: 1, Wait: 9 * time.Second}))
	}
	for round := range 3 {
		s.publish(3)
		for i := range polls {
			served := 0
			for _, g := range polls[i] {
				served += g.times
			}
			expect(t, fmt.Sprintf("round %d, worker %d", round, i), served, round+1)
		}
	}
	expect(t, "oldest first", polls[0][0].times, 1)
}

// QUE-05
func TestQUE05APoisonRecordDoesNotUseUpTheAttemptsOfItsNeighbours(t *testing.T) {
	o := small()
	o.MaxAttempts, o.MaxInFlight = 3, 1000
	s := newShell(o, 0)
	const bad = 37
	for round := range 20 {
		s.publish(100)
		died := true
		for n := Conn(1); died || s.core.Info().Owed+s.core.Info().InFlight+s.core.Info().Delayed > 0 || s.core.Info().Cursor < s.end; n++ {
			died = false
			for _, h := range s.records(Poll{Conn: n + Conn(1000*round), Max: 100}) {
				if h.Offset%100 == bad {
					died = true // before the rest is touched
					break
				}
				s.ack(h.Offset)
			}
			s.wait(3 * time.Second)
		}
	}
	deads := s.deads()
	expect(t, "dead letters", len(deads), 20)
	for i, o := range deads {
		expect(t, "dead letter", o, i*100+bad)
	}
	expect(t, "settled", s.core.Counts().Settled, 1980)
}

// QUE-06, the core's part: what the logs hold of a group that only nacks has a bound, and the pace has one too.
func TestQUE06EndlessNacksKeepTheKeysBoundedAndAreSlowedDown(t *testing.T) {
	o := small()
	o.MaxAttempts = 0
	s := newShell(o, 50)
	s.poll(Poll{Max: 50})
	for o := range id.Offset(50) {
		s.nack(o, 1)
	}
	for s.now < 60*time.Second {
		for _, h := range s.records(Poll{Max: 50}) {
			s.nack(h.Offset, h.Attempts)
		}
		s.wait(100 * time.Millisecond)
	}
	if n := len(s.tables[LogCursors]); n > 1+1+50 {
		t.Errorf("%d keys", n)
	}
	if n := s.core.Counts().Delivered; n > 50*(4+60/4) {
		t.Errorf("%d deliveries in a minute", n)
	}
	for range 60 {
		for _, h := range s.records(Poll{Max: 50}) {
			s.ack(h.Offset)
		}
		s.wait(time.Second)
	}
	expect(t, "keys after the drain", len(s.tables[LogCursors]), 1)
}

// QUE-07
func TestQUE07RetryDelaysApplyToEveryWayOfFailing(t *testing.T) {
	o := small()
	o.BackOff, o.MaxAttempts = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, 0
	fail := map[string]func(*shell, uint32) time.Duration{ // until the failure
		"nack": func(s *shell, n uint32) time.Duration {
			s.do(Nack{Ask: s.ask(), Conn: Conn(n), Offset: 0, Attempts: n})
			return 0
		},
		"lapse":      func(*shell, uint32) time.Duration { return 10 * time.Second },
		"disconnect": func(s *shell, n uint32) time.Duration { s.step(Gone{Conn: Conn(n)}); return 10 * time.Second },
	}
	for name, how := range fail {
		s := newShell(o, 1)
		s.poll(Poll{Conn: 1, Max: 1})
		for n := uint32(1); n <= 5; n++ {
			ready := how(s, n) + o.backOff(n)
			s.wait(ready - 1)
			expect(t, name+" too early", told(s.records(Poll{Conn: Conn(n + 1), Max: 1})), "")
			s.wait(1)
			expect(t, name, told(s.records(Poll{Conn: Conn(n + 1), Max: 1})), fmt.Sprintf("0:%d", n+1))
		}
	}
	s := newShell(o, 1)
	s.poll(Poll{Max: 1})
	s.do(Nack{Ask: s.ask(), Offset: 0, HasDelay: true, Delay: 7 * time.Second})
	s.wait(7*time.Second - 1)
	expect(t, "own delay, too early", told(s.records(Poll{Max: 1})), "")
	s.wait(1)
	expect(t, "own delay", told(s.records(Poll{Max: 1})), "0:2")
}

// QUE-08
func TestQUE08AFrozenWorkerHoldsUpNobody(t *testing.T) {
	s := newShell(small(), 10)
	frozen := s.records(Poll{Conn: 1, Max: 10})
	s.publish(990)
	handled := 0
	for h := s.records(Poll{Conn: 2, Max: 10}); len(h) > 0; h = s.records(Poll{Conn: 2, Max: 10}) {
		for _, x := range h {
			s.ack(x.Offset)
			handled++
		}
	}
	expect(t, "meanwhile", handled, 990)
	waitsToo, waits := s.poll(Poll{Conn: 1, Max: 10, Wait: 20 * time.Second}), s.poll(Poll{Conn: 2, Max: 10, Wait: 20 * time.Second})
	s.wait(10 * time.Second)
	expect(t, "a different worker first", told(waits.deliver.Records), "0:2")
	expect(t, "then whoever waits", told(waitsToo.deliver.Records), "1:2")
	expect(t, "late nack", refused(s.nack(frozen[0].Offset, 1)), "stale_claim fatal")
}

// QUE-10; mission 265
func TestQUE10WorkInHandAtACrashComesBackAsItsSecondDelivery(t *testing.T) {
	s := newShell(DefaultOptions("g"), 1000)
	expect(t, "all", len(s.records(Poll{Max: 1000})), 1000)
	s.crash([logCount]bool{})
	expect(t, "keys", len(s.tables[LogCursors]), 2)
	for i := range 1000 {
		h := s.records(Poll{Conn: 2, Max: 1000})
		if len(h) != 1 || h[0] != (Handed{Offset: id.Offset(i), Attempts: 2}) {
			t.Fatalf("poll %d gets %s", i, told(h))
		}
	}
}

// QUE-11: a worker that leaves, however it does, keeps its claims until they lapse; its waiting polls end at once.
func TestQUE11AWorkerThatLeavesGivesBackWhatItHeldAfterItsVisibility(t *testing.T) {
	s := newShell(small(), 3)
	s.poll(Poll{Conn: 1, Max: 3})
	waits := s.poll(Poll{Conn: 1, Max: 3, Wait: 20 * time.Second})
	s.step(Gone{Conn: 1})
	expect(t, "its wait", told(waits.deliver.Records), "")
	s.wait(10*time.Second - 1)
	expect(t, "before", told(s.records(Poll{Conn: 2, Max: 3})), "")
	s.wait(1)
	for _, want := range []string{"0:2", "1:2", "2:2"} {
		expect(t, "after", told(s.records(Poll{Conn: 2, Max: 3})), want)
	}
	s.step(Gone{Conn: 77})
}

// QUE-12, the core's part: what retention took is never handed out, and the rest comes once each.
func TestQUE12WhatRetentionTookOfPendingRecordsDoesNotComeBack(t *testing.T) {
	s := newShell(small(), 21)
	s.seek(at(10), false)
	s.poll(Poll{Max: 11})
	s.base = 15
	s.step(Trimmed{Base: 15})
	expect(t, "in flight", s.core.Info().InFlight, 6)
	s.wait(10 * time.Second)
	for o := 15; o <= 20; o++ {
		h := s.records(Poll{Max: 11})
		if len(h) != 1 || h[0].Offset != id.Offset(o) {
			t.Fatalf("record %d: %s", o, told(h))
		}
		if want := map[int]uint64{15: 5}[o]; h[0].Skipped != want {
			t.Fatalf("record %d comes after %d skipped ones, not %d", o, h[0].Skipped, want)
		}
	}
}

// The answer to the first one may have got lost: whoever asks again is told what became of the record.
func TestWhoGivesUpAFinishedRecordIsToldWhetherItIsListed(t *testing.T) {
	s := newShell(small(), 2)
	s.poll(Poll{Max: 2})
	s.do(GiveUp{Ask: s.ask(), Offset: 0})
	s.do(&Ack{Ask: s.ask(), Offset: 1})
	for o, says := range []string{"the record is finished already; it is listed", "the record is finished already; it was not listed"} {
		a := s.do(GiveUp{Ask: s.ask(), Offset: id.Offset(o)})
		expect(t, says, refused(a.Refusal), "invalid_request fatal")
		expect(t, "what is said", a.Refusal.Message, says)
	}
}
