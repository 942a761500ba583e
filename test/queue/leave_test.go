package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// A member that comes back on another connection gets what it held at once, as another delivery, and nobody else does meanwhile.
//
// matrix I23; field case QUE-11 (a return under the old name)
func TestI23_AMemberThatReturnsTakesItsOwnBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(vfs.NewMem())
	first, other := s.connect(), s.connect()
	first.publish(numbered(20)...)
	mine := client.GroupPollOptions{Visibility: hour, Member: "first"}
	same(t, "before", first.take(10, mine), upTo(0, 10))
	first.leave()
	rest := other.take(10, client.GroupPollOptions{Visibility: hour, Member: "other"})
	same(t, "the other's", rest, upTo(10, 20))
	mine.Reclaim = true
	again := s.connect()
	got := again.take(10, mine)
	same(t, "taken back", got, upTo(0, 10))
	attempts(t, got, 2)
	if more := other.poll(client.GroupPollOptions{Max: 10, Member: "other"}); len(more) > 0 {
		t.Errorf("the other got %d", more[0].Offset)
	}
	again.ack(got...)
	other.ack(rest...)
	other.drained()
}

// A worker takes fifty and does nothing more: it closes its connection in order, is silent, or lets go of its client. Each of the fifty comes
// to another once its visibility is over, and not sooner; that one waits for them with one poll, which the first of them ends.
//
// matrix I3; field case QUE-11 (a clean leave, silence); mission 264, mission 370 (redelivery)
func TestQUE11_WorkOfAWorkerThatLeavesComesAfterItsVisibility(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(worker){"in order": worker.leave, "in silence": func(worker) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const visible = 400 * time.Millisecond
			s := newSite(t, func(o *groupcore.Options) { o.BackOff, o.MaxWait = nil, testkit.Patience })
			s.start(vfs.NewMem())
			w, other := s.connect(), s.connect()
			w.publish(numbered(50)...)
			began := time.Now()
			held := w.poll(client.GroupPollOptions{Max: 50, Visibility: visible})
			came := time.Now()
			same(t, "taken", held, upTo(0, 50))
			leave(w)
			got := other.poll(client.GroupPollOptions{Max: 1, Wait: pollWait, Visibility: hour})
			if after := time.Since(began); after < visible {
				t.Errorf("the first came %v after the poll, and its visibility is %v", after, visible)
			}
			if after := time.Since(came); len(got) == 0 || after > visible+lag() {
				t.Errorf("%d came %v after they were taken, and their visibility is %v", len(got), after, visible)
			}
			got = append(got, other.take(50-len(got), client.GroupPollOptions{Visibility: hour})...)
			same(t, "what comes", got, upTo(0, 50))
			attempts(t, got, 2)
			other.ack(got...)
			other.drained()
		})
	}
}

// A worker is frozen with two handfuls, one for an hour and one for a second. Another one gets all others while the first handful is in the
// frozen hands, each once, and the second handful as another delivery, not before its visibility is over. When the first worker wakes up it can
// give nothing back and prolong nothing of the second; its acks of records that are finished change nothing, and those of the first settle.
//
// matrix I4, matrix I5; field case QUE-08 (a late ack settles, see there)
func TestQUE08_AFrozenWorkerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	const records, most, visible = 1000, 10, time.Second
	s := newSite(t, nil)
	s.start(vfs.NewMem())
	frozen, w := s.connect(), s.connect()
	for n := 0; n < records; n += 100 {
		frozen.publish(numbered(100)...)
	}
	long := frozen.take(most, client.GroupPollOptions{Visibility: hour})
	same(t, "the frozen worker's for an hour", long, upTo(0, most))
	began := time.Now() // its visibility begins later: when the records were claimed
	held := frozen.poll(client.GroupPollOptions{Max: most, Visibility: visible})
	same(t, "the frozen worker's for a second", held, upTo(most, 2*most))
	c := w.consume(client.ConsumeOptions{Concurrency: most, MaxInHand: most, Visibility: hour})
	var first, again []client.Message
	for range records - most {
		m := c.next()
		if m.Offset >= 2*most {
			first = append(first, m)
			continue
		}
		if after := time.Since(began); after < visible {
			t.Errorf("%d came %v after it was claimed for %v", m.Offset, after, visible)
		}
		again = append(again, m)
	}
	same(t, "the others", first, upTo(2*most, records))
	attempts(t, first, 1)
	same(t, "the frozen worker's, to the other", again, upTo(most, 2*most))
	attempts(t, again, 2)
	c.stop()
	for i, m := range held {
		switch i % 3 {
		case 0:
			stale(t, "nack", frozen.tryNack(m, 0))
		case 1:
			stale(t, "extend", frozen.tryExtend(m, time.Minute))
		default:
			if err := frozen.tryAck(m.Offset); err != nil {
				t.Errorf("a late ack of a finished record: %v", err)
			}
		}
	}
	frozen.ack(long...)
	w.drained()
}

