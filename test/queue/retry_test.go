package queue

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

type groupOptions = groupcore.Options

// A worker takes a hundred at a time and dies of the bad one each time, before it has touched what follows. What was delivered before is handed
// out alone, so that the bad one fails alone from then on: it is a dead letter, and no good one is.
//
// field case QUE-05; mission 266
func TestQUE05_APoisonRecordDoesNotUseUpTheAttemptsOfItsNeighbours(t *testing.T) {
	t.Parallel()
	const batch, visible = 100, 100 * time.Millisecond
	rounds := size("poison_rounds")
	s := newSite(t, func(o *groupOptions) { o.MaxAttempts, o.BackOff = 3, nil })
	s.start(vfs.NewMem())
	w := s.connect()
	for range rounds {
		w.publish(numbered(batch)...)
	}
	bad := func(o id.Offset) bool { return o%batch == 37 }
	var want []id.Offset
	for n := range rounds {
		want = append(want, id.Offset(n*batch+37))
	}
	late := time.Now().Add(2 * testkit.Patience)
	for i := w.info(); i.Committed != i.Tail; i = w.info() {
		if time.Now().After(late) {
			t.Fatalf("the group stands: %+v", i)
		}
		for _, m := range w.poll(client.GroupPollOptions{Max: batch, Wait: visible, Visibility: visible}) {
			if bad(m.Offset) {
				break // it dies; a claim ends by its visibility, whoever polls next
			}
			if err := w.tryAck(m.Offset); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.drained(want...)
}

// Records fail in each way that there is, and come again after the pause of their failure, never earlier and little later: a plain nack, a nack
// with a delay of its own, a visibility that is over, with the worker there and with its connection gone.
//
// field case QUE-07
func TestQUE07_RetryDelaysApplyToEveryWayOfFailing(t *testing.T) {
	t.Parallel()
	pauses := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	const own = 330 * time.Millisecond
	records := size("retried_records")
	for name, way := range map[string]struct {
		fail    func(w worker, m client.Message)
		visible time.Duration
		gap     func(failures int) time.Duration // from the nack, or from the end of the visibility
	}{
		"nack":           {func(w worker, m client.Message) { w.nack(m, 0) }, hour, func(n int) time.Duration { return pauses[n-1] }},
		"nack and delay": {func(w worker, m client.Message) { w.nack(m, own) }, hour, func(int) time.Duration { return own }},
		"visibility":     {nil, 150 * time.Millisecond, func(n int) time.Duration { return pauses[n-1] }},
		"disconnect":     {func(w worker, _ client.Message) { w.leave() }, 150 * time.Millisecond, func(n int) time.Duration { return pauses[n-1] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(o *groupOptions) { o.BackOff, o.MaxWait = pauses, testkit.Patience })
			s.start(vfs.NewMem())
			w, other := s.connect(), s.connect()
			w.publish(numbered(records)...)
			finished := 0 // that came for the last time while others had failures to come
			type fate struct{ soonest, latest time.Time }
			due := map[id.Offset]fate{}
			for left := records * len(pauses); left > 0; {
				victim := w
				if name == "disconnect" {
					victim = s.connect()
				}
				began := time.Now()
				list := victim.poll(client.GroupPollOptions{Max: 100, Wait: pollWait, Visibility: way.visible})
				came := time.Now()
				for _, m := range list {
					f, again := due[m.Offset]
					switch asked := later(f.latest, began); { // nobody gets anything before he asks
					case again && came.Before(f.soonest):
						t.Errorf("%d came %v too early as delivery %d", m.Offset, f.soonest.Sub(came), m.Attempts)
					case again && came.Sub(asked) > lag():
						t.Errorf("%d came %v too late as delivery %d", m.Offset, came.Sub(asked), m.Attempts)
					}
					if int(m.Attempts) > len(pauses) {
						other.ack(m)
						finished++
						continue
					}
					left--
					gap, soonest, latest := way.gap(int(m.Attempts)), began.Add(way.visible), came.Add(way.visible)
					if way.visible == hour {
						soonest = time.Now()
					}
					if way.fail != nil {
						way.fail(victim, m)
					}
					if way.visible == hour {
						latest = time.Now()
					}
					due[m.Offset] = fate{soonest.Add(gap), latest.Add(gap)}
				}
			}
			last := w.take(records-finished, client.GroupPollOptions{Visibility: hour})
			for _, m := range last {
				if m.Attempts != uint32(len(pauses)+1) {
					t.Errorf("%d came as delivery %d in the end", m.Offset, m.Attempts)
				}
			}
			w.ack(last...)
			w.drained()
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Workers give everything back at once, for as long as they may, with no limit to failures. Pauses slow them down; what they write does not
// grow the disk beyond a bound; and the queue drains when they stop, also after a restart.
//
// field case QUE-06
func TestQUE06_EndlessNacksDoNotGrowTheLog(t *testing.T) {
	t.Parallel()
	const records, pause = 1000, 50 * time.Millisecond
	length := time.Duration(size("nack_millis")) * time.Millisecond
	s := newSite(t, func(o *groupOptions) { o.MaxAttempts, o.BackOff = 0, []time.Duration{pause} })
	b := s.start(vfs.NewMem())
	w := s.connect()
	for n := 0; n < records; n += 50 {
		list := numbered(50)
		for i := range list {
			list[i] = fmt.Sprintf("%-1024s", list[i])
		}
		w.publish(list...)
	}
	stored, most, nacks := b.mem.Used(), int64(0), 0
	var calls sync.WaitGroup
	began := time.Now()
	for time.Since(began) < length {
		for _, m := range w.poll(client.GroupPollOptions{Max: 100, Wait: pause, Visibility: hour}) {
			nacks++
			calls.Go(func() { w.nack(m, 0) })
		}
		calls.Wait()
		most = max(most, b.mem.Used())
	}
	t.Logf("%d nacks; %d KiB stored, at most %d KiB more for the group", nacks, stored>>10, (most-stored)>>10)
	if took := time.Since(began); nacks > records*(int(took/pause)+1) {
		t.Errorf("%d nacks in %v, and the pauses allow %d", nacks, took, records*(int(took/pause)+1))
	}
	if more := most - stored; more > 64<<20 {
		t.Errorf("the disk grew by %d bytes", more)
	}
	b.stop()
	s.start(b.mem)
	w = s.connect()
	c := w.consume(client.ConsumeOptions{Concurrency: 64, Visibility: hour})
	var got []id.Offset
	for range records {
		got = append(got, c.next().Offset)
	}
	c.stop()
	if slices.Sort(got); !slices.Equal(got, upTo(0, records)) {
		t.Errorf("%d records came once the nacks were over, each of %d was to come once", len(got), records)
	}
	w.drained()
}
