package diskpool

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// With one worker the order of starts is the order of submission.
func TestJobsOfOneDeviceAndKindStartInOrder(t *testing.T) {
	p, _ := newPool(t, Workers{1, 1, 1})
	const n = 200
	var got []int
	done := make(chan struct{})
	gate := make(chan struct{})
	p.Go(Job{Kind: Write, Run: func() { <-gate }})
	for i := range n {
		p.Go(Job{Kind: Write, Owner: i, Run: func() { got = append(got, i) }})
	}
	p.Go(Job{Kind: Write, Run: func() { close(done) }})
	close(gate)
	await(t, "last job", done)
	if len(got) != n || !slices.IsSorted(got) {
		t.Fatalf("started %v", got)
	}
}

func TestThousandHungJobsHoldABoundedNumberOfGoroutinesOfOneDeviceOnly(t *testing.T) {
	p, _ := newPool(t, Workers{})
	release := make(chan struct{})
	var ended sync.WaitGroup
	for i := range 1000 {
		for _, k := range Kinds() {
			ended.Add(1)
			p.Go(Job{Device: 1, Kind: k, Owner: i, Run: func() { <-release; ended.Done() }})
		}
	}
	s := p.Stats()
	w := DefaultWorkers()
	if s.Workers != w.Write+w.Sync+w.Work || s.Of(Sync) != (Count{Running: w.Sync, Queued: 1000 - w.Sync}) {
		t.Fatalf("%+v", s)
	}
	// Another device knows nothing of it, however its own jobs go.
	for i := range 100 {
		done := make(chan struct{})
		p.Go(Job{Device: 2, Kind: Sync, Owner: -1 - i, Run: func() { close(done) }})
		await(t, "job of a healthy device", done)
	}
	close(release)
	ended.Wait()
	until(t, "nothing left", func() bool { return p.Stats().Jobs == [kinds]Count{} })
}

func TestKindsOfOneDeviceDoNotShareWorkers(t *testing.T) {
	p, _ := newPool(t, Workers{Write: 1, Sync: 1, Work: 1})
	release := make(chan struct{})
	defer close(release)
	for i := range 10 {
		p.Go(Job{Kind: Sync, Owner: i, Run: func() { <-release }})
		p.Go(Job{Kind: Work, Owner: i, Run: func() { <-release }})
	}
	done := make(chan struct{})
	p.Go(Job{Kind: Write, Run: func() { close(done) }})
	await(t, "write beside hung syncs", done)
}

