package main

import (
	"math/rand/v2"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire"
)

// DurablePlan is what a seed decides of a durable world before its first step: one node, its disk, and those who use it.
type DurablePlan struct {
	Seed     uint64
	World    simrt.Options
	Limits   node.Limits
	Clock    clockPlan
	Writers  int // plain ones; of each other kind there is one or two
	Requests int // of one client
	Faults   int // at most
	Disk     diskPlan
	Defect   Defect
	Cache    cachePlan
	Group    groupPlan
}

// diskPlan is how the node keeps its streams.
type diskPlan struct {
	Options   disklog.Options // without what a node brings
	Retention route.Retention
	Compress  bool
	Janitor   time.Duration // from one of its runs to the next
	JobTime   time.Duration // the longest that a job of a good disk waits
}

// Defect is a fault of the product that a test puts in, to see that the checkers find it.
type Defect uint8

const (
	// NoDefect leaves the product as it is.
	NoDefect Defect = iota
	// AckBeforeSync has syncs of segments, and of the mark that says how far they were synced, report success without doing anything.
	AckBeforeSync
	// DirSyncSkipped has syncs of the directories of logs do the same.
	DirSyncSkipped
	// CacheSyncSkipped is AckBeforeSync for the logs of caches and counters alone.
	CacheSyncSkipped
	// AnsweredBeforeDurable has a cache answer puts when it is asked for them, SeenBeforeDurable show them to readers then.
	AnsweredBeforeDurable
	SeenBeforeDurable
	// ExpiresAnyVersion has the end of a value remove whatever its key has by then.
	ExpiresAnyVersion
	// CopiesStale has a compaction put values back that were replaced.
	CopiesStale
	// ConditionIgnored has conditional puts applied whatever they ask for.
	ConditionIgnored
	// AddsTwice adds what was asked for twice.
	AddsTwice
	// WatchSkips has a watch that resumes begin one record late.
	WatchSkips
	// GroupSyncSkipped is AckBeforeSync for the logs of groups alone.
	GroupSyncSkipped
	// ClaimsEndEarly has claims end after a quarter of their time.
	ClaimsEndEarly
	// AnyNackCounts has a nack end whichever delivery stands.
	AnyNackCounts
	// RedriveForgets has a redrive forget the dead letter.
	RedriveForgets
	// SettlesTheNextToo has a settlement finish the record behind it, too.
	SettlesTheNextToo
	// OneAttemptMore has records handed out once more than they may be.
	OneAttemptMore
)

// cacheShards says that a defect is in the shards of caches, and their readers.
func (d Defect) cacheShards() bool { return d >= AnsweredBeforeDurable && d <= WatchSkips }

// groupShards says that a defect is in what groups are asked.
func (d Defect) groupShards() bool { return d > GroupSyncSkipped }

// weak says that what is acknowledged may be lost with the power.
func (p *DurablePlan) weak() bool { return p.Disk.Options.Fsync != disklog.OnCommit }

// trims says that retention may remove records.
func (p *DurablePlan) trims() bool { return p.Disk.Retention != (route.Retention{}) }

