package shardactor

import (
	"errors"
	"fmt"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Reasons of shards that nobody can serve, beside those of package wire.
const (
	// ReasonNoStorage: the stream is durable, and this node has no disk for that.
	ReasonNoStorage = "no_storage"
	// ReasonDamaged: what is stored cannot be used; an operator has to look.
	ReasonDamaged = "damaged"
	// ReasonPoisoned: a sync of its log failed; it comes back when the process is started anew.
	ReasonPoisoned = "poisoned"
)

// place is where the files of a durable shard are.
type place struct {
	name        route.Name
	incarnation id.Incarnation
	index       uint32
}

// start brings up one incarnation of a shard. One whose files are not closed yet, by an incarnation before it, waits for that.
func (h *Host) start(t *actors.Turn, s *hosted) {
	s.handle, s.reason = nil, wire.ReasonNotReady
	h.change(s.of)
	if h.durable(s.of) {
		if h.opts.Disks == nil {
			s.reason = ReasonNoStorage
			h.settled(s)
			return
		}
		s.place = place{s.of.assignment.Name, s.of.assignment.Incarnation, s.index}
		if before := h.places[s.place]; before != nil && before != s {
			before.next = s
			return
		}
		h.places[s.place] = s
	}
	h.next++
	s.number, s.right = h.next, &right{}
	a := s.of.assignment
	opts := shardOptions{
		number: s.number, generation: a.Generation, right: s.right,
		events: h.opts.Events, name: fmt.Sprintf("%s/%d", a.Name, s.index), metrics: h.opts.Metrics, timings: h.opts.Timings,
	}
	switch {
	case h.durable(s.of) && a.Name.Kind == route.Cache:
		opts.cache = &caching{}
		o := h.diskOptions(s, opts.name)
		s.files = newCacheDisk(o, h.tail(h.opts.Watchers), opts.cache, h.opts.Metrics)
		opts.log = s.files
	case h.durable(s.of):
		o := h.diskOptions(s, opts.name)
		d := newDisk(o, h.tail(h.opts.Readers))
		d.compress.Store(a.Compress)
		s.files = d
		opts.groups = newGroups(d, &h.opts.Disks.opts.Groups, h.opts.Metrics.Groups)
		opts.log, opts.blocks = d, h.opts.Readers.Policy() == storage.Block
	case a.Name.Kind == route.Cache:
		// Versions of an in-memory cache begin at the clock, so that one of an earlier life never matches.
		s.memory = storage.NewMemLog(id.Offset(t.Now().UnixMicro()), storage.MemLogOptions{})
		s.cache = reading.NewMemoryCache(h.opts.Caches, h.opts.Rand())
		opts.cache = &caching{memory: s.cache, main: reading.NewLedger(s.cache)}
		opts.log = &memoryCache{memory: memory{s.memory}, caching: opts.cache, metrics: h.opts.Metrics}
	default:
		s.memory = storage.NewMemLog(0, h.tail(h.opts.Readers))
		opts.log, opts.blocks = memory{s.memory}, h.opts.Readers.Policy() == storage.Block
	}
	h.spawn(t, s, opts)
	if s.memory != nil { // it serves from its first turn on
		s.handle = &Handle{Number: s.number, Ref: s.ref, Log: s.memory, right: s.right}
		if s.cache != nil {
			s.handle.Cache = s.cache
		}
	}
}

// tail bounds what a shard keeps in memory for readers.
func (h *Host) tail(readers *storage.Readers) storage.MemLogOptions {
	return storage.MemLogOptions{MaxBatches: h.opts.RingBatches, MaxBytes: h.opts.RingBytes, Budget: h.opts.Tails, Readers: readers}
}

func (h *Host) diskOptions(s *hosted, name string) diskOptions {
	a, disks := s.of.assignment, h.opts.Disks
	number := s.number
	disks.begin()
	return diskOptions{
		disks: disks, number: number, name: name, events: h.opts.Events, metrics: h.opts.Metrics.Disk,
		spec: disklog.Spec{
			Kind:   disklog.Stream, // a cache's says otherwise
			Tenant: a.Name.Tenant, Namespace: a.Name.Namespace, Name: a.Name.Name, Shard: s.index,
			Incarnation: a.Incarnation, Generation: a.Generation, Log: s.logID, Retention: disks.retention(a.Retention), Compress: true, // when, the janitor knows
		},
		report: func(x report) {
			x.of, x.shard = s, number
			h.reports.put(x)
		},
	}
}

func (h *Host) spawn(t *actors.Turn, s *hosted, opts shardOptions) {
	a, name := s.of.assignment, s.number.String()
	index := s.index
	var shard *Shard
	ref, err := actors.Spawn[Message](t, actors.Spec[Message]{
		Name: name, Kind: "shard", Tenant: a.Name.Tenant, Bounds: shardBounds,
		New: func() actors.Actor {
			shard = newShard(opts)
			if h.opts.Wrap != nil {
				return h.opts.Wrap(a.Name, index, shard)
			}
			return shard
		},
		OnUnstepped:  refuseUnstepped,
		OnUnanswered: func(m Message) { answerUnknown(m, shard.busy) },
	})
	if errors.Is(err, actors.ErrStopped) {
		h.neverStarted(t, s)
		return
	}
	if err != nil {
		panic("shardactor: spawn shard " + name + ": " + err.Error())
	}
	s.ref = ref
	s.life.Started(s.files != nil)
	h.children[name] = s
}

// neverStarted ends a shard that cannot come up because the host is being stopped, from outside and without a drain: from now on nothing does.
func (h *Host) neverStarted(t *actors.Turn, s *hosted) {
	if h.draining == nil {
		h.draining = &DrainAll{Done: func() {}}
	}
	s.life.Started(s.files != nil)
	then, _ := s.life.Terminated(false, true)
	s.end(storage.ClosedShutdown)
	h.then(t, s, then)
}
