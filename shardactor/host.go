package shardactor

import (
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/shardactor/hosting"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire/id"
)

// Table is what sessions route by.
type Table = route.Table[*Handle]

// Entry is one resource of a Table.
type Entry = route.Entry[*Handle]

// Target is one shard of an Entry.
type Target = route.Target[*Handle]

// DesiredCell is the kind of the cell that carries a route.Desired to the Host; the newest wins.
const DesiredCell actors.CellKind = 1

// HostOptions is what a Host needs.
type HostOptions struct {
	Table *Table
	// Tails is the memory of all streams of the node: what the ephemeral ones hold, and what durable ones keep for readers beside the disk.
	// Caches is that of all in-memory caches.
	Tails  *storage.Budget
	Caches *reading.CachePool
	// Readers are the rules for the readers of all streams. Under a policy that a log in memory cannot follow, ephemeral ones drop.
	Readers *storage.Readers
	// Watchers are those for the watches of log-backed caches: they fall behind by no more than their window, and are told. Nil takes
	// the memory and windows of Readers.
	Watchers *storage.Readers
	// RingBatches and RingBytes bound what one stream shard keeps in memory for its readers: everything it has if it is ephemeral, the
	// newest of it if it is durable.
	RingBatches int
	RingBytes   int64
	// Disks keeps the durable streams; nil refuses them.
	Disks   *Disks
	Events  actors.EventSink
	Metrics *Metrics
	// Rand draws seeds for eviction; it is used in the Host's turns only.
	Rand func() uint64
	// Timings are the stages of requests; nil measures nothing.
	Timings *stages.Timings
	// Applied, when not nil, is told the version of a Desired once the table says the same, and what came with it is open: but never
	// later than settleMax, so that one slow log holds up nobody else's. It must not block.
	Applied func(version uint64)
	// Wrap, when not nil, is put around every shard actor: the way a test injects faults.
	Wrap func(name route.Name, shard uint32, a actors.Actor) actors.Actor
}

// HostMessage is everything the data lane of a Host accepts.
//
//sumtype:decl
type HostMessage interface{ hostMessage() }

// DrainAll asks every shard to finish; Done is called once none is left. Further assignments are ignored.
type DrainAll struct{ Done func() }

func (*DrainAll) hostMessage() {}

// Host owns the shards of a node: it brings up what the control plane assigns, replaces what fails, and publishes both in
// the route table.
//
//	path     shards                                 lanes    data 16 items, control, cells
//	blocks   never                                  failure  the node drains and exits: nothing can be served without it
//
//	in               from               then
//	DrainAll         the daemon         every shard drained, its files closed, then Done
//	look             durable shards     what they have to tell is looked at, see report
//	DesiredCell      controlplane/watch shards started and stopped, table updated
//	Terminated       its shards         brought up again, or quarantined after three failures in a minute
type Host struct {
	opts      HostOptions
	version   uint64
	resources []*resource // in the order of their names
	children  map[string]*hosted
	next      id.ShardID
	draining  *DrainAll

	reports  reports
	places   map[place]*hosted // who has the files of a durable shard; a shard of the same place waits until they are closed
	retries  int               // shards that are quarantined
	closing  int               // files on their way to be closed or set aside
	settling []*settling
	unready  int  // shards of the first Desired that are not open yet
	first    bool // nothing was desired yet
	ready    bool // and the node has said so
	janitor  actors.Ref[janitorMessage]
	cleaning bool        // the janitor lives
	changed  []*resource // whose targets have to be published at the end of the turn
}

// resource is one stream or cache that is hosted here.
type resource struct {
	assignment route.Assignment
	entry      *Entry
	shards     []*hosted
	changed    bool
}

// durable reports whether the shards of a resource keep their logs on disk. A cache is in memory where there is no disk; a stream that
// is durable is not served there.
func (h *Host) durable(r *resource) bool {
	return r.assignment.Durable && (r.assignment.Name.Kind == route.Stream || h.opts.Disks != nil)
}

// hosted is one shard. A new incarnation gets a new number, log and view.
type hosted struct {
	of     *resource // nil once it was removed
	index  uint32
	number id.ShardID
	ref    Ref
	right  *right
	handle *Handle // nil while it may not be used
	reason string  // why not
	memory *storage.MemLog
	cache  *reading.MemoryCache
	files  files    // of the incarnation that has the place
	logID  id.LogID // of a durable shard, once it is known
	life   hosting.Life

	place   place
	next    *hosted // who waits for the place
	settles *settling
	unready bool
}

// SpawnHost starts the Host of a node.
func SpawnHost(sys *actors.System, opts HostOptions) (actors.Ref[HostMessage], error) {
	if opts.Watchers == nil {
		opts.Watchers = opts.Readers.Told()
	}
	return actors.Spawn[HostMessage](sys, actors.Spec[HostMessage]{
		Name: "shards", Kind: "host",
		New: func() actors.Actor {
			return &Host{opts: opts, children: map[string]*hosted{}, places: map[place]*hosted{}, first: true}
		},
		Bounds: actors.Bounds{DataItems: 16, DataBytes: 1 << 10, ControlItems: 16},
		OnUnstepped: func(m HostMessage) {
			if d, ok := m.(*DrainAll); ok {
				d.Done()
			}
		},
	})
}