// NewDurablePlan draws the plan of a seed.
func NewDurablePlan(seed uint64) DurablePlan {
	r := rand.New(rand.NewPCG(seed, 0x6469736b))
	one := func(in int) bool { return r.IntN(in) == 0 }
	p := DurablePlan{Seed: seed, Limits: node.DefaultLimits(), Writers: 1 + r.IntN(3), Requests: 6 + r.IntN(14), Faults: 2 + r.IntN(6)}
	p.World = simrt.Options{Seed: seed ^ 0x64757261626c65, TurnItems: []int{1, 4, 64, 64}[r.IntN(4)]}
	p.World.StepTime = []time.Duration{2 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond}[r.IntN(3)]
	for c := range p.World.Weights {
		p.World.Weights[c] = []int{1, 2, 4}[r.IntN(3)]
	}
	p.Clock = clockPlan{ppm: 1_000_000 + r.Int64N(200_001) - 100_000, offset: time.Duration(r.Int64N(int64(time.Hour)))}
	p.Limits.Overflow = []storage.Policy{storage.DropNew, storage.DropNew, storage.DropOld, storage.Block}[r.IntN(4)]
	p.Limits.AckAtClaim = one(8)
	if one(2) {
		p.Limits.RingBatches = 4 + r.IntN(12)
	}
	if one(2) {
		p.Limits.Delivery.Capacity = 1 + r.IntN(8)
	}
	p.drawDisk(r)
	if p.Cache = newCachePlan(seed); p.Cache.On {
		p.Requests = (p.Requests + 1) / 2 // of those who use streams
		if p.Cache.Tight {
			p.Limits.WindowBytes, p.Limits.Delivery.CapacityMax = 4<<10, max(4, p.Limits.Delivery.Capacity)
		}
	}
	if p.Group = newGroupPlan(seed); p.Group.On {
		p.Requests = (p.Requests + 1) / 2
	}
	return p
}

func (p *DurablePlan) drawDisk(r *rand.Rand) {
	one := func(in int) bool { return r.IntN(in) == 0 }
	d := &p.Disk
	d.Options = disklog.Options{
		SegmentBytes: []int64{4 << 10, 6 << 10, 16 << 10}[r.IntN(3)], IndexSpacing: 64 << r.IntN(5),
		Fsync:         []disklog.FsyncMode{disklog.OnCommit, disklog.OnCommit, disklog.OnCommit, disklog.OnCommit, disklog.Periodic, disklog.None}[r.IntN(6)],
		FsyncInterval: time.Duration(1+r.IntN(50)) * time.Millisecond, Preallocate: one(2),
		Verify: []disklog.VerifyMode{disklog.VerifyFull, disklog.VerifySealed, disklog.VerifyLazy}[r.IntN(3)], OpenSealed: 1 + r.IntN(4),
		IdleAfter: time.Duration(5+r.IntN(200)) * time.Millisecond, ReadBytes: 512 << r.IntN(6),
	}
	d.JobTime = []time.Duration{50 * time.Microsecond, 500 * time.Microsecond, 5 * time.Millisecond}[r.IntN(3)]
	d.Janitor = time.Duration(5+r.IntN(100)) * time.Millisecond
	if one(3) {
		d.Retention = route.Retention{Bytes: 4<<10 + r.Int64N(12<<10)}
	} else if one(4) {
		d.Retention = route.Retention{Age: time.Duration(20+r.IntN(200)) * time.Millisecond}
	}
	d.Compress = one(3)
}

// What a durable world hosts: a stream with records of many, one of writers who agree on each offset, and one in memory; if it has caches,
// one with a log, and one in memory.
const (
	ordersStream = iota
	ledgerStream
	ticksStream
	flagsCache
	notesCache
)

// durableResources is what the node hosts, in the order of the names.
func (p *DurablePlan) durableResources() []route.Assignment {
	of := func(name string, shards uint32, durable bool) route.Assignment {
		a := route.Assignment{
			Name:        route.Name{Kind: route.Stream, Tenant: durableTenant, Namespace: namespace, Name: name},
			Incarnation: 1, Generation: 1, Shards: shards, Routing: wire.RoutingModulo, Durable: durable,
		}
		if durable {
			a.Retention, a.Compress = p.Disk.Retention, p.Disk.Compress
		}
		return a
	}
	list := make([]route.Assignment, 3)
	list[ordersStream], list[ledgerStream], list[ticksStream] = of("a-orders", 2, true), of("b-ledger", 1, true), of("c-ticks", 1, false)
	if p.Cache.On {
		cache := func(name string, shards uint32, durable bool) route.Assignment {
			a := of(name, shards, false)
			a.Name.Kind, a.Durable = route.Cache, durable
			return a
		}
		list = append(list, cache("d-flags", p.Cache.Shards, true), cache("e-notes", 1, false))
	}
	return list
}

const durableTenant = "amber"
