package main

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/shardactor/route"
)

// run is one world from its plan to its verdict.
type run struct {
	plan      Plan
	world     *simrt.World
	clock     *simrt.Clock // of clients and faults: true time
	net       *network
	brokers   []*broker
	resources []route.Assignment // names and shapes; incarnations change
	chaos     chaos

	all       []*client
	clients   int
	busy      int  // coroutines of clients that have work left
	asleep    int  // coroutines of clients that wait for time to pass
	owed      int  // things chaos will put right by itself
	calm      bool // chaos is over
	swapping  bool // some stream has its first two publishes exchanged
	swapped   bool // and both were sent
	publishes []published
	sent      map[uint64]*publish // by record id; never iterated

	answered  int
	delivered int
	heard     func(s *subscription, id uint64) // nil, or told of each record that a subscription delivers
	marks     Marks
	err       error
}

// Result is what became of one seed.
type Result struct {
	Seed      uint64
	Hash      uint64
	Steps     int
	Time      time.Duration // virtual
	Answered  int
	Delivered int
	Marks     Marks
	Swapped   bool // the two publishes of Plan.Swap were sent
	Err       error
}

const (
	// stepsBusy is how long chaos may rage; a world that is still busy then gets calm all the same.
	stepsBusy = 6000
	// stepsMost bounds each phase after it. Reaching it means that something goes round in circles.
	stepsMost = 200_000
	// liveWithin is when every shard must serve again after chaos is over, in true time: the second strike of a quarantine is two
	// minutes, on a clock that may be slow by a tenth.
	liveWithin = 5 * time.Minute
)

// Run plays the plan's world. trace may be nil.
func Run(plan Plan, trace func(simrt.Line)) Result {
	r := newRun(plan, trace)
	err := r.protected()
	if left := r.world.Close(); err == nil && len(left) > 0 {
		err = fmt.Errorf("coroutines are left: %s", strings.Join(left, ", "))
	}
	return Result{Seed: plan.Seed, Hash: r.world.Hash(), Steps: r.world.Steps(), Time: r.world.Now(), Answered: r.answered, Delivered: r.delivered, Marks: r.marks, Swapped: r.swapped, Err: err}
}

// newRun is the world of a plan before its first step.
func newRun(plan Plan, trace func(simrt.Line)) *run {
	r := &run{plan: plan, resources: resources(), sent: map[uint64]*publish{}}
	options := plan.World
	options.Trace = trace
	options.Check = r.afterStep
	r.world = simrt.New(options)
	r.clock = r.world.Clock("clients/clock", 1_000_000, 0)
	r.net = &network{world: r.world, marks: &r.marks, tight: plan.Tight, parked: map[string]bool{}}
	r.chaos = chaos{run: r, left: plan.Chaos, next: 200}
	return r
}

// failf notes a violation; the first one ends the run after the step.
func (r *run) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *run) afterStep() error {
	for _, b := range r.brokers {
		b.afterStep(r.world.Running())
	}
	r.chaos.afterStep()
	return r.err
}

// protected is play, with a panic of whatever runs in a step as an error, so that a campaign can name its seed.
func (r *run) protected() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("seed %d, step %d, %s: panic: %v\n%s", r.plan.Seed, r.world.Steps(), r.world.Running(), v, debug.Stack())
		}
	}()
	return r.play()
}

// play goes through the phases.
func (r *run) play() error {
	for _, phase := range []struct {
		name string
		do   func() error
	}{
		{"start", r.start}, {"rage", r.rage}, {"calm down", r.calmDown}, {"come back", r.comeBack}, {"probe", r.probe},
		{"settle", r.settle}, {"leave", r.leave}, {"stop", r.stop},
	} {
		if err := phase.do(); err != nil {
			return fmt.Errorf("seed %d, step %d, %s: %w", r.plan.Seed, r.world.Steps(), phase.name, err)
		}
	}
	return nil
}
