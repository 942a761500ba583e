// Package node puts one broker together: actor system, shards, sessions and what they share. It makes no decision and
// opens no socket or file; those arrive in its options, so that a test or a simulation can bring others.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// Limits are the memory bounds of a node; their sum is what a node can be made to hold beside its connections.
type Limits struct {
	TailBytes        int64 // records of ephemeral streams, all shards together
	CacheBytes       int64 // caches in memory, all shards together
	RingBatches      int   // batches of one ephemeral stream shard
	RingBytes        int64 // bytes of one ephemeral stream shard
	PublishBytes     int   // frames read whose requests have no outcome, all connections together
	PublishConnBytes int   // the same for one connection
	PublishWindow    int   // open requests of one stream
	FrameBytes       int   // payload of one frame from a client that is signed in; at most wire.MaxPayload
	TenantSlots      int   // requests that a tenant may always have under way; all tenants together: this for each executor
	AnswerBytes      int   // answers that wait because clients do not read them, all connections together
	TenantLabels     int   // tenants with metrics of their own
	// QueueWait is how long an answered request that finds no room waits, IngressWait whether others wait at all.
	QueueWait   time.Duration
	IngressWait bool
	ReaderBytes int64 // kept for subscribers after the rings have let go of it, all shards together
	WindowBytes int64 // that one subscriber may be behind
	Overflow    storage.Policy
	// AckAtClaim acknowledges publishes to durable streams when they are claimed, without an offset, unless a client asks otherwise: what
	// is acknowledged may be lost with the node then. AckWait is how long a client waits for the outcome of a durable publish at most.
	AckAtClaim bool
	AckWait    time.Duration
	// ReadRecords is how many records of a durable stream one read of a range gets at most.
	ReadRecords int
	// WatchSnapshotBytes is how much one watch of a cache is given of current keys and values, see sessionactor.Options.
	WatchSnapshotBytes int64
	Delivery           sessionactor.Delivery
}

// DefaultLimits are the documented defaults.
func DefaultLimits() Limits {
	return Limits{
		TailBytes: 256 << 20, CacheBytes: 256 << 20, RingBatches: 16384, RingBytes: 8 << 20,
		PublishBytes: wire.NodePublishBytes, PublishConnBytes: wire.ConnPublishBytes, PublishWindow: wire.PublishWindow, FrameBytes: wire.MaxPayload, TenantSlots: sessioncore.DefaultAdmission(1, wire.NodePublishBytes).SlotsPerTenant,
		AnswerBytes: sessionactor.NodeAnswers, TenantLabels: sessionactor.TenantLabelsMax,
		ReaderBytes: wire.NodeReaderBytes, WindowBytes: wire.SubscriberQueueBytes, Overflow: storage.DropNew, AckWait: sessionactor.DefaultOptions().AckWait,
		ReadRecords: sessionactor.DefaultOptions().ReadRecords, WatchSnapshotBytes: sessionactor.DefaultOptions().NodeSnapshots.Largest(),
		Delivery: sessionactor.DefaultDelivery(),
	}
}

// Disk is what a node keeps durable streams and caches with.
type Disk = shardactor.DiskOptions

// Options is what a node is made of.
type Options struct {
	Clock      actors.Clock
	Events     actors.EventSink
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Rand       func() uint64
	Executors  int
	Scheduler  actors.Scheduler     // nil: goroutines
	Runtime    sessionactor.Runtime // nil: goroutines
	Limits     Limits
	// ProducerIDs draws the ids of idempotent producers; nil: nobody can foresee them, as it has to be but in a simulation.
	ProducerIDs func() uint64
	Auth        sessionactor.Authenticator
	Brokers     []wire.Broker
	AuthTimeout time.Duration
	TimingEvery int // one request in so many is timed; 0 is none
	// Disk keeps durable streams and caches; nil: such streams are refused, and all caches are in memory.
	Disk *Disk
	// Applied is told the version of each route.Desired that the node hosts now; nil: nobody asks.
	Applied func(version uint64)
	// WrapShard, when not nil, is put around each shard actor, to inject faults.
	WrapShard func(name route.Name, shard uint32, a actors.Actor) actors.Actor
	// Dropped, when not nil, is told of each batch that a subscriber does not get, see storage.ReaderOptions.
	Dropped func(storage.Drop)
}

// Node is one running broker.
type Node struct {
	opts     Options
	System   *actors.System
	Table    *shardactor.Table
	host     actors.Ref[shardactor.HostMessage]
	listener actors.Ref[sessionactor.ListenerMessage]
	session  *sessionactor.Metrics
	timings  *stages.Timings // nil: off
	disks    *shardactor.Disks
}

