package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// ends are the ways in which a broker ends without an order.
func ends() map[string]func(*vfs.Mem) *vfs.Mem {
	return map[string]func(*vfs.Mem) *vfs.Mem{"a kill": killed, "a power cut": unplugged}
}

// hour is a visibility that no test waits for.
const hour = time.Hour

// What is acked above a record in flight stays finished across a kill and a power cut: the record comes again, the others do not, and its ack
// takes the cursor past all of them. Offsets above are not skipped either.
//
// matrix I1 (as amended: settlements are durable), matrix I2, matrix L11, field case DUR-11
func TestI1_WhatIsAckedAboveARecordInFlightStaysFinished(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			b := s.start(vfs.NewMem())
			w := s.connect()
			w.publish(numbered(6)...)
			all := w.take(5, client.GroupPollOptions{Visibility: hour})
			for _, m := range all {
				if m.Offset != 3 {
					w.ack(m)
				}
			}
			if i := w.info(); i.Committed != 3 || i.InFlight != 1 {
				t.Errorf("before: %+v", i)
			}
			s.start(b.crash(end))
			w = s.connect()
			got := w.take(2, client.GroupPollOptions{Visibility: hour})
			same(t, "what comes", got, []id.Offset{3, 5})
			if rest := w.poll(client.GroupPollOptions{Max: 10}); len(rest) > 0 {
				t.Errorf("%d more came, the first is %d", len(rest), rest[0].Offset)
			}
			w.ack(got[slices.IndexFunc(got, func(m client.Message) bool { return m.Offset == 3 })])
			if i := w.info(); i.Committed != 5 {
				t.Errorf("the cursor is %d once the gap is closed, want 5", i.Committed)
			}
			w.tryAckTwice(5)
			w.drained()
		})
	}
}

// tryAckTwice acks an offset two times: the second one is a success that changes nothing.
func (w worker) tryAckTwice(o id.Offset) {
	w.t.Helper()
	for range 2 {
		if err := w.tryAck(o); err != nil {
			w.t.Errorf("ack %d: %v", o, err)
		}
	}
}

// A record that fails each time is handed out as often as the limit says, with numbers up to it, and is a dead letter then; what lies behind it
// comes meanwhile. It is still one after a kill and a power cut, and nothing of it is handed out.
//
// matrix I6; mission 266, mission 370 (attempts and dead letters)
func TestI6_APoisonRecordIsADeadLetterAfterTheLimitAndTheQueueMovesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *groupcore.Options) { o.BackOff = nil })
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish(numbered(3)...)
	var numbers []uint32
	for range 7 { // five of the poison, two good ones
		m := w.take(1, client.GroupPollOptions{})[0]
		if m.Offset == 1 {
			numbers = append(numbers, m.Attempts)
			w.nack(m, 0)
		} else {
			w.ack(m)
		}
	}
	if want := []uint32{1, 2, 3, 4, 5}; !slices.Equal(numbers, want) {
		t.Errorf("the poison was delivered as %d, want %d", numbers, want)
	}
	w.drained(1)
	for _, end := range []func(*vfs.Mem) *vfs.Mem{killed, unplugged} {
		b = s.start(b.crash(end))
		w = s.connect()
		if list := w.poll(client.GroupPollOptions{Max: 10}); len(list) > 0 {
			t.Errorf("offset %d is handed out after a restart", list[0].Offset)
		}
		w.drained(1)
	}
}

// A redriven record is owed across a crash until it is finished, and is neither handed out nor listed after that; one that is discarded never
// comes. Discarding what is no dead letter does nothing.
//
// matrix I8, matrix I9; mission 255, mission 370 (list, discard, redrive)
func TestI8_ARedrivenRecordIsOwedAcrossCrashesUntilItIsFinished(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			b := s.start(vfs.NewMem())
			w := s.connect()
			w.publish(numbered(4)...)
			for _, m := range w.take(4, client.GroupPollOptions{Visibility: hour}) {
				if err := w.tryGiveUp(m.Offset); err != nil {
					t.Fatal(err)
				}
			}
			w.drained(0, 1, 2, 3)
			b = s.start(b.crash(end))
			w = s.connect()
			for o := range id.Offset(2) {
				if err := w.tryRedrive(o); err != nil {
					t.Fatal(err)
				}
			}
			for _, o := range []id.Offset{2, 2, 77} {
				ctx, cancel := testkit.Within()
				if err := w.GroupDiscard(ctx, namespace, jobs, 0, w.group, o); err != nil {
					t.Errorf("discard %d: %v", o, err)
				}
				cancel()
			}
			b = s.start(b.crash(end))
			w = s.connect()
			list := w.take(2, client.GroupPollOptions{Visibility: hour})
			same(t, "redriven", list, upTo(0, 2))
			w.ack(list...)
			s.start(b.crash(end))
			w = s.connect()
			if more := w.poll(client.GroupPollOptions{Max: 10}); len(more) > 0 {
				t.Errorf("%d came again", more[0].Offset)
			}
			w.drained(3)
		})
	}
}