// Everything is in a worker's hands when the broker is killed, or cut off from power: all of it comes again, as its second delivery.
//
// field case QUE-10, matrix L12 (as amended: the number of a delivery outlives its broker); mission 264
func TestQUE10_WorkInHandAtACrashComesAgain(t *testing.T) {
	t.Parallel()
	for name, end := range ends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := 1000
			if testkit.Raced {
				records = 250
			}
			s := newSite(t, nil)
			b := s.start(vfs.NewMem())
			w := s.connect()
			for n := 0; n < records; n += 250 {
				w.publish(numbered(250)...)
			}
			const settled = 1
			held := w.take(records, client.GroupPollOptions{Visibility: hour}) // so that nothing comes for want of time
			same(t, "before", held, upTo(0, id.Offset(records)))
			if err := w.tryAck(0); err != nil { // the numbers of deliveries are written with the poll, and not waited for; with the ack they are
				t.Fatal(err)
			}
			s.start(b.crash(end))
			w = s.connect()
			got := w.take(records-settled, client.GroupPollOptions{Visibility: hour})
			same(t, "again", got, upTo(settled, id.Offset(records)))
			attempts(t, got, 2)
			if i := w.info(); i.InFlight != uint64(records-settled) || i.Owed != 0 {
				t.Errorf("%+v", i)
			}
		})
	}
}

// Where the number of a delivery may stand for two of them, only the connection that got a record gives it back or keeps it. A client with
// several of them asks about a shard on one.
func TestAConsumerWithAPoolOfConnectionsKeepsItsClaims(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.start(vfs.NewMem())
	w := s.connect(func(o *client.Options) { *o = o.Pooled() })
	w.publish(numbered(6)...)
	for _, m := range w.take(2, client.GroupPollOptions{Visibility: hour}) {
		if err := w.tryExtend(m, hour); err != nil {
			t.Errorf("extend %d: %v", m.Offset, err)
		}
		if err := w.tryNack(m, 0); err != nil {
			t.Errorf("nack of %d, delivery %d, which stands: %v", m.Offset, m.Attempts, err)
		}
	}
	for visibility := 3 * time.Second; ; visibility *= 4 { // a machine that stands still for so long gets more
		lost, stale := w.keepsSix(visibility)
		if lost == 0 && stale == 0 {
			return
		}
		if 4*visibility > testkit.Patience {
			t.Fatalf("%d handlers were told that their claims are gone, and %d requests that they are stale", lost, stale)
		}
		w.publish(numbered(6)...)
	}
}

// keepsSix works on six records for longer than their claims stand, and returns how many were lost nevertheless.
func (w worker) keepsSix(visibility time.Duration) (told int64, stale uint64) {
	w.t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	var lost atomic.Int64
	release := make(chan struct{})
	c := must(w.Consume(ctx, namespace, jobs, w.group, func(ctx context.Context, _ client.Message) error {
		select {
		case <-ctx.Done():
			lost.Add(1)
		case <-release:
		}
		return nil
	}, client.ConsumeOptions{Concurrency: 6, Visibility: visibility}))(w.t)
	testkit.Eventually(w.t, "claims are prolonged", func() bool { s := c.Stats(); return s.Extended >= 6 || s.Stale > 0 })
	close(release)
	testkit.Eventually(w.t, "all is acked", func() bool { return c.Stats().Acked >= 6 })
	if err := c.Stop(ctx); err != nil {
		w.t.Error(err)
	}
	return lost.Load(), c.Stats().Stale
}
