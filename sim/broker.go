package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
)

// broker is one node of the world: the real thing, and what the simulation knows of it.
type broker struct {
	run      *run
	name     string
	clock    *simrt.Clock
	node     *node.Node
	acceptor *acceptor
	registry *prometheus.Registry
	desired  route.Desired
	applied  uint64
	sessions map[string]*sessionactor.Session // by the name of the actor; never iterated
	truth    *truth
	holes    map[holder]*holes // by subscription; never iterated
	dropped  uint64            // records in all of them
	pumps    int
	plans    faultPlans
	crashed  []string // paths of subscriptions that failed
}

// start brings up the n-th node of the plan and assigns the resources to it.
func (r *run) startBroker(n int) (*broker, error) {
	clock := r.plan.Clocks[n]
	b := &broker{
		run: r, name: fmt.Sprintf("n%d", n+1), registry: prometheus.NewRegistry(), sessions: map[string]*sessionactor.Session{}, holes: map[holder]*holes{},
		acceptor: newAcceptor(r.world),
	}
	b.clock = r.world.Clock(b.name+"/clock", clock.ppm, clock.offset)
	b.truth = newTruth(b)
	scheduler := r.world.Scheduler(b.name + "/")
	scheduler.Describe, scheduler.Observed = describe, b.observed
	chance := rand.New(rand.NewPCG(r.plan.Seed, uint64(n)))
	var err error
	b.node, err = node.New(node.Options{
		Clock: nodeClock{b.clock, b}, Events: events{b}, Logger: slog.New(slog.DiscardHandler), Registerer: b.registry, Rand: chance.Uint64,
		Executors: 1 + r.world.Rand().IntN(4), Scheduler: scheduler, Runtime: pumpRuntime{b}, Limits: r.plan.Limits, Auth: gatekeeper{},
		Applied: func(v uint64) { b.applied = v }, WrapShard: b.wrap, Dropped: b.drops,
	})
	if err != nil {
		return nil, err
	}
	if err := b.node.Listen(b.acceptor); err != nil {
		return nil, err
	}
	b.assign(resources())
	return b, nil
}

// nodeClock is a node's clock that notes which subscriptions wait for more events to join those they have.
type nodeClock struct {
	*simrt.Clock
	b *broker
}

func (c nodeClock) AfterFunc(d time.Duration, f func()) actors.Timer {
	if r := c.b.run; d == r.plan.Limits.Delivery.MaxDelay && strings.Contains(r.world.Running(), "/sub/") {
		r.marks.hit(markGathered)
	}
	return c.Clock.AfterFunc(d, f)
}

// assign makes the node host these.
func (b *broker) assign(list []route.Assignment) {
	b.desired = route.Desired{Version: b.desired.Version + 1, Assignments: list}
	b.node.Apply(b.desired)
}

// observed is told of each turn.
func (b *broker) observed(t *actors.Turn, a actors.Actor, ok bool) {
	if s, is := a.(*sessionactor.Session); is {
		switch path := b.name + "/" + t.Self().Path(); t.Lifecycle() {
		case actors.Started:
			b.sessions[path] = s
		case actors.Stopped:
			delete(b.sessions, path)
		}
	}
}

// afterStep takes what a pump left behind into the hash: the streams of its session.
func (b *broker) afterStep(who string) {
	owner, _, pump := strings.Cut(who, "#")
	if !pump || !strings.HasPrefix(owner, b.name+"/") {
		return
	}
	if at := strings.Index(owner, "/sub/"); at >= 0 {
		owner = owner[:at]
	}
	if s := b.sessions[owner]; s != nil {
		b.run.world.Mix(s.Digest())
	}
}

// pumpRuntime makes the pumps of a node's sessions coroutines. They are named after the actor they belong to.
type pumpRuntime struct{ b *broker }

var _ sessionactor.Runtime = pumpRuntime{}

func (r pumpRuntime) Go(run func()) {
	owner, _, _ := strings.Cut(r.b.run.world.Running(), "#")
	r.b.pumps++
	r.b.run.world.Go(simrt.Pumps, fmt.Sprintf("%s#%d", owner, r.b.pumps), run)
}

func (r pumpRuntime) NewGate() sessionactor.Gate { return gate{r.b.run.world.NewGate(), r.b.run} }

