package main

import (
	"math/rand/v2"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// Plan is what a seed decides before the first step: the size and the temper of its world.
type Plan struct {
	Seed      uint64
	Nodes     int
	Sessions  int
	Requests  int // of one ordinary stream
	Flood     bool
	Strikes   bool // one shard fails three times within a minute
	Chaos     int  // faults, at most
	Tight     bool // small windows
	SmallRing bool
	Drain     bool // drain before the end, instead of clients that go first
	World     simrt.Options
	Limits    node.Limits
	Clocks    []clockPlan

	// Swap exchanges the first two publishes of the first stream that publishes: the hash must tell.
	Swap bool
}

// clockPlan is how a node's clock errs.
type clockPlan struct {
	ppm    int64
	offset time.Duration
}

// NewPlan draws the plan of a seed.
func NewPlan(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x706c616e))
	one := func(in int) bool { return r.IntN(in) == 0 }
	p := Plan{
		Seed: seed, Nodes: 1, Sessions: 20, Requests: 4 + r.IntN(9), Flood: one(4), Strikes: one(4), Chaos: 4 + r.IntN(12),
		Tight: one(2), SmallRing: one(3), Drain: one(2), Limits: node.DefaultLimits(),
	}
	if one(8) {
		p.Nodes = 2
	}
	if p.SmallRing {
		p.Limits.RingBatches = 4 + r.IntN(12)
	}
	if one(4) {
		p.Limits.PublishWindow = 1 + r.IntN(8)
	}
	if one(4) {
		p.Limits.PublishConnBytes = 256 << r.IntN(8)
	}
	p.drawDelivery(r)
	p.World = simrt.Options{Seed: seed, TurnItems: []int{1, 4, 64, 64}[r.IntN(4)]}
	p.World.StepTime = []time.Duration{-1, 2 * time.Microsecond, 50 * time.Microsecond, time.Millisecond, 20 * time.Millisecond}[r.IntN(5)]
	for c := range p.World.Weights {
		p.World.Weights[c] = []int{1, 2, 4, 8}[r.IntN(4)]
	}
	for range p.Nodes {
		p.Clocks = append(p.Clocks, clockPlan{ppm: 1_000_000 + r.Int64N(200_001) - 100_000, offset: time.Duration(r.Int64N(int64(time.Hour)))})
	}
	return p
}

// drawDelivery chooses what becomes of slow subscribers: in most worlds their queues are small, in some the memory for them is too.
func (p *Plan) drawDelivery(r *rand.Rand) {
	l := &p.Limits
	l.Overflow = []storage.Policy{storage.DropNew, storage.DropNew, storage.DropOld, storage.Block, storage.Block}[r.IntN(5)]
	if r.IntN(3) > 0 {
		l.Delivery.Capacity = 1 + r.IntN(8)
	}
	if r.IntN(4) == 0 {
		l.WindowBytes = 300 + r.Int64N(4000)
	}
	if r.IntN(3) == 0 {
		l.ReaderBytes = 1 + r.Int64N(4000)
	}
	l.Delivery.MaxDelay = []time.Duration{0, 250 * time.Microsecond, 250 * time.Microsecond, 5 * time.Millisecond}[r.IntN(4)]
}

// resources is what every node hosts: streams and caches of three tenants, eight shards together.
func resources() []route.Assignment {
	of := func(kind route.Kind, tenant, name string, shards uint32, routing wire.Routing) route.Assignment {
		return route.Assignment{
			Name:        route.Name{Kind: kind, Tenant: tenant, Namespace: namespace, Name: name},
			Incarnation: 1, Generation: 1, Shards: shards, Routing: routing,
		}
	}
	return []route.Assignment{ // in the order of their names
		of(route.Stream, "amber", "orders", 2, wire.RoutingModulo),
		of(route.Cache, "amber", "users", 1, wire.RoutingModulo),
		of(route.Stream, "birch", "metrics", 2, wire.RoutingJumpHash),
		of(route.Cache, "birch", "flags", 1, wire.RoutingModulo),
		of(route.Stream, "cedar", "log", 1, wire.RoutingModulo),
		of(route.Cache, "cedar", "pages", 1, wire.RoutingModulo),
	}
}

// namespace is the one that all resources are in.
const namespace = "default"
