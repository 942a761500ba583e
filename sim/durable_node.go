package main

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// dnode is one life of the node: from a start on the image of a disk until it stops, is killed, or loses its power.
type dnode struct {
	run     *drun
	life    *simrt.Life
	at      *broker // where the network finds it
	mem     *vfs.Mem
	fault   *vfs.Fault
	exec    *simExec
	store   *disklog.Store
	node    *node.Node
	listens bool
	pumps   int
	blow    *blow
	poison  bool // some log of it is poisoned
	leaves  bool // it stops in order
	drained bool // nothing is left but to end

	counted *disklog.Counters

	spoiled   []*spoiled                        // with a defect in caches
	compacted int                               // compactions since they looked
	groups    []string                          // paths of those that ran
	added     map[*shardactor.GroupRequest]bool // by a defect; never iterated
}

// startNode starts the node over the present image.
func (r *drun) startNode() error {
	r.lives++
	n := &dnode{run: r, life: r.world.NewLife(), mem: r.image}
	name := fmt.Sprintf("n%d", r.lives)
	clock := n.life.Clock(r.world.Clock(name+"/clock", r.plan.Clock.ppm, r.plan.Clock.offset))
	n.at = &broker{name: name, clock: clock, acceptor: newAcceptor(r.world)}
	n.exec = &simExec{run: r, life: n.life, clock: clock, waits: map[execKey]bool{}}
	n.mem.SetCapacity(vfs.Unlimited)
	n.mem.OnOp(n.operation)
	n.fault = vfs.NewFault(n.mem, nil)
	chance := rand.New(rand.NewPCG(r.plan.Seed, uint64(r.lives)))
	kept := r.plan.Disk.Options
	slots := diskpool.NewReadSlots(diskpool.DefaultReadSlots)
	kept.Exec, kept.SyncApart, kept.Slots, kept.Holder = n.exec, true, slots, name
	kept.Rand = func() (b [16]byte) {
		binary.BigEndian.PutUint64(b[:], chance.Uint64())
		binary.BigEndian.PutUint64(b[8:], chance.Uint64())
		return b
	}
	var err error
	if n.store, err = disklog.OpenStore(forgetful{n.fault, r.plan.Defect}, kept); err != nil {
		return fmt.Errorf("start over what is on the disk: %w", err)
	}
	n.counted = n.store.Counters()
	disk := shardactor.DefaultDiskOptions()
	disk.Store, disk.Exec, disk.Slots, disk.RetentionInterval = n.store, n.exec, slots, r.plan.Disk.Janitor
	disk.OnDamaged = func(err error) { r.failf("%s: a log is said to be damaged: %v", name, err) }
	disk.LogOpened = r.logOpened
	if c := &r.plan.Cache; c.On {
		disk.InlineBytes, disk.CompactionRate, disk.Rand = c.Inline, c.Rate, chance.Uint64
	}
	if g := &r.plan.Group; g.On {
		disk.Groups, disk.Rand = g.settings(r.plan.Defect), chance.Uint64
	}
	options := node.Options{
		Clock: clock, Events: devents{n}, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), Rand: chance.Uint64,
		ProducerIDs: chance.Uint64, Executors: 1 + chance.IntN(4), Scheduler: n.scheduler(name), Runtime: druntime{n}, Limits: r.plan.Limits,
		Auth: gatekeeper{}, Disk: &disk,
	}
	if r.plan.Cache.On && r.plan.Defect.cacheShards() {
		options.WrapShard = n.spoil
	}
	if r.plan.Group.On && r.plan.Defect.groupShards() {
		options.WrapShard = n.spoilGroups
	}
	n.node, err = node.New(options)
	if err != nil {
		return err
	}
	r.node = n
	r.groupLives("")
	if r.lives > 1 && r.world.Rand().IntN(2) == 0 {
		r.raiseGenerations()
	}
	r.assign(n)
	if !r.plan.weak() {
		return n.listen()
	}
	return nil // what a power cut took is found out before anybody is let in
}

func (n *dnode) scheduler(name string) *simrt.Scheduler {
	s := n.life.Scheduler(name + "/")
	s.Describe = describe
	return s
}

func (n *dnode) listen() error {
	n.listens = true
	return n.node.Listen(n.at.acceptor)
}

// logOpened keeps the identity of a log, as the control plane does.
func (r *drun) logOpened(name route.Name, incarnation id.Incarnation, shard uint32, log id.LogID) {
	for i := range r.resources {
		a := &r.resources[i]
		if a.Name != name || a.Incarnation != incarnation {
			continue
		}
		logs := []byte(a.Logs)
		if len(logs) == 0 {
			logs = make([]byte, 16*a.Shards)
		}
		if known := a.Log(shard); !known.IsZero() && known != log {
			r.failf("%s/%d was opened as log %v, and is %v", name, shard, log, known)
		}
		copy(logs[16*shard:], log[:])
		a.Logs = string(logs)
	}
}

