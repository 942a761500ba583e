package queue

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

const (
	ledgerShards = 2
	ledgerWork   = 20                     // workers
	visibility   = 400 * time.Millisecond // of their claims
	lateBy       = 10 * time.Millisecond  // what is later than its visibility by this is late by every clock
)

// campaign is a daemon with a queue, its workers, and what they were told.
type campaign struct {
	*ledger
	d       *daemon
	stop    context.CancelFunc
	ctx     context.Context
	running sync.WaitGroup
	keys    [][]byte // one for each shard
	next    uint64   // record to publish
}

func newCampaign(t testing.TB) *campaign {
	x := &campaign{ledger: newLedger(t), d: newDaemon(t, "FELIX_GROUP_RETRY_BACKOFF_MS=0,10,20,40")}
	x.d.CreateStream(jobs, ledgerShards)
	x.ctx, x.stop = context.WithCancel(context.Background())
	t.Cleanup(x.end)
	c := x.d.Connect()
	ctx, cancel := testkit.Within()
	defer cancel()
	s := must(c.StreamShards(ctx, namespace, jobs))(t)
	x.keys = make([][]byte, s.Count)
	for n, found := byte(0), 0; found < len(x.keys); n++ {
		if shard := s.Routing.Shard([]byte{n}, true, s.Count); x.keys[shard] == nil {
			x.keys[shard], found = []byte{n}, found+1
		}
	}
	return x
}

// end stops the workers.
func (x *campaign) end() {
	x.stop()
	x.running.Wait()
}

// publish adds so many records, in batches. Nobody kills the daemon meanwhile.
func (x *campaign) publish(c *client.Client, n int) {
	x.d.t.Helper()
	for shard := 0; n > 0; shard = (shard + 1) % len(x.keys) {
		var numbers []uint64
		var payloads [][]byte
		for range min(n, 500) {
			numbers, payloads = append(numbers, x.next), append(payloads, record(x.next))
			x.next++
		}
		n -= len(numbers)
		x.ledger.publish(uint32(shard), numbers, func() (client.PublishResult, error) {
			ctx, cancel := testkit.Within()
			defer cancel()
			return c.PublishBatch(ctx, namespace, jobs, payloads, client.WithKey(x.keys[shard]))
		})
	}
}

// laborer is one of the workers: a process of its own, as far as the broker can tell.
type laborer struct {
	*campaign
	c     *client.Client
	r     *rand.Rand
	given int // deliveries
}

func (x *campaign) hire(seed uint64) {
	x.running.Go(func() {
		w := &laborer{campaign: x, r: rand.New(rand.NewPCG(seed, 5))}
		for x.ctx.Err() == nil {
			w.live()
		}
	})
}

// live is one life of a worker: from its connection to its crash.
func (w *laborer) live() {
	ctx, cancel := context.WithTimeout(w.ctx, testkit.Patience)
	c, err := w.d.dial(ctx)
	cancel()
	if err != nil {
		return // the daemon is being started
	}
	w.c = c
	defer testkit.HangUp(c)
	for w.ctx.Err() == nil {
		if w.round() {
			w.count(&w.met.crashes)
			return
		}
	}
}

// round is one poll and what becomes of it. It reports whether the worker crashes: then it settles nothing more of it.
func (w *laborer) round() (crashes bool) {
	shard, most := uint32(w.r.IntN(len(w.keys))), 1+w.r.IntN(32)
	ctx, cancel := context.WithTimeout(w.ctx, testkit.Patience)
	defer cancel()
	began, before := time.Now(), w.d.Life()
	list, err := w.c.GroupPoll(ctx, namespace, jobs, shard, workers, client.GroupPollOptions{Max: most, Wait: 50 * time.Millisecond, Visibility: visibility})
	if err != nil {
		return false // what it may have claimed comes again
	}
	var all sync.WaitGroup
	for _, d := range w.delivered(list, began, time.Now(), visibility, before, w.d.Life()) {
		if w.r.IntN(200) == 0 {
			crashes = true
			break
		}
		what := w.r.IntN(100)
		if w.given++; w.given%10 == 5 { // the rare ones are not left to chance alone
			what = []int{12, 13, 10, 14}[w.given/10%4]
		}
		all.Go(func() { w.handle(ctx, d, what) })
	}
	all.Wait()
	return crashes
}

