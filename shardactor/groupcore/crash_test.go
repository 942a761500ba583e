package groupcore

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// A pause counts from the failure, not from when somebody noticed it.
func TestAClaimThatIsFoundLapsedLateIsNotDelayedAgain(t *testing.T) {
	o := small()
	o.BackOff = []time.Duration{3 * time.Second}
	s := newShell(o, 1)
	s.poll(Poll{Max: 1})
	s.now = 13 * time.Second
	expect(t, "poll", told(s.records(Poll{Conn: 2, Max: 1})), "0:2")
}

func TestAListingThatCouldNotBeWrittenIsRepeatedAndFinishedThen(t *testing.T) {
	s := newShell(small(), 2)
	s.poll(Poll{Max: 1})
	s.patient = true
	s.step(GiveUp{Ask: s.ask(), Offset: 0})
	asked := s.got[s.token]
	s.complete(LogDeadLetters, false)
	s.take()
	expect(t, "answer", refused(asked.answer.Refusal), "storage outcome_unknown")
	s.patient = false
	s.wait(time.Second)
	expect(t, "listed", s.deads(), []id.Offset{0})
	expect(t, "and finished", s.core.Info(), Info{Exists: true, Cursor: 1, Tail: 2, Dead: 1})
}

// The dead letters of a group that is gone are not those of nobody, wherever the group had been moved.
func TestARemovedGroupStaysRemovedWhenItsDeadLettersAreStillThere(t *testing.T) {
	s := newShell(small(), 5)
	s.poll(Poll{Max: 5})
	s.seek(at(0), false)
	s.poll(Poll{Max: 5})
	s.do(GiveUp{Ask: s.ask(), Offset: 3})
	s.patient = true
	s.step(Remove{Ask: s.ask()})
	s.complete(LogCursors, true)
	s.take()
	s.crash([logCount]bool{})
	expect(t, "left", len(s.tables[LogDeadLetters]), 1)
	expect(t, "group", s.core.Info(), Info{Tail: 5})
	s.patient = false
	s.settle()
	s.take()
	for i := range s.tables {
		expect(t, "keys left", len(s.tables[i]), 0)
	}
}

// Its position was lost with the broker and its dead letter was not: nothing of it may vanish.
func TestADeadLetterOutlivesTheLossOfItsGroupsFirstPosition(t *testing.T) {
	s := newShell(small(), 3)
	s.patient = true
	s.poll(Poll{Max: 1})
	s.readOne(0)
	s.step(GiveUp{Ask: s.ask(), Offset: 0})
	s.crash([logCount]bool{LogDeadLetters: true})
	s.patient = false
	s.settle()
	s.take()
	expect(t, "listed", s.deads(), []id.Offset{0})
	expect(t, "and owed", told(s.records(Poll{Max: 1})), "0:1")
}

// A redrive whose listing is not durable yet must not finish the record: what says that it is owed may be lost where the cursor is not.
func TestARedriveBeforeTheListingIsDurableLosesNothing(t *testing.T) {
	s := newShell(small(), 1)
	s.poll(Poll{Max: 1})
	s.patient = true
	s.step(GiveUp{Ask: s.ask(), Offset: 0})
	s.step(Redrive{Ask: s.ask(), Offset: 0})
	s.crash([logCount]bool{LogCursors: true})
	s.patient = false
	expect(t, "owed", told(s.records(Poll{Max: 1})), "0:2")
}

// The end of the shard's log was lost, and with it records that the group had settled. What is published there next is delivered.
func TestAPositionPastTheEndOfALogThatLostItsEndSkipsNothing(t *testing.T) {
	s := newShell(small(), 9)
	s.poll(Poll{Max: 9})
	for _, o := range []id.Offset{0, 1, 2, 5, 6, 7, 8} {
		s.ack(o)
	}
	s.do(GiveUp{Ask: s.ask(), Offset: 4})
	s.end = 7
	s.crash([logCount]bool{})
	expect(t, "settled below the end", s.core.settled.spans, []span{{4, 7, true}})
	s.publish(1)
	expect(t, "owed", told(s.records(Poll{Max: 9})), "3:2")
	expect(t, "new", told(s.records(Poll{Max: 9})), "7:1")
	s.end = 2
	s.crash([logCount]bool{})
	s.publish(3)
	expect(t, "dead letters of what is gone", len(s.deads()), 0)
	expect(t, "new", told(s.records(Poll{Max: 9})), "2:1 3:1 4:1")
	before := s.core.Info()
	s.crash([logCount]bool{})
	expect(t, "read again", []id.Offset{s.core.Info().Cursor, id.Offset(s.core.Info().Owed)}, []id.Offset{before.Cursor, 3})
}

