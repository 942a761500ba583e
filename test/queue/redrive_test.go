package queue

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// Dead letters are redriven, and worked off by halves, while the broker is killed and cut off from power: each is finished or a dead letter in
// the end, and never both; nothing that was finished comes again.
//
// field case QUE-13 (one broker); matrix I7, I8
func TestQUE13_RedrivenAndDeadLetteredRecordsSurviveCrashes(t *testing.T) {
	t.Parallel()
	records, crashes := size("redriven_records"), size("redrive_crashes")
	s := newSite(t, func(o *groupOptions) { o.BackOff = nil })
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish(numbered(records)...)
	for _, m := range w.take(records, client.GroupPollOptions{}) {
		if err := w.tryGiveUp(m.Offset); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 8))
	finished := map[id.Offset]bool{} // an ack was answered
	for n := range crashes {
		// One goroutine redrives and settles until the broker is gone under it.
		w := s.connect(func(o *client.Options) { o.Attempts, o.AckTimeout = 1, time.Second })
		over, acked := make(chan struct{}), []id.Offset(nil)
		go func() {
			defer close(over)
			ctx, cancel := testkit.Within()
			defer cancel()
			letters, _ := w.GroupDeadLetters(ctx, namespace, jobs, 0, w.group) // none, if the broker is gone already
			for _, o := range letters {
				if w.tryRedrive(o) != nil {
					return
				}
				list, err := w.GroupPoll(ctx, namespace, jobs, 0, w.group, client.GroupPollOptions{Visibility: hour})
				if err != nil {
					return
				}
				for _, m := range list {
					if finished[m.Offset] || slices.Contains(acked, m.Offset) {
						t.Errorf("crash %d: %d was finished, and came again", n, m.Offset)
					}
					if m.Offset%2 == 0 { // the others fail for good
						if w.tryGiveUp(m.Offset) != nil {
							return
						}
					} else if w.tryAck(m.Offset) != nil {
						return
					} else {
						acked = append(acked, m.Offset)
					}
				}
			}
		}()
		testkit.After(time.Duration(r.Int64N(int64(crashWithin()))))
		end := killed
		if r.IntN(2) == 0 {
			end = unplugged
		}
		image := b.crash(end)
		<-over
		for _, o := range acked {
			finished[o] = true
		}
		b = s.start(image)
	}
	w = s.connect()
	came := w.everything()
	for _, o := range came {
		if finished[o] {
			t.Errorf("%d was finished, and came again in the end", o)
		}
		finished[o] = true
	}
	dead := w.deadLetters()
	for _, o := range dead {
		if finished[o] {
			t.Errorf("%d was finished and is a dead letter", o)
		}
	}
	w.drained(dead...)
	// What neither was told to anybody nor came nor is listed was acked without an answer: no more than one for each crash.
	if open := records - len(finished) - len(dead); open < 0 || open > crashes {
		t.Errorf("%d finished, %d dead letters, %d records", len(finished), len(dead), records)
	}
	t.Logf("%d finished, %d of them in the end; %d dead letters", len(finished), len(came), len(dead))
}

// crashWithin is when a broker is killed that redrives: in the midst of it.
func crashWithin() time.Duration {
	if testkit.Raced {
		return 80 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// The disk is full when a record is to become a dead letter: it does not vanish meanwhile, and is one, or is handed out again, as soon as
// there is room.
//
// field case QUE-13 (ENOSPC)
func TestQUE13_AFullDiskLosesNoDeadLetter(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *groupOptions) { o.BackOff, o.MaxAttempts = nil, 1 })
	b := s.start(vfs.NewMem())
	w := s.connect(func(o *client.Options) { o.Attempts = 1 })
	w.publish(numbered(3)...)
	list := w.take(3, client.GroupPollOptions{Visibility: hour})
	if err := w.tryGiveUp(0); err != nil {
		t.Fatal(err)
	}
	full := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Match: isDeadLog, Err: syscall.ENOSPC})
	_ = w.tryGiveUp(list[1].Offset) // whatever is said
	_ = w.tryNack(list[2], 0)       // its only failure
	<-full.Reached()
	full.Remove()
	testkit.Eventually(t, "both are dead letters, or can be made so", func() bool {
		for _, m := range w.poll(client.GroupPollOptions{Max: 3, Visibility: hour}) {
			if err := w.tryGiveUp(m.Offset); err != nil {
				t.Logf("give up %d: %v", m.Offset, err)
			}
		}
		i := w.info()
		return i.DeadLetters == 3 && i.Committed == i.Tail // the latter once it is durable
	})
	w.drained(0, 1, 2)
	s.start(b.crash(unplugged))
	s.connect().drained(0, 1, 2)
}

// A group that nobody uses is let go of, and is what it was when it is asked again: what is in somebody's hands stays there.
//
// field case OPS-11 (groups)
func TestAnIdleGroupIsLetGoOfAndForgetsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *groupOptions) { o.IdleAfter = 100 * time.Millisecond })
	b := s.start(vfs.NewMem())
	w := s.connect()
	w.publish(numbered(4)...)
	list := w.take(4, client.GroupPollOptions{Visibility: hour})
	w.ack(list[0], list[1], list[3])
	if err := w.tryGiveUp(2); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the group is let go of", func() bool { return b.metric("felix_groups") == 0 })
	w.drained(2)
	w.publish("one more")
	same(t, "what comes", w.take(1, client.GroupPollOptions{Visibility: hour}), upTo(4, 5))
}