// handle does to one record what chance says; one in so many fails always.
func (w *laborer) handle(ctx context.Context, d *delivery, what int) {
	poison := d.job.number%61 == 0
	switch {
	case poison && d.m.Attempts >= 3 && what < 50:
		w.ending(d, true)
		w.gaveUp(d, w.c.GroupDeadLetter(ctx, namespace, jobs, d.m.Shard, workers, d.m.Offset))
	case poison || what < 10:
		w.count(&w.met.nacked)
		w.ending(d, false)
		_ = w.nack(ctx, d) // in time or not: whatever is said, it comes again
	case what < 12:
		w.count(&w.met.dropped)
	case what < 14:
		w.stall(ctx, d, what%2 == 0)
	case what < 16:
		if began, err := time.Now(), w.extend(ctx, d); err == nil {
			w.extended(d, began, 2*visibility)
		}
		w.ack(ctx, d)
	default:
		w.ack(ctx, d)
	}
}

// stall lets the claim lapse, then tries what is too late, and at last acks, which is not.
func (w *laborer) stall(ctx context.Context, d *delivery, nack bool) {
	select {
	case <-time.After(time.Until(d.came.Add(visibility + lateBy))):
	case <-w.ctx.Done():
		return
	}
	if nack {
		err := w.nack(ctx, d)
		w.late(d, "nack", &w.met.lateNacks, w.sameLife(d), err)
	} else {
		err := w.extend(ctx, d)
		w.late(d, "extend", &w.met.lateExtends, w.sameLife(d), err)
	}
	w.count(&w.met.lateAcks)
	w.ack(ctx, d)
}

// sameLife reports whether the broker that handed out a record runs still, and was not away meanwhile.
func (w *laborer) sameLife(d *delivery) bool { return d.life >= 0 && d.life == w.d.Life() }

func (w *laborer) ack(ctx context.Context, d *delivery) {
	w.ending(d, true)
	err := w.c.GroupAck(ctx, namespace, jobs, d.m.Shard, workers, d.m.Offset)
	w.acked(d, w.sameLife(d), err)
}

func (w *laborer) nack(ctx context.Context, d *delivery) error {
	return w.c.GroupNack(ctx, namespace, jobs, d.m.Shard, workers, d.m.Offset, client.GroupNackOptions{Attempts: d.m.Attempts})
}

func (w *laborer) extend(ctx context.Context, d *delivery) error {
	_, err := w.c.GroupExtend(ctx, namespace, jobs, d.m.Shard, workers, d.m.Offset, d.m.Attempts, 2*visibility)
	return err
}

// drained reports whether the queue holds nothing that is not finished.
func (x *campaign) drained(c *client.Client) bool {
	for shard := range uint32(len(x.keys)) {
		ctx, cancel := testkit.Within()
		i, err := c.GroupDescribe(ctx, namespace, jobs, shard, workers)
		cancel()
		if err != nil || i.Lag() != 0 || i.InFlight != 0 || i.Owed != 0 {
			return false
		}
	}
	return true
}

// deadLetters are those of all shards.
func (x *campaign) deadLetters(c *client.Client) map[place]bool {
	x.d.t.Helper()
	all := map[place]bool{}
	for shard := range uint32(len(x.keys)) {
		ctx, cancel := testkit.Within()
		list := must(c.GroupDeadLetters(ctx, namespace, jobs, shard, workers))(x.d.t)
		cancel()
		for _, o := range list {
			if all[place{shard, o}] {
				x.d.t.Errorf("%d/%d is a dead letter twice", shard, o)
			}
			all[place{shard, o}] = true
		}
	}
	return all
}

// idle fails the test unless the metrics show nothing that is not finished, and so many dead letters.
func (x *campaign) idle(dead int) {
	x.d.t.Helper()
	page := x.d.Metrics()
	for name, want := range map[string]float64{
		"felix_group_lag_records": 0, "felix_group_in_flight": 0, "felix_group_owed": 0, "felix_group_delayed": 0, "felix_group_oldest_unsettled_seconds": 0, "felix_group_dead_letters": float64(dead),
	} {
		if got := x.d.value(page, name); got != want {
			x.d.t.Errorf("%s is %v after the drain, want %v", name, got, want)
		}
	}
}