// New starts the shards' side of a node. It serves nobody until Listen.
func New(o Options) (*Node, error) {
	n := &Node{opts: o, Table: route.NewTable[*shardactor.Handle]()}
	n.System = actors.NewSystem(actors.Options{Name: "felixd", Clock: o.Clock, Events: o.Events, Registerer: o.Registerer, Executors: o.Executors, Scheduler: o.Scheduler})
	tails, caches := storage.NewBudget(o.Limits.TailBytes), reading.NewCachePool(o.Limits.CacheBytes)
	if err := o.Limits.Overflow.ForMemory(); err != nil && o.Disk == nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	readers := storage.NewReaders(storage.ReaderOptions{
		Policy: o.Limits.Overflow, WindowBytes: o.Limits.WindowBytes, Budget: storage.NewBudget(o.Limits.ReaderBytes), Dropped: o.Dropped,
	})
	metrics := shardactor.NewMetrics(o.Registerer, tails, caches, readers)
	if o.Disk != nil {
		n.disks = shardactor.NewDisks(*o.Disk)
		metrics.RegisterDisks(o.Registerer, n.disks)
	}
	if o.TimingEvery > 0 {
		n.timings = stages.New(o.Registerer, o.Clock.Now, o.TimingEvery)
	}
	host, err := shardactor.SpawnHost(n.System, shardactor.HostOptions{
		Table: n.Table, Tails: tails, Caches: caches, Readers: readers, RingBatches: o.Limits.RingBatches, RingBytes: o.Limits.RingBytes,
		Disks: n.disks, Events: o.Events, Metrics: metrics, Rand: o.Rand, Applied: o.Applied, Wrap: o.WrapShard, Timings: n.timings,
	})
	if err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	n.host = host
	n.session = sessionactor.NewMetrics(o.Registerer)
	n.session.QueueFull.Limit(o.Limits.TenantLabels)
	return n, nil
}

// Apply makes the node host what is desired. It returns at once.
func (n *Node) Apply(d route.Desired) {
	n.host.Signal(actors.Cell{Kind: shardactor.DesiredCell, Value: d})
}

// Listen begins to serve the connections of acceptor.
func (n *Node) Listen(acceptor sessionactor.Acceptor) error {
	o := sessionactor.DefaultOptions()
	o.Table, o.Auth, o.Offer, o.Brokers = n.Table, n.opts.Auth, sessionactor.EphemeralOffer(), n.opts.Brokers
	if n.disks != nil {
		o.Offer = sessionactor.DurableOffer()
	}
	executors := n.opts.Executors
	if executors == 0 {
		executors = actors.ExecutorsDefault
	}
	admitted := sessioncore.DefaultAdmission(executors, n.opts.Limits.PublishBytes)
	admitted.SlotsPerTenant, admitted.Slots = n.opts.Limits.TenantSlots, n.opts.Limits.TenantSlots*executors
	o.Admission = sessionactor.NewAdmission(admitted)
	o.Answers = sessionactor.NewAnswers(n.opts.Limits.AnswerBytes)
	o.QueueWait, o.IngressWait = n.opts.Limits.QueueWait, n.opts.Limits.IngressWait
	o.Frames = actors.NewCredit(1, n.opts.Limits.PublishBytes+sessionactor.JudgedFrames)
	o.Delivery, o.Subscriptions = n.opts.Limits.Delivery, storage.NewBudget(int64(n.opts.Limits.Delivery.PerNode))
	o.AckAtClaim, o.AckWait = n.opts.Limits.AckAtClaim, n.opts.Limits.AckWait
	o.ReadRecords, o.NodeSnapshots = n.opts.Limits.ReadRecords, sessionactor.NewSnapshots(n.opts.Limits.WatchSnapshotBytes)
	o.ConnBytes, o.Window, o.FrameBytes = n.opts.Limits.PublishConnBytes, n.opts.Limits.PublishWindow, uint32(n.opts.Limits.FrameBytes)
	if n.opts.ProducerIDs != nil {
		o.ProducerIDs = sessionactor.NewProducerIDs(n.opts.ProducerIDs)
	}
	if n.opts.AuthTimeout > 0 {
		o.AuthTimeout = n.opts.AuthTimeout
	}
	if n.opts.Runtime != nil {
		o.Runtime = n.opts.Runtime
	}
	o.Clock, o.Events, o.Metrics, o.Timings = n.opts.Clock, n.opts.Events, n.session, n.timings
	registerBudgets(n.opts.Registerer, &o)
	ref, err := sessionactor.SpawnListener(n.System, o, acceptor)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	n.listener = ref
	return nil
}

// Failed returns a channel that is closed when the host or the listener has ended although nobody asked for it: the node
// can serve nothing any more and must be stopped.
func (n *Node) Failed(ctx context.Context) <-chan actors.Terminated {
	out := make(chan actors.Terminated, 1)
	host, listener := n.System.Watch(n.host), n.System.Watch(n.listener)
	go func() {
		select {
		case x := <-host:
			out <- x
		case x := <-listener:
			out <- x
		case <-ctx.Done():
		}
	}()
	return out
}

// Drain takes no more connections, lets the sessions finish what is open, then the shards. It returns ctx's error when
// that takes too long; what is left then is named by the error.
func (n *Node) Drain(ctx context.Context) error {
	if err := n.drained(ctx, "sessions", n.DrainSessions); err != nil {
		return err
	}
	return n.drained(ctx, "shards", n.DrainShards)
}