// assign makes the node host what the control plane wants.
func (r *drun) assign(n *dnode) {
	r.version++
	n.node.Apply(route.Desired{Version: r.version, Assignments: slices.Clone(r.resources)})
}

func (r *drun) raiseGenerations() {
	for i := range r.resources {
		r.resources[i].Generation++
	}
}

// serves reports whether every shard of the node serves.
func (n *dnode) serves() bool {
	for _, a := range n.run.resources {
		e := n.node.Table.Get(a.Name)
		if e == nil {
			return false
		}
		for _, t := range e.Shards() {
			if t.State != route.Local || !t.Shard.Serving() {
				return false
			}
		}
	}
	return true
}

// druntime makes the pumps of a node coroutines that end with its life.
type druntime struct{ n *dnode }

var _ sessionactor.Runtime = druntime{}

func (d druntime) Go(run func()) {
	d.n.pumps++
	d.n.life.Go(simrt.Pumps, fmt.Sprintf("%s/pump#%d", d.n.at.name, d.n.pumps), run)
}

func (d druntime) NewGate() sessionactor.Gate { return d.n.run.world.NewGate() }

// devents takes a node's events into the trace, and counts those that are marks.
type devents struct{ n *dnode }

var _ actors.EventSink = devents{}

func (e devents) Emit(x actors.Event) {
	r := e.n.run
	r.world.MixText(x.EventName())
	r.world.Note("event %s", x.EventName())
	if e.n.life.Over() {
		return // what pumps do on their way out of a life that has ended
	}
	e.groupLives(x)
	switch x.EventName() {
	case "shard_poisoned":
		e.n.poison = true
		r.marks.hit(dmarkPoisoned)
		r.book.poisoned(attr(x, "name"))
	case "disk_stalled":
		r.marks.hit(dmarkStalled)
	case "disk_back":
		r.marks.hit(dmarkBack)
	case "shard_role_changed":
		if attr(x, "to") == "waiting_for_disk" {
			r.marks.hit(dmarkWaiting)
		}
	case "shard_restarted":
		r.marks.hit(dmarkPanic)
	case "shard_damaged", "pump_failed":
		r.failf("%s: %s: %v", e.n.at.name, x.EventName(), x.Attrs())
	case "shard_open_failed":
		r.marks.hit(dmarkOpenFailed)
		r.world.Note("%v", x.Attrs())
		if strings.Contains(attr(x, "error"), "restart to recover") { // of the groups' logs: the stream goes on
			e.n.poison = true
			r.marks.hit(dmarkGroupPoisoned)
		}
	case "log_read_failed":
		r.marks.hit(dmarkReadFailed)
		r.world.Note("%v", x.Attrs())
	case "log_compacted", "log_compaction_failed":
		e.compacted(x)
	case "log_not_closed":
		r.world.Note("%v", x.Attrs())
		if strings.Contains(attr(x, "error"), "restart to recover") { // the last sync failed: the end in order vouches for nothing
			e.n.poison = true
		}
	case "actor_panicked":
		p := x.(actors.ActorPanicked)
		if err, ok := p.Panic.Value.(error); !ok || err != actors.ErrInjected {
			r.failf("%s: %s panicked by itself: %v\n%s", e.n.at.name, p.Path, p.Panic, p.Panic.Stack)
		}
	}
}

// groupLives notes what may have ended the groups of a shard, and their claims with them.
func (e devents) groupLives(x actors.Event) {
	switch x.EventName() {
	case "shard_poisoned", "shard_role_changed", "shard_restarted", "shard_quarantined", "shard_open_failed":
		e.n.run.groupLives(attr(x, "name"))
	case "group_failed":
		e.n.run.failf("%s: %v", e.n.at.name, x.Attrs())
	}
}

func (e devents) compacted(x actors.Event) {
	m := &e.n.run.marks
	e.n.run.world.Note("%v", x.Attrs())
	switch {
	case attr(x, "error") != "":
		return
	case attr(x, "log") == segment.Groups.String():
		m.hit(dmarkGroupCompacted)
	case attr(x, "log") == segment.DeadLetters.String():
	case attr(x, "log") == segment.Counters.String():
		m.hit(dmarkSumsCompacted)
	default:
		m.hit(dmarkCompacted)
		e.n.compacted++
	}
	if attr(x, "moved") != "0" {
		m.hit(dmarkCopied)
	}
}

func attr(x actors.Event, name string) string {
	for _, a := range x.Attrs() {
		if a.Key == name {
			return a.Value.String()
		}
	}
	return ""
}
