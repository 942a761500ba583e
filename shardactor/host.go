package shardactor

import (
	"fmt"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
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
	// Tails is the memory of all ephemeral streams of the node, Caches that of all in-memory caches.
	Tails  *storage.Budget
	Caches *reading.CachePool
	// Readers are the rules for the readers of all streams. Their policy is one that a log in memory can follow.
	Readers *storage.Readers
	// RingBatches and RingBytes bound one ephemeral stream shard.
	RingBatches int
	RingBytes   int64
	Events      actors.EventSink
	Metrics     *Metrics
	// Rand draws seeds for eviction; it is used in the Host's turns only.
	Rand func() uint64
	// Timings are the stages of requests; nil measures nothing.
	Timings *stages.Timings
	// Applied, when not nil, is told the version of a Desired once the table says the same. It must not block.
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
//	DrainAll         the daemon         every shard drained, then Done
//	DesiredCell      controlplane/watch shards started and stopped, table updated
//	Terminated       its shards         brought up again, or quarantined after three failures in a minute
type Host struct {
	opts      HostOptions
	version   uint64
	resources []*resource // in the order of their names
	children  map[string]*hosted
	next      id.ShardID
	draining  *DrainAll
}

// resource is one stream or cache that is hosted here.
type resource struct {
	assignment route.Assignment
	entry      *Entry
	shards     []*hosted
}

// hosted is one shard. A new incarnation gets a new number, log and view.
type hosted struct {
	of       *resource // nil once it was removed
	index    uint32
	handle   *Handle
	log      *storage.MemLog
	restarts restarts
	retryAt  time.Time // not zero while it is quarantined
	running  bool
}

// SpawnHost starts the Host of a node.
func SpawnHost(sys *actors.System, opts HostOptions) (actors.Ref[HostMessage], error) {
	return actors.Spawn[HostMessage](sys, actors.Spec[HostMessage]{
		Name: "shards", Kind: "host",
		New:    func() actors.Actor { return &Host{opts: opts, children: map[string]*hosted{}} },
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
		if d, ok := m.(*DrainAll); ok {
			h.drain(d)
		}
	}
	if t.Wake() {
		h.retry(t)
	}
	if h.draining != nil && len(h.children) == 0 {
		h.draining.Done()
		h.draining = &DrainAll{Done: func() {}}
	}
}

// reconcile makes what is hosted equal to what is wanted. Both lists are in the order of the names.
func (h *Host) reconcile(t *actors.Turn, want []route.Assignment) {
	var next []*resource
	var add []*Entry
	var remove []route.Name
	i := 0
	for _, a := range want {
		for i < len(h.resources) && h.resources[i].assignment.Name.Compare(a.Name) < 0 {
			remove = append(remove, h.remove(h.resources[i]))
			i++
		}
		if i < len(h.resources) && h.resources[i].assignment.Name == a.Name {
			if old := h.resources[i]; old.assignment == a {
				next = append(next, old)
				i++
				continue
			}
			h.remove(h.resources[i]) // same name, another incarnation or shape: replaced in the table below
			i++
		}
		r := h.host(t, a)
		next = append(next, r)
		add = append(add, r.entry)
	}
	for ; i < len(h.resources); i++ {
		remove = append(remove, h.remove(h.resources[i]))
	}
	h.resources = next
	h.opts.Table.Update(add, remove)
	if h.opts.Applied != nil {
		h.opts.Applied(h.version)
	}
}

func (h *Host) host(t *actors.Turn, a route.Assignment) *resource {
	r := &resource{assignment: a}
	for n := uint32(0); n < a.Shards; n++ {
		s := &hosted{of: r, index: n}
		r.shards = append(r.shards, s)
		h.start(t, s)
	}
	r.entry = route.NewEntry(a.Name, a.Incarnation, a.Routing, a.Durable, r.targets())
	return r
}

func (r *resource) targets() []Target {
	out := make([]Target, len(r.shards))
	for i, s := range r.shards {
		out[i] = Target{Generation: r.assignment.Generation}
		if s.running {
			out[i].State, out[i].Shard = route.Local, s.handle
		} else {
			out[i].Reason = "not_ready"
		}
	}
	return out
}

// start brings up one incarnation of a shard.
func (h *Host) start(t *actors.Turn, s *hosted) {
	a := s.of.assignment
	h.next++
	number := h.next
	opts := shardOptions{
		number: number, generation: a.Generation, right: &right{},
		events: h.opts.Events, name: fmt.Sprintf("%s/%d", a.Name, s.index), metrics: h.opts.Metrics, timings: h.opts.Timings,
	}
	if a.Name.Kind == route.Cache {
		// Versions of an in-memory cache begin at the clock, so that one of an earlier life never matches.
		s.log = storage.NewMemLog(id.Offset(t.Now().UnixMicro()), storage.MemLogOptions{})
		opts.view = reading.NewMemoryCache(h.opts.Caches, h.opts.Rand())
	} else {
		s.log = storage.NewMemLog(0, storage.MemLogOptions{MaxBatches: h.opts.RingBatches, MaxBytes: h.opts.RingBytes, Budget: h.opts.Tails, Readers: h.opts.Readers})
		opts.blocks = h.opts.Readers.Policy() == storage.Block
	}
	opts.log = s.log
	name := number.String()
	var shard *Shard
	ref, err := actors.Spawn[Message](t, actors.Spec[Message]{
		Name: name, Kind: "shard", Tenant: a.Name.Tenant, Bounds: shardBounds,
		New: func() actors.Actor {
			shard = newShard(opts)
			if h.opts.Wrap != nil {
				return h.opts.Wrap(a.Name, s.index, shard)
			}
			return shard
		},
		OnUnstepped:  refuseUnstepped,
		OnUnanswered: func(m Message) { answerUnknown(m, shard.busy) },
	})
	if err != nil {
		panic("shardactor: spawn shard " + name + ": " + err.Error())
	}
	s.handle = &Handle{Number: number, Ref: ref, Log: s.log, View: opts.view, right: opts.right}
	s.running, s.retryAt = true, time.Time{}
	h.children[name] = s
}

// remove stops a resource that is not wanted any more. What readers look at is closed when its shards have terminated, since a
// shard may be in the middle of a turn, and what it answers there is to be readable. The children are forgotten then too.
func (h *Host) remove(r *resource) route.Name {
	for _, s := range r.shards {
		s.of = nil
		if s.running {
			s.handle.right.serving.Store(false)
			s.handle.Ref.Stop()
		} else if !s.retryAt.IsZero() {
			h.opts.Metrics.Quarantined.Dec()
		}
	}
	return r.assignment.Name
}

// end closes what readers look at.
func (s *hosted) end(reason storage.CloseReason) {
	s.running = false
	s.handle.right.serving.Store(false)
	s.log.Close(reason)
	if s.handle.View != nil {
		s.handle.View.Close()
	}
}

func (h *Host) terminated(t *actors.Turn, x actors.Terminated) {
	s := h.children[x.Name]
	delete(h.children, x.Name)
	if s == nil {
		return
	}
	if s.of == nil { // removed
		s.end(storage.ClosedDeleted)
		return
	}
	if h.draining != nil || x.Reason != actors.Panicked {
		if s.running {
			s.end(storage.ClosedShutdown)
		}
		s.of.entry.SetShards(s.of.targets())
		return
	}
	s.end(storage.ClosedFailed)
	failed, now := s.handle.Number, t.Now()
	at, quarantined := s.restarts.failed(now)
	if quarantined {
		s.retryAt = at
		t.ArmWake(at)
	} else {
		h.start(t, s)
	}
	s.of.entry.SetShards(s.of.targets())
	h.report(s, shardFailed{shard: failed, panic: panicText(x.Panic), quarantined: quarantined, retryIn: at.Sub(now)})
}

// report counts a failure and says what became of the shard.
func (h *Host) report(s *hosted, e shardFailed) {
	e.name = fmt.Sprintf("%s/%d", s.of.assignment.Name, s.index)
	h.opts.Metrics.Lost.Inc()
	if e.quarantined {
		h.opts.Metrics.Quarantined.Inc()
	} else {
		h.opts.Metrics.Restarts.Inc()
	}
	h.opts.Events.Emit(e)
}

func panicText(p *actors.PanicInfo) string {
	if p == nil {
		return "unknown"
	}
	return p.Error()
}

// retry brings up what has been quarantined long enough.
func (h *Host) retry(t *actors.Turn) {
	now := t.Now()
	var next time.Time
	for _, r := range h.resources {
		for _, s := range r.shards {
			switch {
			case s.retryAt.IsZero():
			case !now.Before(s.retryAt):
				h.start(t, s)
				r.entry.SetShards(r.targets())
				h.opts.Metrics.Quarantined.Dec()
			case next.IsZero() || s.retryAt.Before(next):
				next = s.retryAt
			}
		}
	}
	if !next.IsZero() {
		t.ArmWake(next)
	}
}

// drain lets every shard finish what it claimed.
func (h *Host) drain(d *DrainAll) {
	if h.draining != nil {
		d.Done()
		return
	}
	h.draining = d
	for _, r := range h.resources {
		for _, s := range r.shards {
			if !s.running {
				continue
			}
			if err := s.handle.Ref.TrySend(&drain{}, 0); err != nil {
				s.handle.Ref.Stop() // its lane is full: stopping refuses what waits there, and says so to each
			}
		}
	}
}

// refuseUnstepped answers a request that waited in a mailbox that closed: nothing of it happened.
func refuseUnstepped(m Message) {
	f := wire.Refuse(wire.CodeShardUnavailable, "the shard stopped before the request was looked at; repeat it")
	f.Reason = "not_ready"
	settleFor(m, Answer{Refusal: &f})
}

// answerUnknown answers a request that a failing shard had looked at: what became of it cannot be told. busy is the one that the shard
// was busy with when it failed; nil if it was none.
func answerUnknown(m Message, busy *request) {
	f := wire.Refuse(wire.CodeUnacknowledged, "the shard failed before it answered; the request may or may not have been done")
	r, ok := m.(interface{ at() *request })
	settleFor(m, Answer{Refusal: &f, Caused: ok && busy != nil && r.at() == busy})
}

func (r *request) at() *request { return r }

func settleFor(m Message, a Answer) {
	if r, ok := m.(interface {
		settle(Answer)
		flush()
	}); ok {
		r.settle(a)
		r.flush()
	}
}

func (r *request) flush() { r.Reply.Flush() }
