package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func closePool(t *testing.T, p *workerPool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.close(ctx); err != nil {
		t.Error(err)
	}
}

func TestThePoolReusesItsGoroutines(t *testing.T) {
	p := newWorkerPool(NewManualClock(time.Unix(0, 0)))
	defer closePool(t, p)
	done := make(chan struct{})
	for range 1000 {
		p.Schedule(func() { done <- struct{}{} })
		wait(t, done, "run")
	}
	if workers, _ := p.size(); workers > 4 {
		t.Errorf("1,000 runs one after the other used %d goroutines", workers)
	}
}

func TestIdleWorkersEndAfterAWhile(t *testing.T) {
	clock := NewManualClock(time.Unix(0, 0))
	p := newWorkerPool(clock)
	defer closePool(t, p)
	gate, running := make(chan struct{}), make(chan struct{})
	for range 10 {
		p.Schedule(func() { running <- struct{}{}; <-gate })
	}
	for range 10 {
		wait(t, running, "run")
	}
	if workers, idle := p.size(); workers != 10 || idle != 0 {
		t.Fatalf("%d workers, %d idle", workers, idle)
	}
	close(gate)
	for _, idle := p.size(); idle != 10; _, idle = p.size() {
		done := make(chan struct{})
		go close(done)
		<-done
	}
	clock.Advance(workerIdleAfter) // armed when the first became idle
	for range 10 {
		clock.Advance(workerIdleAfter)
	}
	if workers, _ := p.size(); workers != 0 {
		t.Errorf("%d workers left", workers)
	}
	if clock.Pending() != 0 {
		t.Error("a pool without workers keeps a timer")
	}
}

func TestThePoolIsBoundedAndRunsEverythingInTheEnd(t *testing.T) {
	p := newWorkerPool(RealClock())
	gate := make(chan struct{})
	var ran sync.WaitGroup
	const runs = workersMax + 1000
	ran.Add(runs)
	for range runs {
		p.Schedule(func() { <-gate; ran.Done() })
	}
	if workers, _ := p.size(); workers != workersMax {
		t.Errorf("%d workers", workers)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.close(ctx); !errors.Is(err, errPoolBusy) || !errors.Is(err, context.Canceled) {
		t.Errorf("closing a busy pool: %v", err)
	}
	close(gate)
	ran.Wait()
	closePool(t, p)
	late := make(chan struct{})
	p.Schedule(func() { close(late) }) // a last turn after the close still runs
	wait(t, late, "late run")
}

// busyShards spawns n actors of a tenant that always have work: each message comes back with the same size.
func busyShards(t *testing.T, s *System, tenant string, n, bytes int, stepped *atomic.Int64) {
	for i := range n {
		ref := spawn(t, s, Spec[int]{Name: fmt.Sprintf("%s-%d", tenant, i), Kind: "shard", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
			for range turn.Messages() {
				stepped.Add(int64(bytes))
				_ = RefOf[int](turn).TrySend(0, bytes)
			}
		})})
		for range 64 {
			if err := ref.TrySend(0, bytes); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// mission 208
func TestATenantWithAThousandShardsGetsNoMoreThanOneWithOne(t *testing.T) {
	for _, c := range []struct{ manyBytes, oneBytes int }{{1024, 1024}, {8192, 100}, {100, 8192}} {
		s, h, _ := newHandDriven(t, Options{Executors: 1})
		var many, one atomic.Int64
		busyShards(t, s, "many", 1000, c.manyBytes, &many)
		busyShards(t, s, "one", 1, c.oneBytes, &one)
		for range 2000 { // the Started turns and the first rounds
			h.one()
		}
		many.Store(0)
		one.Store(0)
		for range 4_000 {
			h.one()
		}
		share := float64(one.Load()) / float64(one.Load()+many.Load())
		if share < 0.4 || share > 0.6 {
			t.Errorf("%+v: the tenant with one shard got %.2f of the bytes (%d of %d)", c, share, one.Load(), one.Load()+many.Load())
		}
	}
}

func TestAnOversizedMessageIsPaidForInLaterRounds(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{Executors: 1})
	var steady atomic.Int64
	busyShards(t, s, "steady", 1, 1024, &steady)
	huge := 0
	ref := spawn(t, s, Spec[int]{Name: "huge", Kind: "shard", Tenant: "huge", Bounds: roomy(), New: start(func(turn *Turn) { huge += len(turn.Messages()) })})
	for range 10 {
		_ = ref.TrySend(0, 8<<20)
	}
	for huge < 2 {
		h.one()
	}
	before := steady.Load()
	for huge < 3 {
		h.one()
	}
	if got := steady.Load() - before; got < 7<<20 || got > 10<<20 {
		t.Errorf("between two messages of 8 MiB the other tenant stepped %d bytes, want about 8 MiB", got)
	}
}

func TestADebtIsForgivenWhenNobodyWasWaiting(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{Executors: 1})
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "shard", Tenant: "a", Bounds: roomy(), New: start(func(*Turn) {})})
	_ = ref.TrySend(0, 100<<20)
	h.all()
	_ = ref.TrySend(0, 1)
	tenant := ref.b.tenant
	if tenant.deficit != quantumBytes {
		t.Errorf("deficit %d after the dispatcher was idle", tenant.deficit)
	}
	h.all()
	ref.Stop()
	h.all()
	if len(s.fair.tenants) != 0 {
		t.Errorf("%d tenants without actors", len(s.fair.tenants))
	}
}

func TestExecutorsAreNeverMoreThanConfigured(t *testing.T) {
	for _, n := range []int{1, 3} {
		s := newSystem(t, Options{Executors: n})
		var now, most atomic.Int64
		var left sync.WaitGroup
		for i := range 40 {
			ref := spawn(t, s, Spec[int]{Name: fmt.Sprint(i), Kind: "shard", Tenant: fmt.Sprint(i % 7), Bounds: roomy(), New: start(func(turn *Turn) {
				k := now.Add(1)
				for m := most.Load(); k > m && !most.CompareAndSwap(m, k); m = most.Load() {
				}
				for range turn.Messages() {
					left.Done()
				}
				now.Add(-1)
			})})
			left.Add(100)
			for range 100 {
				_ = ref.TrySend(0, 1000)
			}
		}
		left.Wait()
		if most.Load() > int64(n) {
			t.Errorf("%d turns at once with %d executors", most.Load(), n)
		}
	}
	mustPanic(t, "executors out of range", func() { NewSystem(Options{Executors: executorsMax + 1}) })
}