// Receive is one turn.
func (h *Host) Receive(t *actors.Turn) {
	if t.Lifecycle() == actors.Started {
		ref := actors.RefOf[HostMessage](t)
		h.reports.ring = func() { _ = ref.Complete(&look{}) } // refused once the host stops: what is closed then, Disks counts
		h.startJanitor(t)
	}
	for _, c := range t.Cells() {
		if d, ok := c.Value.(route.Desired); ok && h.draining == nil && d.Version > h.version {
			h.version = d.Version
			h.reconcile(t, d.Assignments)
		}
	}
	for _, x := range t.ChildTerminated() {
		h.terminated(t, x)
	}
	for _, m := range t.Messages() {
		switch m := m.(type) {
		case *DrainAll:
			h.drain(m)
		case *look:
			for _, x := range h.reports.take() {
				h.reported(t, x)
			}
		}
	}
	if t.Wake() {
		h.retry(t)
	}
	h.publish()
	h.settle(t.Now())
	h.arm(t)
	if h.draining != nil && len(h.children) == 0 && h.closing == 0 && !h.cleaning {
		h.draining.Done()
		h.draining = &DrainAll{Done: func() {}}
	}
}

// reconcile makes what is hosted equal to what is wanted. Both lists are in the order of the names.
func (h *Host) reconcile(t *actors.Turn, want []route.Assignment) {
	var next []*resource
	var add []*Entry
	var remove []route.Name
	settles := &settling{version: h.version, until: t.Now().Add(settleMax)}
	i := 0
	for _, a := range want {
		for i < len(h.resources) && h.resources[i].assignment.Name.Compare(a.Name) < 0 {
			remove = append(remove, h.remove(t, h.resources[i], true))
			i++
		}
		if i < len(h.resources) && h.resources[i].assignment.Name == a.Name {
			old := h.resources[i]
			i++
			if old.assignment.SameHosting(a) {
				h.adjust(old, a)
				next = append(next, old)
				continue
			}
			// Same name, another incarnation or shape: replaced in the table below. Another shape has the same files.
			h.remove(t, old, old.assignment.Incarnation != a.Incarnation)
		}
		r := h.host(t, a, settles)
		next = append(next, r)
		add = append(add, r.entry)
	}
	for ; i < len(h.resources); i++ {
		remove = append(remove, h.remove(t, h.resources[i], true))
	}
	h.resources = next
	h.opts.Table.Update(add, remove)
	h.settling = append(h.settling, settles)
	h.first = false
}

func (h *Host) host(t *actors.Turn, a route.Assignment, settles *settling) *resource {
	r := &resource{assignment: a}
	for n := uint32(0); n < a.Shards; n++ {
		s := &hosted{of: r, index: n, logID: a.Log(n)}
		r.shards = append(r.shards, s)
		if h.durable(r) {
			h.awaited(s, settles)
		}
		h.start(t, s)
	}
	r.entry = route.NewEntry(a.Name, a.Incarnation, a.Routing, a.Durable && h.durable(r), r.targets())
	r.changed = false
	return r
}

func (r *resource) targets() []Target {
	out := make([]Target, len(r.shards))
	for i, s := range r.shards {
		out[i] = Target{Generation: r.assignment.Generation}
		if s.handle != nil {
			out[i].State, out[i].Shard = route.Local, s.handle
		} else {
			out[i].Reason = s.reason
		}
	}
	return out
}

// change has the targets of a resource published at the end of the turn.
func (h *Host) change(r *resource) {
	if !r.changed {
		r.changed = true
		h.changed = append(h.changed, r)
	}
}

func (h *Host) publish() {
	for _, r := range h.changed {
		if r.changed && r.entry != nil {
			r.changed = false
			r.entry.SetShards(r.targets())
		}
	}
	clear(h.changed)
	h.changed = h.changed[:0]
}

// adjust tells running shards what they can follow.
func (h *Host) adjust(r *resource, a route.Assignment) {
	keeps := r.assignment.Retention != a.Retention || r.assignment.Compress != a.Compress
	r.assignment = a
	for n, s := range r.shards {
		if reported := a.Log(uint32(n)); !reported.IsZero() {
			s.logID = reported
		}
		if keeps && s.files != nil {
			s.files.keep(h.opts.Disks.retention(a.Retention), a.Compress)
		}
	}
}

// arm arms the one timer for the earliest thing to be done.
func (h *Host) arm(t *actors.Turn) {
	var next time.Time
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if h.retries > 0 {
		for _, r := range h.resources {
			for _, s := range r.shards {
				if at := s.life.RetryAt(); !at.IsZero() {
					sooner(at)
				}
			}
		}
	}
	if len(h.settling) > 0 {
		sooner(h.settling[0].until)
	}
	if !next.IsZero() {
		t.ArmWake(next)
	}
}

// retry brings up what has been quarantined long enough.
func (h *Host) retry(t *actors.Turn) {
	now := t.Now()
	for _, r := range h.resources {
		for _, s := range r.shards {
			if then, due := s.life.Retry(now); due {
				h.endQuarantine()
				h.then(t, s, then)
			}
		}
	}
}

func (h *Host) endQuarantine() {
	h.retries--
	h.opts.Metrics.Quarantined.Dec()
}

// drain lets every shard finish what it claimed.
func (h *Host) drain(d *DrainAll) {
	if h.draining != nil {
		d.Done()
		return
	}
	h.draining = d
	h.stopJanitor()
	for _, r := range h.resources {
		for _, s := range r.shards {
			if !s.life.Running() {
				continue
			}
			if err := s.ref.TrySend(&drain{}, 0); err != nil {
				s.ref.Stop() // its lane is full: stopping refuses what waits there, and says so to each
			}
		}
	}
}
