package actors

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
)

// Scheduler runs the turns of actors. Schedule must return at once and run the function later, exactly once, on any goroutine, never
// inside Schedule itself; functions of different actors may run concurrently or one after the other. A simulation brings its own and
// drives everything from one goroutine; a Scheduler that also implements TurnLimiter decides the size of each turn.
type Scheduler interface{ Schedule(run func()) }

// TurnLimiter chooses the bounds of the next turn: 1 to 64 messages and any number of bytes; the first message always fits.
type TurnLimiter interface {
	TurnLimit() (items, bytes int)
}

// TurnObserver is told of each call of an actor: a Scheduler that also implements it can write a trace of a simulation, with a digest of
// what each turn left behind. Both methods run on the goroutine that runs the actor, inside the wrapper: their panic is the actor's.
type TurnObserver interface {
	// BeginTurn is called before the actor gets t.
	BeginTurn(t *Turn)
	// EndTurn is called when the actor has returned, or panicked and ok is false; t is still valid. a is what Spec.New returned.
	EndTurn(t *Turn, a Actor, ok bool)
}

// Options configure a System. The zero value is usable.
type Options struct {
	Name       string                // for events and errors; not part of paths
	Clock      Clock                 // nil: RealClock
	Events     EventSink             // nil: events are only counted
	Registerer prometheus.Registerer // nil: metrics are kept and not registered; one system per registerer
	Executors  int                   // goroutines that share out turns among tenants; 0 means 4, at most 64
	Scheduler  Scheduler             // nil: an own pool of goroutines. With one, each dispatch is one turn
}

// System owns the actors of one node: their dispatchers, clock, metrics and events. It wraps one protoactor ActorSystem.
type System struct {
	name             string
	proto            *actor.ActorSystem
	clock            Clock
	sink             EventSink
	metrics          *metrics
	scheduler        actor.Dispatcher
	pool             *workerPool // nil when the scheduler is a foreign one
	fair             *fairDispatcher
	limiter          TurnLimiter
	observer         TurnObserver
	turnsPerDispatch int
	supervisor       actor.SupervisorStrategy
	lastID           atomic.Uint64
	chunks           chunkPool
	turns            sync.Pool

	mu      sync.Mutex
	tops    map[string]*mailbox
	closing bool
	empty   chan struct{} // closed when closing and no top-level actor is left
}

// NewSystem returns a running system without actors. It panics on Executors out of range, and when Registerer already has another
// system's metrics.
func NewSystem(opts Options) *System {
	if opts.Executors < 0 || opts.Executors > executorsMax {
		panic(fmt.Sprintf("actors: NewSystem: Executors is %d: use 0 for %d, or 1 to %d", opts.Executors, ExecutorsDefault, executorsMax))
	}
	s := &System{
		name: opts.Name, clock: opts.Clock, sink: opts.Events, metrics: newMetrics(opts.Registerer), turnsPerDispatch: 1,
		// The wrapper lets no panic through; should protoactor itself fail inside an actor, the actor is stopped, never restarted.
		supervisor: actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective }),
		tops:       make(map[string]*mailbox), empty: make(chan struct{}),
	}
	if s.clock == nil {
		s.clock = RealClock()
	}
	if s.sink == nil {
		s.sink = DiscardEvents()
	}
	s.proto = newProtoactor()
	executors := opts.Executors
	if executors == 0 {
		executors = ExecutorsDefault
	}
	s.schedule(opts.Scheduler, executors)
	return s
}

// schedule sets up the two dispatchers, over the own pool or over a foreign scheduler.
func (s *System) schedule(foreign Scheduler, executors int) {
	if foreign == nil {
		s.pool = newWorkerPool(s.clock)
		s.scheduler = s.pool
		s.turnsPerDispatch = turnsPerDispatch
	} else {
		s.scheduler = foreignDispatcher{foreign}
		s.limiter, _ = foreign.(TurnLimiter)
		s.observer, _ = foreign.(TurnObserver)
	}
	s.fair = newFairDispatcher(s.scheduler, executors, s.pool != nil, s.metrics)
}

// newProtoactor makes the runtime with everything off that is not needed. Its dead-letter throttle starts a goroutine per period
// and can't be disabled, so the period is the shortest there is.
func newProtoactor() *actor.ActorSystem {
	logger := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
		actor.WithDeadLetterThrottleInterval(time.Nanosecond),
		actor.WithDeadLetterThrottleCount(0),
		actor.WithDeadLetterRequestLogging(false),
	)
}

// Clock is the clock of the system.
func (s *System) Clock() Clock { return s.clock }

// Emit counts e and hands it to the sink. A sink that panics loses the event: it must not take down an actor's wrapper.
func (s *System) Emit(e Event) {
	s.metrics.events.WithLabelValues(e.EventName()).Inc()
	defer func() { _ = recover() }()
	s.sink.Emit(e)
}

// Watch returns a channel that receives r's end once and is then closed. It needs no reader to let the system go on.
func (s *System) Watch(r Watchable) <-chan Terminated {
	ch := make(chanWatcher, 1)
	b := r.box()
	switch {
	case b == nil:
		ch.ended(Terminated{})
	case !b.watch(ch):
		ch.ended(b.w.terminated())
	}
	return ch
}

func (s *System) system() *System { return s }

// newMailbox makes a mailbox that nobody runs yet.
func (s *System) newMailbox(name, kind string, bounds Bounds) *mailbox {
	if bounds.Cells == 0 {
		bounds.Cells = cellsDefault
	}
	b := &mailbox{sys: s, kind: s.metrics.kind(kind), name: name, bounds: bounds, id: s.lastID.Add(1)}
	b.w.b = b
	b.runFn = b.run
	return b
}

// borrowTurn lends a Turn for one dispatch.
func (s *System) borrowTurn() *Turn {
	if t, ok := s.turns.Get().(*Turn); ok {
		return t
	}
	return new(Turn)
}

func (s *System) returnTurn(t *Turn) { s.turns.Put(t) }

// turnLimits are the bounds of the next turn.
func (s *System) turnLimits() (items, bytes int) {
	if s.limiter == nil {
		return turnItemsMax, turnBytesMax
	}
	items, bytes = s.limiter.TurnLimit()
	return min(max(items, 1), turnItemsMax), bytes
}