// Workers crash, stall past their visibility, extend, nack, give up, forget and ack at random while the daemon is killed again and again.
// Each record is settled or a dead letter in the end, and never both; what is settled is never handed out again; nothing is stuck; two
// workers never hold one record; late nacks and extends are refused and late acks taken; no delivery is above the limit; and all gauges are
// zero once the queue is drained.
//
// mission 246, mission 248, mission 269; field case QUE-01 (one broker), DUR-11 (settlements)
func TestEveryRecordIsSettledOrADeadLetterOnceThroughEveryKill(t *testing.T) {
	t.Parallel()
	records, kills := size("queue_records"), size("queue_kills")
	x := newCampaign(t)
	c := x.d.Connect()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 6))
	x.publish(c, records/2)
	for n := range uint64(ledgerWork) {
		x.hire(seed + n)
	}
	slice := (records - records/2) / kills
	for n := range kills {
		due := records * (n + 1) / (kills + 2)
		if !eventually(t, x, "the workers go on", func() bool { return x.done() >= due }) {
			break
		}
		testkit.After(time.Duration(r.IntN(50)) * time.Millisecond)
		x.d.Kill()
		x.d.Start()
		if n == kills-1 {
			slice = records - int(x.next)
		}
		x.publish(x.d.Connect(), slice)
	}
	eventually(t, x, "the queue is drained", func() bool { return x.drained(c) })
	x.end()
	if !x.drained(c) {
		t.Error("the queue was drained, and is not any more")
	}
	dead := x.deadLetters(c)
	x.close(dead)
	x.idle(len(dead))
	if m := x.met; m.lateNacks*m.lateExtends*m.lateAcks*m.nacked*m.dropped*m.again == 0 || len(dead) == 0 || len(dead) == records {
		t.Errorf("the campaign met too little: %+v", m)
	}
	x.bury(dead)
}

// bury redrives half of the dead letters and discards the others. The daemon is killed before the former are handed out, and once all are
// finished: nothing comes again.
func (x *campaign) bury(dead map[place]bool) {
	t := x.d.t
	t.Helper()
	c := x.d.Connect()
	ctx, cancel := context.WithTimeout(context.Background(), 3*testkit.Patience)
	defer cancel()
	owed := map[place]bool{}
	for at := range dead {
		do := c.GroupDiscard
		if len(owed) <= len(dead)/2 {
			do = c.GroupRedrive
			owed[at] = true
		}
		if err := do(ctx, namespace, jobs, at.shard, workers, at.offset); err != nil {
			t.Fatalf("%v: redrive or discard: %v", at, err)
		}
	}
	x.d.Kill()
	x.d.Start()
	c = x.d.Connect()
	for shard := range uint32(len(x.keys)) {
		for {
			list := must(c.GroupPoll(ctx, namespace, jobs, shard, workers, client.GroupPollOptions{Max: 100, Visibility: hour}))(t)
			if len(list) == 0 {
				break
			}
			for _, m := range list {
				if at := (place{shard, m.Offset}); !owed[at] {
					t.Errorf("%v was handed out and not redriven, or twice", at)
				} else {
					delete(owed, at)
				}
				if err := c.GroupAck(ctx, namespace, jobs, shard, workers, m.Offset); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(owed) > 0 {
		t.Errorf("%d redriven records did not come after a kill", len(owed))
	}
	x.d.Kill()
	x.d.Start()
	c = x.d.Connect()
	for shard := range uint32(len(x.keys)) {
		if list := must(c.GroupPoll(ctx, namespace, jobs, shard, workers, client.GroupPollOptions{Max: 100, Visibility: hour}))(t); len(list) > 0 {
			t.Errorf("%d records came after everything was finished, the first %d/%d", len(list), shard, list[0].Offset)
		}
	}
	if left := x.deadLetters(c); len(left) > 0 || !x.drained(c) {
		t.Errorf("%d dead letters are left, drained: %t", len(left), x.drained(c))
	}
	x.idle(0)
}

// eventually waits for cond as long as records are being settled, and a while longer.
func eventually(t testing.TB, x *campaign, what string, cond func() bool) bool {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for last, moved := x.done(), time.Now(); !cond(); <-look.C {
		if n := x.done(); n != last {
			last, moved = n, time.Now()
		}
		if time.Since(moved) > testkit.Patience {
			t.Errorf("it never happened: %s; %d are settled", what, last)
			return false
		}
	}
	return true
}