// DrainSessions is the first half of Drain for whoever must not wait: done is called once no session is left. An error says that
// nothing was asked: the listener has ended, or has no room for the question now.
func (n *Node) DrainSessions(done func()) error {
	return n.listener.TrySend(&sessionactor.Drain{Done: done}, 0)
}

// DrainShards is the second half.
func (n *Node) DrainShards(done func()) error {
	return n.host.TrySend(&shardactor.DrainAll{Done: done}, 0)
}

// drainRetry is how long Drain waits for room in a mailbox that is full; a turn makes some.
const drainRetry = 10 * time.Millisecond

func (n *Node) drained(ctx context.Context, what string, ask func(done func()) error) error {
	done := make(chan struct{})
	for err := ask(func() { close(done) }); err != nil; err = ask(func() { close(done) }) {
		if !errors.Is(err, actors.ErrFull) {
			return nil // it has ended already
		}
		room := n.opts.Clock.NewTimer(drainRetry)
		select {
		case <-room.C():
		case <-ctx.Done():
			room.Stop()
			return fmt.Errorf("drain %s: %w", what, errors.Join(err, ctx.Err()))
		}
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain %s: %w", what, ctx.Err())
	}
}

// Close stops all actors and waits for them, and then until the files of all durable shards are closed.
func (n *Node) Close(ctx context.Context) error {
	if err := n.System.Shutdown(ctx); err != nil || n.disks == nil {
		return err
	}
	if err := n.disks.Closed(ctx); err != nil {
		return fmt.Errorf("close the files of shards: %w", err)
	}
	return nil
}

// HeldSnapshots is how many of Limits.WatchSnapshotBytes the watches of a node hold at most, see sessionactor.Snapshots. While they are
// gathered they may take as much again.
const HeldSnapshots = 4

// registerBudgets shows the node's budgets beside what is used of them.
func registerBudgets(reg prometheus.Registerer, o *sessionactor.Options) {
	admission, frames, partial, preauth, answers, snapshots, large := o.Admission, o.Frames, o.Partial, o.Preauth, o.Answers, o.NodeSnapshots, o.Large
	polls, parked := o.Polls.Limits(), o.Parked.Limits()
	held, subscriptions := float64(snapshots.Limit()), float64(o.Subscriptions.Limit())
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_publish_inflight_bytes", Help: "Bytes of requests that were let through to shards and have no outcome yet."}, func() float64 { _, b := admission.InUse(); return float64(b) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_publish_inflight_budget_bytes", Help: "Limit of felix_publish_inflight_bytes."}, func() float64 { return float64(admission.Limits().Bytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_publish_queue_slots", Help: "Requests that were let through to shards and have no outcome yet."}, func() float64 { n, _ := admission.InUse(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_publish_queue_slots_budget", Help: "Limit of felix_publish_queue_slots."}, func() float64 { return float64(admission.Limits().Slots) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_frame_bytes", Help: "Bytes of frames read from clients whose requests have no outcome yet."}, func() float64 { _, b := frames.InUse(); return float64(b) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_frame_budget_bytes", Help: "Limit of felix_frame_bytes."}, func() float64 { _, b := frames.Limit(); return float64(b) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_answer_bytes", Help: "Bytes of answers that wait because clients do not read them."}, func() float64 { return float64(answers.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_answer_budget_bytes", Help: "Limit of felix_answer_bytes: at half of it clients that do not read are not read either, at it the worst of their streams are ended."}, func() float64 { return float64(answers.Limit()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_preauth_streams", Help: "Streams of clients that have not signed in, beyond the first of each connection."}, func() float64 { return float64(preauth.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_preauth_streams_budget", Help: "Limit of felix_preauth_streams; connections that open more are closed as overload."}, func() float64 { return float64(preauth.Limit()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_partial_frame_bytes", Help: "Bytes of large frames that are being read."}, func() float64 { return float64(partial.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_partial_frame_budget_bytes", Help: "Limit of felix_partial_frame_bytes."}, func() float64 { return float64(partial.Limit()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_group_poll_budget_bytes", Help: "Limit of felix_group_poll_bytes."}, func() float64 { return float64(polls.Node) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_parked_request_budget_bytes", Help: "Limit of felix_parked_request_bytes."}, func() float64 { return float64(parked.Node) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_large_page_bytes", Help: "Bytes of large records that event streams have in hand until their clients have taken them."}, func() float64 { return float64(large.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_large_page_budget_bytes", Help: "Limit of felix_large_page_bytes; what finds no room is written piece by piece."}, func() float64 { return float64(large.Limit()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_subscriptions_budget", Help: "Limit of felix_subscribers and felix_cache_watches together; who asks for one more is refused."}, func() float64 { return subscriptions }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_cache_watch_snapshot_bytes", Help: "Current keys and values of caches that are held for watches until they are written."}, func() float64 { return float64(snapshots.Held()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_cache_watch_snapshot_budget_bytes", Help: "Limit of felix_cache_watch_snapshot_bytes; watches beyond it are told to come later."}, func() float64 { return held }),
	)
}