// No ack is answered whose sync failed. After a restart what it was about may come again; what was acked before may not, and nothing is skipped.
//
// matrix I21
func TestI21_AnAckWhoseSyncFailsIsNotAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish(numbered(8)...)
	all := w.take(8, client.GroupPollOptions{Visibility: hour})
	w.ack(all[:3]...)
	failing := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Match: isGroupLog, Err: errFailed})
	impatient := s.connect(func(o *client.Options) { o.RetryDeadline, o.AckTimeout = time.Second, time.Second })
	for _, m := range all[3:6] {
		if err := impatient.tryAck(m.Offset); err == nil {
			t.Errorf("the ack of %d was answered, and could not be synced", m.Offset)
		}
	}
	testkit.Eventually(t, "a sync fails", func() bool { return failing.Hits() > 0 })
	s.start(b.crash(unplugged))
	w = s.connect()
	var got []id.Offset
	for {
		list := w.poll(client.GroupPollOptions{Max: 10, Visibility: hour})
		if len(list) == 0 {
			break
		}
		got = append(got, offsets(list)...)
	}
	for _, o := range got {
		if o < 3 {
			t.Errorf("%d was acked, and came after a power cut", o)
		}
	}
	for _, o := range []id.Offset{6, 7} {
		if !slices.Contains(got, o) {
			t.Errorf("%d was never acked, and does not come", o)
		}
	}
}

var errFailed = errors.New("the disk failed")

// A group that is deleted begins again at the oldest record, with nothing of what it knew.
//
// matrix I26; mission 258
func TestI26_ADeletedGroupBeginsAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish(numbered(4)...)
	list := w.take(4, client.GroupPollOptions{})
	w.ack(list[:2]...)
	if err := w.tryGiveUp(2); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := testkit.Within()
	defer cancel()
	for _, want := range []bool{true, false} {
		if existed, err := w.GroupDelete(ctx, namespace, jobs, 0, w.group); err != nil || existed != want {
			t.Errorf("delete: %t, %v, want %t", existed, err, want)
		}
	}
	s.start(b.crash(unplugged))
	w = s.connect()
	list = w.take(4, client.GroupPollOptions{})
	same(t, "after the deletion", list, upTo(0, 4))
	attempts(t, list, 1)
	w.ack(list...)
	w.drained()
}

// A record that was given back for an hour is handed out at once by a broker that starts anew, and nothing that was finished is.
//
// matrix I22, matrix I24 (one broker, restarted)
func TestI22_ADelayDoesNotOutliveItsBrokerAndASettlementDoes(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish(numbered(2)...)
	list := w.take(2, client.GroupPollOptions{})
	w.nack(list[0], hour)
	w.ack(list[1])
	if got := w.poll(client.GroupPollOptions{Max: 2}); len(got) > 0 {
		t.Fatalf("%d came an hour early", got[0].Offset)
	}
	b.stop()
	s.start(b.mem)
	w = s.connect()
	again := w.take(1, client.GroupPollOptions{})
	same(t, "after the restart", again, upTo(0, 1))
	w.ack(again...)
	w.drained()
}

// One answer has a thousand records at most, and about 4 MiB.
//
// matrix I27; mission 245
func TestI27_AnAnswerIsBoundedInRecordsAndBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(vfs.NewMem())
	w := s.connect()
	small := make([]string, 1001)
	for i := range small {
		small[i] = fmt.Sprint(i % 10)
	}
	w.publish(small...)
	list := w.poll(client.GroupPollOptions{Max: client.GroupPollMax})
	if len(list) != 1000 {
		t.Errorf("%d records of one byte in an answer, want 1000", len(list))
	}
	rest := w.take(1, client.GroupPollOptions{})
	large := string(make([]byte, 2<<20))
	for range 5 {
		w.publish(large)
	}
	big := w.poll(client.GroupPollOptions{Max: 10})
	if len(big) < 2 || len(big) > 3 {
		t.Errorf("%d records of 2 MiB in an answer, want two or three", len(big))
	}
	big = append(big, w.take(5-len(big), client.GroupPollOptions{})...)
	same(t, "all of them", append(append(list, rest...), big...), upTo(0, 1006))
}
