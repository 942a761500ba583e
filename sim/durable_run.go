package main

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
)

// drun is one durable world from its plan to its verdict: one disk, and the lives of a node over it.
type drun struct {
	plan      DurablePlan
	world     *simrt.World
	clock     *simrt.Clock // of clients and faults: true time
	net       *network
	resources []route.Assignment // as the control plane has them
	version   uint64
	lives     int
	image     *vfs.Mem // what the next life starts with
	node      *dnode   // nil while there is none
	lost      bool     // the power was cut since somebody was let in last
	disk      diskState
	chaos     dchaos
	book      *book
	caches    *cacheBook   // nil in a world without
	groups    *groupBook   // nil in a world without
	wall      *simrt.Clock // what the nodes' clocks show

	clients   int
	requests  uint64
	busy      int // clients that have something left to do
	audits    int // of the present life that are not done
	subs      []*dsub
	watches   []*dwatch
	snapshots []*watchValues // that watches began with
	calm      bool           // chaos is over
	finished  bool           // clients are to go

	answered  int
	delivered int
	netMarks  Marks
	marks     DurableMarks
	err       error
}

// DurableResult is what became of one seed.
type DurableResult struct {
	Seed      uint64
	Hash      uint64
	Steps     int
	Time      time.Duration // virtual
	Lives     int
	Answered  int
	Delivered int
	Marks     DurableMarks
	Err       error
}

// String is the verdict on one seed.
func (r DurableResult) String() string {
	verdict := "ok"
	if r.Err != nil {
		verdict = "FAILED: " + r.Err.Error()
	}
	return fmt.Sprintf("durable seed %d: hash %016x, %d steps, %v of virtual time, %d lives, %d answers, %d records delivered: %s", r.Seed, r.Hash, r.Steps, r.Time, r.Lives, r.Answered, r.Delivered, verdict)
}

const (
	// durableRage is how many steps chaos may rage; a world that is still busy then gets calm all the same.
	durableRage = 8000
	// durableSteps bounds each phase; reaching it means that something goes round in circles.
	durableSteps = 100_000
)

// RunDurable plays the plan's world. trace may be nil.
func RunDurable(plan DurablePlan, trace func(simrt.Line)) DurableResult {
	r := &drun{plan: plan, image: vfs.NewMem()}
	options := plan.World
	options.Trace, options.Check = trace, r.afterStep
	r.world = simrt.New(options)
	r.clock = r.world.Clock("clients/clock", 1_000_000, 0)
	r.net = &network{world: r.world, marks: &r.netMarks, tight: plan.Cache.Tight && !plan.Cache.Large, parked: map[string]bool{}}
	r.resources = plan.durableResources()
	r.book = newBook(r)
	r.wall = r.world.Clock("wall", plan.Clock.ppm, plan.Clock.offset)
	if plan.Cache.On {
		r.caches = newCacheBook(r)
	}
	if plan.Group.On {
		r.groups = newGroupBook(r)
	}
	r.chaos = dchaos{run: r, left: plan.Faults, next: 100}
	err := r.protected()
	if r.node != nil {
		r.node.life.End()
	}
	r.finished = true
	if left := r.world.Close(); err == nil && len(left) > 0 {
		err = fmt.Errorf("coroutines are left: %s", strings.Join(left, ", "))
	}
	return DurableResult{Seed: plan.Seed, Hash: r.world.Hash(), Steps: r.world.Steps(), Time: r.world.Now(), Lives: r.lives, Answered: r.answered, Delivered: r.delivered, Marks: r.marks, Err: err}
}

// failf notes a violation; the first one ends the run after the step.
func (r *drun) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// fail is failf for an error that may be nil.
func (r *drun) fail(who string, err error) {
	if err != nil {
		r.failf("%s: %w", who, err)
	}
}

func (r *drun) afterStep() error {
	if n := r.node; n != nil {
		n.spoilReaders()
		n.sawGroup(r.world.Running())
		if n.leaves && n.blow == nil {
			r.endedInOrder(n)
		}
		if n.blow != nil && n.blow.image != nil {
			r.fall(n)
		} else if !n.listens && n.serves() {
			r.letIn(n)
		}
	}
	r.chaos.afterStep()
	return r.err
}

// letIn opens a node whose disk may have lost what was acknowledged, once it is known what is left.
func (r *drun) letIn(n *dnode) {
	if r.lost {
		for _, s := range r.book.shards {
			t, _ := n.node.Table.Get(s.stream.Name).Shard(s.index)
			_, end := t.Shard.History.Bounds()
			s.reaches(end)
		}
		for _, x := range r.subs {
			x.ahead = x.ahead || x.next > x.shard.end
		}
		r.cachesLost()
		r.groupsLost()
	}
	r.lost = false
	r.fail(n.at.name, n.listen())
}

// protected is play, with a panic of whatever runs in a step as an error.
func (r *drun) protected() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("durable seed %d, step %d, %s: panic: %v\n%s", r.plan.Seed, r.world.Steps(), r.world.Running(), v, debug.Stack())
		}
	}()
	for _, phase := range []struct {
		name string
		do   func() error
	}{
		{"start", r.start}, {"rage", r.rage}, {"calm down", r.calmDown}, {"probe", r.probe}, {"settle", r.settle}, {"drain", r.drain}, {"stop", r.stop}, {"look again", r.lookAgain},
	} {
		if err := phase.do(); err != nil {
			return fmt.Errorf("durable seed %d, step %d, life %d, %s: %w", r.plan.Seed, r.world.Steps(), r.lives, phase.name, err)
		}
	}
	return nil
}

// await runs the world until something is so; it must be within d of true time.
func (r *drun) await(what string, d time.Duration, so func() bool) error {
	limit := r.world.Now() + d
	if err := r.world.Run(durableSteps, func() bool { return so() || r.world.Now() > limit }); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	if !so() {
		return fmt.Errorf("it takes more than %v until %s; alive: %s", d, what, strings.Join(r.world.Alive(), ", "))
	}
	return nil
}