// gate is a real one that notes which read pumps had to wait at it: for permits, or for room in their window.
type gate struct {
	*simrt.Gate
	run *run
}

func (g gate) Wait(until ...context.Context) bool {
	w := g.run.world
	who, step := w.Running(), w.Steps()
	ok := g.Gate.Wait(until...)
	if ok && w.Steps() != step && !strings.Contains(who, "/sub/") {
		g.run.net.parked[who] = true
	}
	return ok
}

// events takes a node's events into the trace, and counts those that are marks.
type events struct{ b *broker }

var _ actors.EventSink = events{}

func (e events) Emit(x actors.Event) {
	w, m := e.b.run.world, &e.b.run.marks
	w.MixText(x.EventName())
	w.Note("event %s", x.EventName())
	switch x := x.(type) {
	case actors.ActorStopped:
		e.stopped(x)
	case actors.FaultInjected:
		if x.Do == actors.FaultPause || x.Do == actors.FaultSlow {
			m.hit(markSlowActor)
		}
	}
	switch x.EventName() {
	case "shard_quarantined":
		m.hit(markQuarantine)
	case "shard_restarted":
		m.hit(markRestart)
	case "pump_failed":
		e.b.run.failf("%s: a pump panicked: %v", e.b.name, x.Attrs())
	case "actor_panicked":
		e.b.panicked(x.(actors.ActorPanicked))
	}
}

func (e events) stopped(x actors.ActorStopped) {
	m := &e.b.run.marks
	if x.Reason != actors.Panicked {
		return
	}
	switch x.Kind {
	case "shard":
		if x.Unstepped > 0 {
			m.hit(markPanicQueued)
		}
		if x.Unknown > 0 {
			m.hit(markPanicStepped)
		}
	case "session":
		m.hit(markSessionCrash)
	case "subscription":
		m.hit(markSessionCrash)
		e.b.crashed = append(e.b.crashed, e.b.name+"/"+x.Path)
	}
}

// panicked fails the run unless the panic was asked for.
func (b *broker) panicked(x actors.ActorPanicked) {
	if err, ok := x.Panic.Value.(error); ok && (err == errPlanned || err == actors.ErrInjected) {
		if x.Panic.During != "turn" {
			b.run.marks.hit(markLifecyclePanic)
		}
		return
	}
	b.run.failf("%s: %s panicked by itself: %v\n%s", b.name, x.Path, x.Panic, x.Panic.Stack)
}

// describe gives the size and a digest of the messages of shards.
func describe(m any) (int, uint64) {
	var h simrt.Hash
	switch m := m.(type) {
	case *shardactor.Publish:
		h.Bytes(m.Batch.Body)
		return shardactor.Size(m), uint64(h)
	case *shardactor.CachePut:
		h.Text(m.Key)
		h.Bytes(m.Value)
		h.Add(m.TTLMillis)
		return shardactor.Size(m), uint64(h)
	case *shardactor.CacheDelete:
		h.Text(m.Key)
		return shardactor.Size(m), uint64(h)
	case *shardactor.CachePutIf:
		h.Text(m.Key)
		h.Bytes(m.Value)
		h.Add(m.TTLMillis, uint64(m.Version))
		return shardactor.Size(m), uint64(h)
	case *shardactor.CacheDeleteIf:
		h.Text(m.Key)
		h.Add(uint64(m.Version))
		return shardactor.Size(m), uint64(h)
	case *shardactor.CounterAdd:
		h.Text(m.Key)
		h.Add(uint64(m.Delta))
		return shardactor.Size(m), uint64(h)
	}
	return 0, 0
}

// metrics reads the node's metrics once. What it returns sums a metric over its labels, or over those that have a value equal to want; there
// says whether the node has it at all.
func (b *broker) metrics() func(name string, want ...string) (total float64, there bool) {
	families, err := b.registry.Gather()
	if err != nil {
		b.run.failf("%s: gather metrics: %v", b.name, err)
	}
	return func(name string, want ...string) (total float64, there bool) {
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				fits := len(want) == 0
				for _, l := range m.GetLabel() {
					fits = fits || l.GetValue() == want[0]
				}
				if fits {
					there = true
					total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
		return total, there
	}
}
