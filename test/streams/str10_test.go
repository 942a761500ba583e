package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
)

// field case STR-10: with a batching delay of 2 ms, records that come each 0.2, 1, 1.9 or 2.1 ms are delivered at most the delay and 2 ms
// (at a landing: some more) later than by a broker without a delay, of which windows are measured in turn with its own. How late timers are on
// this machine is measured beside it and does not count.
func TestSTR10_BatchingAddsNoMoreThanItsDelay(t *testing.T) {
	const delay = 2 * time.Millisecond
	ctx := patient(t)
	with, without := newPace(t, delay), newPace(t, 0)
	more := again()
	for _, every := range []time.Duration{200 * time.Microsecond, time.Millisecond, 1900 * time.Microsecond, 2100 * time.Microsecond} {
		lasting := max(40*time.Millisecond, time.Duration(testkit.Size("paced_millis"))*time.Millisecond/time.Duration(2*pairs()))
		var added, plain, late []time.Duration
		for {
			for range pairs() {
				p := testkit.Percentile(without.measure(ctx, every, lasting), 99)
				timers := lateness(delay)
				added = append(added, testkit.Percentile(with.measure(ctx, every, lasting), 99)-p)
				plain, late = append(plain, p), append(late, testkit.Percentile(timers(), 99))
			}
			if testkit.Median(added) <= delay+margin()+testkit.Median(late) || !more() {
				break
			}
		}
		got := testkit.Median(added)
		t.Logf("a record each %v: p99 %v without a delay, %v more with one of %v; p99 of how late any timer is %v",
			every, testkit.Median(plain), got, delay, testkit.Median(late))
		if got > delay+margin()+testkit.Median(late) {
			t.Errorf("a record each %v: a delay of %v adds %v to p99", every, delay, got)
		}
	}
}

// lateness measures how late timers of that length are on this machine, until the function that it returns is called: what they are, no
// broker can do better.
func lateness(of time.Duration) (end func() []time.Duration) {
	stop, all := make(chan struct{}), make(chan []time.Duration, 1)
	go func() {
		var late []time.Duration
		timer := time.NewTimer(of)
		defer timer.Stop()
		for began := time.Now(); ; began = time.Now() {
			select {
			case <-timer.C:
				late = append(late, time.Since(began)-of)
				timer.Reset(of)
			case <-stop:
				all <- late
				return
			}
		}
	}()
	return func() []time.Duration { close(stop); return <-all }
}

// margin is by how much p99 may differ for other reasons than a delay.
func margin() time.Duration {
	switch {
	case effort.Full():
		return 2 * time.Millisecond
	case testkit.Raced:
		return 50 * time.Millisecond
	}
	return 10 * time.Millisecond // at a landing, other packages are tested on the same cores
}

// field case STR-10: with a delay so long that nothing else can be taken for it. Records that come all the time wait for the delay from
// the first of their batch on, and not from the newest; and a lone record after a pause does not wait. On a machine that is itself so slow, longer
// delays are tried, until nothing but the delay can be meant.
func TestSTR10_TheDelayCountsFromTheFirstRecordAndALoneOneDoesNotWait(t *testing.T) {
	aside(t)
	const first, most = 250 * time.Millisecond, 10 * time.Second
	for delay := first; ; delay *= 2 {
		wrong := delayed(t, delay)
		if wrong == nil {
			return
		}
		t.Logf("with a delay of %v: %v", delay, wrong)
		if 2*delay > most {
			t.Errorf("no delay was kept: %v", wrong)
			return
		}
	}
}

// delayed says what is wrong with how a broker keeps a delay.
func delayed(t *testing.T, delay time.Duration) error {
	t.Helper()
	every := delay / 12
	ctx := patient(t)
	p := newPace(t, delay)
	if took := slices.Max(p.measure(ctx, every, every/2)); took > delay/2 {
		return fmt.Errorf("the first record of all took %v", took)
	}
	p.b.Fault(testkit.Fault{Do: "pause", Stream: orders, For: 10 * testkit.Patience})
	for range 20 { // these meet in the queue
		p.send(ctx)
	}
	p.b.Counts("felix_published_records_total", float64(p.sent))
	p.b.Fault(testkit.Fault{Do: "heal", Stream: orders})
	times := p.measure(ctx, every, 3*delay)
	t.Logf("records each %v with a delay of %v: median %v, at most %v", every, delay, testkit.Median(times), slices.Max(times))
	if testkit.Median(times) < delay/4 {
		return errors.New("records did not wait for each other: the delay was never in use")
	}
	if took := slices.Max(times); took > delay*3/2 {
		return fmt.Errorf("a record took %v", took)
	}
	testkit.After(delay)
	if took := slices.Max(p.measure(ctx, every, every/2)); took > delay/2 {
		return fmt.Errorf("a lone record after a pause took %v: it waited for others", took)
	}
	return nil
}

// pace publishes records one at a time to a broker of its own and notes how long each takes to its subscriber.
type pace struct {
	t     testing.TB
	b     *testkit.Broker
	c     *client.Client
	began time.Time
	sent  int

	mu    sync.Mutex
	came  sync.Cond
	times []time.Duration // of all records
	wrong error
}

func newPace(t testing.TB, delay time.Duration) *pace {
	limits := node.DefaultLimits()
	limits.Delivery.MaxDelay = delay
	b := start(t, testkit.Setup{Limits: &limits})
	p := &pace{t: t, b: b, c: b.Client(t), began: time.Now()}
	p.came.L = &p.mu
	s := subscribe(t, b.Client(t), orders, client.SubscribeOptions{})
	var reading sync.WaitGroup
	reading.Go(func() { p.read(s) })
	t.Cleanup(func() { s.Close(); reading.Wait() })
	return p
}

// read notes what comes. A record's number is when it was sent.
func (p *pace) read(s *client.Subscription) {
	for e, err := range s.Events(context.Background()) {
		p.mu.Lock()
		if err == nil {
			p.times = append(p.times, time.Since(p.began)-time.Duration(numberOf(e.Payload)))
		} else if !errors.Is(err, client.ErrClosed) {
			p.wrong = err
		}
		p.came.Broadcast()
		p.mu.Unlock()
	}
}

func (p *pace) send(ctx context.Context) {
	p.t.Helper()
	n := uint64(time.Since(p.began))
	if _, err := p.c.PublishAsync(ctx, namespace, orders, record(n, 8), client.WithAck(client.AckNone)); err != nil {
		p.t.Fatal(err)
	}
	p.sent++
}

// measure sends a record in each interval for some time, at least one, and returns how long they took, once the last has come.
func (p *pace) measure(ctx context.Context, every, lasting time.Duration) []time.Duration {
	p.t.Helper()
	first := p.sent
	tick := time.NewTicker(every)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		p.send(ctx)
		if time.Since(began) >= lasting {
			break
		}
	}
	began := time.Now()
	late := time.AfterFunc(patience, func() { // wakes the wait, which then fails
		p.mu.Lock()
		defer p.mu.Unlock()
		p.came.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.times) < p.sent && p.wrong == nil && time.Since(began) < patience {
		p.came.Wait()
	}
	if len(p.times) < p.sent {
		p.t.Fatalf("%d of %d records came: %v", len(p.times), p.sent, p.wrong)
	}
	return slices.Clone(p.times[first:])
}