func TestStalledAndBackAreCalledOnceAndInThatOrder(t *testing.T) {
	p, clock := newPool(t, Workers{1, 1, 1})
	release, calls := make(chan struct{}), make(chan string, 100)
	job := func(name string, o any) Job {
		return Job{
			Kind: Sync, Owner: o, Run: func() { <-release; calls <- name + " ran" },
			Stalled: func() { calls <- name + " stalled" }, Back: func() { calls <- name + " back" },
		}
	}
	p.Go(job("running", 1))
	p.Go(job("queued", 2))
	clock.pass(StallAfter - 1)
	p.Go(job("young", 3))
	if len(calls) != 0 || p.Stats().Of(Sync).Stalled != 0 {
		t.Fatal("stalled too early")
	}
	clock.pass(1)
	for _, want := range []string{"running stalled", "queued stalled"} {
		if got := await(t, want, calls); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	if s := p.Stats(); s.Of(Sync) != (Count{Running: 1, Queued: 2, Stalled: 2}) || s.Oldest != StallAfter {
		t.Fatalf("%+v", s)
	}
	clock.pass(StallAfter - 2)
	if len(calls) != 0 {
		t.Fatalf("told again: %s", <-calls)
	}
	close(release)
	for _, want := range []string{"running ran", "running back", "queued ran", "queued back", "young ran"} {
		if got := await(t, want, calls); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	until(t, "nothing left", func() bool { return p.Stats().Jobs == [kinds]Count{} })
	if clock.pass(time.Hour); len(calls) != 0 {
		t.Fatalf("told at the end: %s", <-calls)
	}
}

// A job that ends while somebody is being told of its stall is back after that, on whichever goroutine.
func TestBackWaitsForStalled(t *testing.T) {
	p, clock := newPool(t, Workers{1, 1, 1})
	release, ran, back := make(chan struct{}), make(chan struct{}), make(chan bool, 2)
	var told atomic.Bool
	p.Go(Job{Kind: Sync, Run: func() { <-release; close(ran) },
		Stalled: func() {
			close(release)
			<-ran
			until(t, "job ended", func() bool { return p.Stats().Of(Sync).Running == 0 })
			told.Store(true)
		},
		Back: func() { back <- told.Load() },
	})
	clock.pass(StallAfter)
	if !await(t, "back", back) {
		t.Fatal("back before stalled returned")
	}
}

func TestOneOwnersJobsOfAKindNeverRunAtOnce(t *testing.T) {
	p, _ := newPool(t, Workers{8, 8, 8})
	var at atomic.Int32
	var order []int
	done := make(chan struct{})
	var submit func(i int)
	submit = func(i int) {
		p.Go(Job{Kind: Write, Owner: "log", Run: func() {
			if at.Add(1) != 1 {
				t.Error("two at once")
			}
			order = append(order, i)
			if i < 500 {
				submit(i + 1) // waits until this one has returned
			} else {
				close(done)
			}
			at.Add(-1)
		}})
	}
	submit(0)
	await(t, "last job", done)
	if got := p.Stats().Workers; got != 1 {
		t.Fatalf("%d workers for one job at a time", got)
	}
	if len(order) != 501 || !slices.IsSorted(order) {
		t.Fatalf("%d jobs, sorted %v", len(order), slices.IsSorted(order))
	}
}

// The successor does not push in: jobs that wait for a worker go first.
func TestSuccessorGoesBehindThoseThatWait(t *testing.T) {
	p, _ := newPool(t, Workers{1, 1, 1})
	calls := make(chan string, 10)
	gate := make(chan struct{})
	say := func(s string) func() { return func() { calls <- s } }
	p.Go(Job{Kind: Write, Owner: "a", Run: func() {
		<-gate
		p.Go(Job{Kind: Write, Owner: "a", Run: say("a2")})
	}})
	p.Go(Job{Kind: Write, Owner: "b", Run: say("b")})
	close(gate)
	for _, want := range []string{"b", "a2"} {
		if got := await(t, want, calls); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

func TestSecondJobThatWaitsForItsOwnerIsRefusedLoudly(t *testing.T) {
	p, _ := newPool(t, Workers{1, 1, 1})
	gate := make(chan struct{})
	defer close(gate)
	j := Job{Kind: Sync, Owner: "log", Run: func() { <-gate }}
	p.Go(j)
	p.Go(j)
	p.Go(Job{Kind: Write, Owner: "log", Run: func() {}}) // another kind
	defer func() {
		if recover() == nil {
			t.Error("three jobs of one owner and kind were taken")
		}
	}()
	p.Go(j)
}

func TestGoroutinesAndTimerAreGoneAfterIdling(t *testing.T) {
	p, clock := newPool(t, Workers{4, 4, 4})
	var ended sync.WaitGroup
	gate := make(chan struct{})
	for i := range 12 {
		ended.Add(1)
		p.Go(Job{Kind: Kinds()[i%3], Run: func() { <-gate; ended.Done() }})
	}
	close(gate)
	ended.Wait()
	until(t, "all idle", func() bool { return p.Stats().Idle == 12 })
	if clock.pending() != 1 {
		t.Fatalf("%d timers", clock.pending())
	}
	clock.pass(idleAfter / 2)
	done := make(chan struct{})
	p.Go(Job{Kind: Write, Run: func() { close(done) }})
	await(t, "job", done)
	until(t, "idle again", func() bool { return p.Stats().Idle == 12 })
	clock.pass(idleAfter / 2)
	if s := p.Stats(); s.Workers != 1 {
		t.Fatalf("%d workers, want the one that worked last", s.Workers)
	}
	clock.pass(idleAfter / 2)
	if s := p.Stats(); s != (Stats{}) || clock.pending() != 0 {
		t.Fatalf("%+v and %d timers", s, clock.pending())
	}
	// And it starts anew.
	done = make(chan struct{})
	p.Go(Job{Kind: Write, Run: func() { close(done) }})
	await(t, "job after the pause", done)
}

// However many jobs pass through, there is one timer.
func TestOneTimerForAllJobs(t *testing.T) {
	p, clock := newPool(t, Workers{2, 2, 2})
	gate := make(chan struct{})
	for i := range 100 {
		p.Go(Job{Device: uint64(i % 5), Kind: Write, Run: func() { <-gate }})
		clock.pass(time.Millisecond)
		if clock.pending() != 1 {
			t.Fatalf("%d timers", clock.pending())
		}
	}
	close(gate)
}

func TestClosedPoolKeepsNoWorker(t *testing.T) {
	p := New(Options{})
	gate, done := make(chan struct{}), make(chan struct{})
	p.Go(Job{Kind: Work, Owner: 1, Run: func() { <-gate }})
	p.Go(Job{Kind: Work, Owner: 1, Run: func() { close(done) }})
	gone := p.Close()
	select {
	case <-gone:
		t.Fatal("gone with a job")
	default:
	}
	close(gate)
	await(t, "job that waited", done)
	await(t, "workers gone", gone)
	if s := p.Stats(); s != (Stats{}) {
		t.Fatalf("%+v", s)
	}
	await(t, "closed again", p.Close())
	late := make(chan struct{})
	p.Go(Job{Kind: Work, Run: func() { close(late) }})
	await(t, "late job", late)
}

func TestABusyOwnerMakesNoGarbage(t *testing.T) {
	p, _ := newPool(t, Workers{1, 1, 1})
	done := make(chan struct{})
	j := Job{Kind: Sync, Owner: "log", Run: func() { done <- struct{}{} }, Stalled: func() {}, Back: func() {}}
	round := func() { p.Go(j); <-done }
	round()
	if got := testing.AllocsPerRun(200, round); got > 0.5 {
		t.Fatalf("%.1f allocations per job", got)
	}
}

func TestTimersOfTheMachine(t *testing.T) {
	p := New(Options{})
	rang := make(chan struct{})
	p.After(time.Millisecond, func() { close(rang) })
	await(t, "timer", rang)
	if stop := p.After(time.Hour, func() {}); !stop() || stop() {
		t.Fatal("stop")
	}
	if d := time.Since(p.Now()); d < 0 || d > time.Minute {
		t.Fatalf("clock is off by %s", d)
	}
}

func TestBadJobsAndOptionsPanic(t *testing.T) {
	p := New(Options{})
	for name, f := range map[string]func(){
		"no kind":    func() { p.Go(Job{Run: func() {}}) },
		"no run":     func() { p.Go(Job{Kind: Write}) },
		"no workers": func() { New(Options{Workers: Workers{Write: 1}}) },
		"no slots":   func() { NewReadSlots(0) },
		"release":    func() { NewReadSlots(1).Release("nobody") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestKindNames(t *testing.T) {
	for i, want := range []string{"write", "sync", "work"} {
		if got := Kinds()[i].String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := Kind(9).String(); got != "kind 9" {
		t.Error(got)
	}
}

// Many owners, devices and clocks at once, under the race detector.
func TestPoolUnderLoad(t *testing.T) {
	p, clock := newPool(t, Workers{3, 2, 1})
	var ran atomic.Int32
	var stalls atomic.Int32
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 200 {
				done := make(chan struct{})
				p.Go(Job{Device: uint64(g % 2), Kind: Kinds()[i%3], Owner: g, Run: func() { ran.Add(1); close(done) },
					Stalled: func() { stalls.Add(1) }, Back: func() { stalls.Add(-1) }})
				<-done
			}
		})
	}
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				clock.pass(time.Second)
			}
		}
	})
	all.Wait()
	until(t, "every stall ended", func() bool { return p.Stats().Jobs == [kinds]Count{} && stalls.Load() == 0 })
	close(stop)
	ticking.Wait()
	if ran.Load() != 1600 {
		t.Fatalf("%d jobs ran", ran.Load())
	}
}
