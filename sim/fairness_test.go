package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

const (
	recordBytes = 1 << 10
	turnCharge  = 1 << 10  // what the dispatcher charges for a turn beside its bytes
	quantum     = 64 << 10 // what a tenant gains in a round
)

// fairWorld is a node with one executor: tenant "many" has a stream of many shards, tenant "one" a stream of one.
type fairWorld struct {
	t       *testing.T
	world   *simrt.World
	node    *node.Node
	body    wire.Region
	tenants map[string]string // of the actors, by path; never iterated
	charged map[string]int    // what each tenant was charged; never iterated
	stepped map[string]int    // its publishes
	over    bool              // the test has seen enough
}

func newFairWorld(t *testing.T, many uint32) *fairWorld {
	t.Helper()
	f := &fairWorld{
		t: t, world: simrt.New(simrt.Options{Seed: 1, StepTime: -1}), body: wire.AppendPayload(nil, make([]byte, recordBytes)),
		tenants: map[string]string{}, charged: map[string]int{}, stepped: map[string]int{},
	}
	scheduler := f.world.Scheduler("")
	scheduler.Observed = f.observed
	limits := node.DefaultLimits()
	limits.RingBatches = 4
	var err error
	f.node, err = node.New(node.Options{
		Clock: f.world.Clock("clock", 1_000_000, 0), Events: actors.DiscardEvents(), Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Rand: func() uint64 { return 1 }, Executors: 1, Scheduler: fullTurns{scheduler}, Limits: limits, Auth: gatekeeper{},
	})
	if err != nil {
		t.Fatal(err)
	}
	list := []route.Assignment{f.assignment("one", 1)}
	if many > 0 {
		list = []route.Assignment{f.assignment("many", many), f.assignment("one", 1)}
	}
	f.node.Apply(route.Desired{Version: 1, Assignments: list})
	f.run(func() bool { return f.world.Idle() })
	t.Cleanup(func() {
		f.over = true
		f.node.System.StopAll()
		f.run(func() bool { return len(f.node.System.Live()) == 0 })
		f.world.Close()
	})
	return f
}

// fullTurns gives turns their full size, as the real runtime does.
type fullTurns struct{ *simrt.Scheduler }

func (fullTurns) TurnLimit() (items, bytes int) { return 64, 64 << 10 }

func (f *fairWorld) assignment(tenant string, shards uint32) route.Assignment {
	return route.Assignment{Name: route.Name{Tenant: tenant, Namespace: namespace, Name: "s"}, Incarnation: 1, Generation: 1, Shards: shards}
}

func (f *fairWorld) run(until func() bool) {
	f.t.Helper()
	if err := f.world.Run(1_000_000, until); err != nil {
		f.t.Fatal(err)
	}
}

// shards are the handles of a tenant's stream.
func (f *fairWorld) shards(tenant string) (list []*shardactor.Handle) {
	for _, target := range f.node.Table.Get(f.assignment(tenant, 0).Name).Shards() {
		f.tenants["shards/"+target.Shard.Number.String()] = tenant
		list = append(list, target.Shard)
	}
	return list
}

// observed charges a turn to its tenant as the dispatcher does.
func (f *fairWorld) observed(t *actors.Turn, _ actors.Actor, _ bool) {
	tenant := f.tenants[t.Self().Path()]
	if !strings.HasPrefix(t.Self().Path(), "shards/") || t.Lifecycle() != actors.None {
		return
	}
	f.charged[tenant] += turnCharge
	for _, m := range t.Messages() {
		if p, ok := m.(*shardactor.Publish); ok {
			f.charged[tenant] += p.Batch.Size()
			f.stepped[tenant]++
		}
	}
}

// busy is a publisher that sends its next publish when one is answered.
//
// It is the Reply of its own publishes.
type busy struct {
	f     *fairWorld
	shard *shardactor.Handle
	again bool
}

func (b *busy) Answer(_ shardcore.Token, a shardactor.Answer) {
	if b.f.over {
		return
	}
	if a.Refusal != nil {
		b.f.t.Errorf("refused: %v", a.Refusal)
	}
	if b.again {
		b.send()
	}
}

func (*busy) Flush() {}

func (b *busy) send() {
	m := &shardactor.Publish{Batch: batch.Batch{Count: 1, Kind: batch.Records, Body: b.f.body, PayloadBytes: recordBytes}}
	m.To(b, 0)
	if err := b.shard.Ref.TrySend(m, m.Batch.Size()); err != nil {
		b.f.t.Errorf("not taken: %v", err)
	}
}

// keepBusy makes every shard of a tenant have more to do than a turn takes.
func (f *fairWorld) keepBusy(tenant string) {
	for _, h := range f.shards(tenant) {
		b := &busy{f: f, shard: h, again: true}
		for range 100 {
			b.send()
		}
	}
}

func (f *fairWorld) steps(n int) {
	f.t.Helper()
	end := f.world.Steps() + n
	f.run(func() bool { return f.world.Steps() >= end })
}

// rounds is how long the two tenants are watched.
func rounds() int {
	if effort.Raced {
		return 4
	}
	return 20
}

// mission 208: with both always busy, each tenant gets exactly its share, whatever its number of shards.
func TestATenantWithAThousandBusyShardsAndOneWithOneGetTheSameShare(t *testing.T) {
	f := newFairWorld(t, 1000)
	f.keepBusy("many")
	f.keepBusy("one")
	f.steps(500) // the first rounds
	many, one := f.charged["many"], f.charged["one"]
	for range rounds() {
		f.steps(200)
		gotMany, gotOne := f.charged["many"]-many, f.charged["one"]-one
		// Deficit round robin owes either side at most one round and the turn in progress.
		if diff := gotMany - gotOne; diff > 2*quantum+turnCharge || diff < -2*quantum-turnCharge {
			t.Fatalf("the many were charged %d bytes and the one %d: %d apart", gotMany, gotOne, diff)
		}
	}
	if one := f.stepped["one"]; one < 500*rounds() {
		t.Errorf("only %d publishes of the one were stepped: nothing was proved", one)
	}
}

// rate is how many publishes of tenant "one" are answered in so many steps, when one is sent every fourth step.
func (f *fairWorld) rate(steps int) int {
	f.t.Helper()
	b := &busy{f: f, shard: f.shards("one")[0]}
	before := f.stepped["one"]
	for range steps / 4 {
		b.send()
		f.steps(4)
	}
	return f.stepped["one"] - before
}

// mission 208: one that asks for less than its share keeps the rate it has alone, beside a thousand busy shards of another.
func TestOneShardKeepsItsRateBesideAThousandBusyOnes(t *testing.T) {
	beside := newFairWorld(t, 1000)
	beside.keepBusy("many")
	beside.steps(2000)
	steps := 400 * rounds()
	got, alone := beside.rate(steps), steps/4
	if solo := newFairWorld(t, 0).rateAlone(alone); solo != alone {
		t.Fatalf("alone, %d of %d publishes were stepped", solo, alone)
	}
	if got*100 < alone*80 {
		t.Errorf("%d publishes beside a thousand busy shards, %d alone: under 80 %%", got, alone)
	}
}

// rateAlone is rate for a world in which nobody else works: the steps run out when there is nothing to do.
func (f *fairWorld) rateAlone(sends int) int {
	f.t.Helper()
	b := &busy{f: f, shard: f.shards("one")[0]}
	for range sends {
		b.send()
		f.run(f.world.Idle)
	}
	return f.stepped["one"]
}
