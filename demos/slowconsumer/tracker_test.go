package main

import (
	"testing"
	"time"
)

func numbered(n uint64) []byte {
	record := make([]byte, recordHeader+3)
	putNumber(record, n)
	return record
}

func TestLossesAreCountedFromTheNumbersInTheRecords(t *testing.T) {
	var k tracker
	for _, n := range []uint64{0, 1, 2, 10, 11, 100} {
		if err := k.take(numbered(n)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := k.tally(), (tally{received: 6, lost: 7 + 88, next: 101}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestARecordThatComesTwiceOrLateIsAnError(t *testing.T) {
	for _, late := range []uint64{5, 4, 0} {
		var k tracker
		if err := k.take(numbered(5)); err != nil {
			t.Fatal(err)
		}
		if err := k.take(numbered(late)); err == nil {
			t.Errorf("record %d was taken after record 5", late)
		}
	}
	var k tracker
	if err := k.take([]byte("short")); err == nil {
		t.Error("a record without a number was taken")
	}
}

func TestAScheduleKeepsItsRate(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	s := newSchedule(begin, 20000, 10) // a batch every 500 µs
	var total int64
	for now := begin; now.Before(begin.Add(3 * time.Second)); now = now.Add(1700 * time.Microsecond) {
		total += s.batches(now)
	}
	if total < 5996 || total > 6000 {
		t.Errorf("%d batches in three seconds, want 6000", total)
	}
}

func TestASenderThatWasHeldDoesNotComeBackWithAFlood(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	s := newSchedule(begin, 20000, 10)
	s.batches(begin.Add(500 * time.Millisecond))
	if got := s.batches(begin.Add(900 * time.Millisecond)); got != 800 {
		t.Errorf("%d batches after 400 ms on a busy machine, want the 800 that are due", got)
	}
	s.forget(5 * time.Second)
	if got := s.batches(begin.Add(5950 * time.Millisecond)); got != 100 {
		t.Errorf("%d batches after five seconds held and 50 ms, want the 100 of those 50 ms", got)
	}
	if got := s.batches(begin.Add(30 * time.Second)); got != 1 {
		t.Errorf("%d batches after half a minute, want 1", got)
	}
	s.forget(time.Second)
	if got := s.batches(begin.Add(30 * time.Second)); got != 0 {
		t.Errorf("%d batches while what was forgotten is not over yet", got)
	}
}

func TestASlowScheduleStillSends(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	s := newSchedule(begin, 100, 1000) // a batch every ten seconds
	if got := s.batches(begin.Add(9 * time.Second)); got != 0 {
		t.Errorf("%d batches after 9 s", got)
	}
	if got := s.batches(begin.Add(10 * time.Second)); got != 1 {
		t.Errorf("%d batches after 10 s, want 1", got)
	}
}