// Retention took the record between the redrive and its delivery, and was faster than the word of it.
func TestARedrivenRecordThatIsGoneIsSkippedAndItsDeadLetterGoes(t *testing.T) {
	s := newShell(small(), 2)
	s.poll(Poll{Max: 1})
	s.do(GiveUp{Ask: s.ask(), Offset: 0})
	s.do(Redrive{Ask: s.ask(), Offset: 0})
	s.holes[0] = true
	expect(t, "poll", told(s.records(Poll{Max: 1})), "1:1(1)")
	expect(t, "skipped", s.core.Counts().Skipped, 1)
	expect(t, "left", len(s.tables[LogDeadLetters]), 0)

	s.do(GiveUp{Ask: s.ask(), Offset: 1})
	s.do(Redrive{Ask: s.ask(), Offset: 1})
	s.base = 2
	s.step(Trimmed{Base: 2})
	expect(t, "left", len(s.tables[LogDeadLetters]), 0)
	expect(t, "owed", s.core.Info().Owed, 0)
}

func TestADeadLetterBelowTheBaseIsKeptAndCannotBeRedriven(t *testing.T) {
	s := newShell(small(), 2)
	s.poll(Poll{Max: 1})
	s.do(GiveUp{Ask: s.ask(), Offset: 0})
	s.base = 1
	s.step(Trimmed{Base: 1})
	expect(t, "listed", s.deads(), []id.Offset{0})
	expect(t, "redrive", refused(s.do(Redrive{Ask: s.ask(), Offset: 0}).Refusal), "invalid_request fatal")
	expect(t, "discard", refused(s.do(Discard{Ask: s.ask(), Offset: 0}).Refusal), "ok")
}

// Two consumers of one broker: a seek back shows a dead letter again, and redriving it then changes only what a crash leaves.
func TestADeadLetterThatASeekMadeARecordAgainIsDiscardedOrRedrivenWithoutLosingIt(t *testing.T) {
	for name, after := range map[string]string{"discard": "0:1", "redrive": "0:1"} {
		s := newShell(small(), 2)
		s.poll(Poll{Max: 2})
		s.do(GiveUp{Ask: s.ask(), Offset: 0})
		s.do(Redrive{Ask: s.ask(), Offset: 0})
		s.seek(at(0), false)
		expect(t, "owed", s.core.Info().Owed, 1)
		if name == "discard" {
			s.do(Discard{Ask: s.ask(), Offset: 0})
		}
		expect(t, name, told(s.records(Poll{Max: 1})), after)
		expect(t, "ack", refused(s.ack(0)), "ok")
		expect(t, "cursor", s.core.Info().Cursor, 1)
		s.crash([logCount]bool{})
		expect(t, "what is left", told(s.records(Poll{Max: 2})), "1:1")
		expect(t, "dead letters", len(s.tables[LogDeadLetters]), 0)
	}
}

func TestAReclaimIsAFailureOfWhatItEndsAndTheLastOneIsADeadLetter(t *testing.T) {
	o := small()
	o.MaxAttempts = 3
	s := newShell(o, 2)
	s.poll(Poll{Conn: 1, Member: "m", Max: 1})
	expect(t, "first", told(s.records(Poll{Conn: 2, Member: "m", Max: 1, Reclaim: true})), "0:2")
	expect(t, "second", told(s.records(Poll{Conn: 3, Member: "m", Max: 1, Reclaim: true})), "0:3")
	expect(t, "third", told(s.records(Poll{Conn: 4, Member: "m", Max: 1, Reclaim: true})), "1:1")
	expect(t, "listed", s.deads(), []id.Offset{0})
}

func TestDelayedRecordsAndThoseOfOthersAreNotReclaimed(t *testing.T) {
	s := newShell(small(), 3)
	s.poll(Poll{Conn: 1, Member: "m", Max: 1})
	s.poll(Poll{Conn: 1, Member: "n", Max: 1})
	s.do(Nack{Ask: s.ask(), Conn: 1, Offset: 0, HasDelay: true, Delay: time.Second})
	expect(t, "poll", told(s.records(Poll{Conn: 2, Member: "m", Max: 1, Reclaim: true})), "2:1")
	expect(t, "reclaimed", s.core.Counts().Reclaimed, 0)
}
