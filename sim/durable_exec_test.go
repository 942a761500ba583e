package main

import (
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/storage/diskpool"
)

// simDisk is an executor in a world of its own.
func simDisk() (*drun, *simExec) {
	r := &drun{world: simrt.New(simrt.Options{Seed: 1}), lives: 1}
	r.plan.Disk.JobTime = time.Millisecond
	x := &simExec{run: r, life: r.world.NewLife(), waits: map[execKey]bool{}}
	x.clock = x.life.Clock(r.world.Clock("n1/clock", 1_000_000, 0))
	return r, x
}

// rest runs a world until nothing can happen any more.
func rest(t *testing.T, r *drun) {
	t.Helper()
	if err := r.world.Run(1000, func() bool { return r.world.Idle() && len(r.world.Timers()) == 0 }); err != nil {
		t.Fatal(err)
	}
}

func TestAJobOfTheSimulatedDiskRunsInAStepOfItsOwn(t *testing.T) {
	r, x := simDisk()
	owner, ran := new(int), []string(nil)
	x.Go(diskpool.Job{Kind: diskpool.Write, Owner: owner, Run: func() {
		ran = append(ran, "first")
		x.Go(diskpool.Job{Kind: diskpool.Write, Owner: owner, Run: func() { ran = append(ran, "second") }})
		x.Go(diskpool.Job{Kind: diskpool.Sync, Owner: owner, Run: func() {}})
	}})
	if len(ran) != 0 || x.open != 1 {
		t.Fatalf("%v ran at once, %d are open", ran, x.open)
	}
	rest(t, r)
	if !slices.Equal(ran, []string{"first", "second"}) || x.open != 0 {
		t.Errorf("%v ran, %d are open", ran, x.open)
	}
}

func TestASimulatedDiskThatHangsIsToldOfAndComesBack(t *testing.T) {
	r, x := simDisk()
	r.disk = diskState{until: 6 * time.Second, hangs: true}
	var told []string
	note := func(what string) func() { return func() { told = append(told, what) } }
	x.Go(diskpool.Job{Kind: diskpool.Sync, Run: note("ran"), Stalled: note("stalled"), Back: note("back")})
	rest(t, r)
	if !slices.Equal(told, []string{"stalled", "ran", "back"}) || r.world.Now() < 6*time.Second {
		t.Errorf("%v, at %v", told, r.world.Now())
	}
}

func TestJobsOfALifeThatHasEndedNeverRun(t *testing.T) {
	r, x := simDisk()
	x.Go(diskpool.Job{Kind: diskpool.Work, Run: func() { t.Error("it ran") }})
	x.life.End()
	x.Go(diskpool.Job{Kind: diskpool.Work, Run: func() { t.Error("it ran") }})
	if armed := r.world.Timers(); len(armed) != 0 {
		t.Errorf("armed: %v", armed)
	}
}

func TestTwoJobsOfOneOwnerDoNotWaitAtOnce(t *testing.T) {
	_, x := simDisk()
	defer func() {
		if recover() == nil {
			t.Error("nobody has noticed")
		}
	}()
	for range 2 {
		x.Go(diskpool.Job{Kind: diskpool.Write, Owner: t, Run: func() {}})
	}
}
