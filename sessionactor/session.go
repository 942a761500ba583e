package sessionactor

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/gather"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// SessionMessage is everything a Session accepts.
//
//sumtype:decl
type SessionMessage interface{ sessionMessage() }

// Subscribe asks a session for a subscription or a watch. Its request is settled by that, or here when there is none.
type Subscribe struct {
	request eventRequest
}

// ConnClosed says that the connection is gone and its pumps have ended.
type ConnClosed struct{}

func (*Subscribe) sessionMessage()  {}
func (*ConnClosed) sessionMessage() {}

// The cells of a session.
const (
	// DrainCell: refuse what is new, and close once idle.
	DrainCell actors.CellKind = 1
	// IdleCell: nothing is open any more; sent while draining.
	IdleCell actors.CellKind = 2
	// FinishCell: nothing more comes from any session; subscriptions end once they have delivered what there is.
	FinishCell actors.CellKind = 3
)

// session is what the lanes of one connection share with its Session actor.
//
//  1. lanes[l.place] is l, for every lane that is not closed;
//  2. pumps counts the goroutines of the session; once it has fallen to 0 with the connection gone, over is set, the
//     session is told, and no pump starts any more.
type session struct {
	opts   *Options
	number uint64
	conn   Conn
	ref    actors.Ref[SessionMessage]
	credit *actors.Credit       // frames read whose requests have no outcome
	use    *sessioncore.ConnUse // the same by shard, in the hands of the admission
	reads  *actors.Credit       // places for reads of logs
	debts  debts                // answers that wait, in the books of the node
	parked sessioncore.ParkUse  // requests that wait, in the books of the node
	groups polled

	large     sessioncore.LargeConn // pages of its event streams, in the books of the node
	snapshots sessioncore.ParkUse   // current values for its watches, in the books of the node

	gathering gather.Of[*lane] // answers of several lanes leave together
	astir     atomic.Int32     // length of awake, for those that do not hold mu

	ctx    context.Context
	cancel context.CancelFunc

	authenticated atomic.Bool
	streams       atomic.Int64   // opened before the first authentication
	preauth       *actors.Credit // places for streams that are read before they authenticated
	partial       *storage.Budget
	finish        context.Context // ends with FinishCell
	finished      context.CancelFunc

	closing sync.Once // see closeFor

	mu       sync.Mutex
	lanes    []*lane
	pumps    int
	over     bool
	draining bool
	awake    []*lane // those that do not rest
	look     actors.Timer
	looking  bool // look is armed
}

// partialFrames is how many bytes of unfinished frames one connection may hold beyond 64 KiB for each of its streams: four
// of the largest frames.
const partialFrames = 4 * wire.MaxPayload

// Session supervises one client connection: its lanes, its subscriptions, and when it has to end.
//
//	path     sessions/<n>, child of Listener        lanes    data 64 items / 64 KiB, control, cells
//	blocks   never                                  failure  stop; the connection is closed and its requests are let go
//
//	in               from               then
//	Subscribe        a lane             a Subscription, or a refusal
//	ConnClosed       its pumps          the session ends
//	DrainCell        Listener           requests are refused; closed once idle
//	IdleCell         its lanes          closed, while draining
//	FinishCell       Listener           its subscriptions end
//	Terminated       its Subscriptions  the place is free
type Session struct {
	s      *session
	subs   places
	next   uint64
	closed bool
	drain  bool
	reads  bool // it had subscriptions when the drain began
	linger time.Time
}

// sessionBounds: 64 subscribe requests wait at most; they come from lanes that wait for the answer.
var sessionBounds = actors.Bounds{DataItems: 64, DataBytes: 64 << 10, ControlItems: 1}

func spawnSession(parent actors.Spawner, opts *Options, number uint64, conn Conn) (actors.Ref[SessionMessage], error) {
	s := &session{
		opts: opts, number: number, conn: conn, credit: actors.NewCredit(1, opts.ConnBytes), use: sessioncore.NewConnUse(opts.ConnBytes),
		reads: actors.NewCredit(1, opts.Reads), preauth: actors.NewCredit(1, opts.PreauthStreams), partial: storage.NewBudget(partialFrames),
	}
	s.ctx, s.cancel = context.WithCancel(conn.Context())
	s.finish, s.finished = context.WithCancel(context.Background())
	ref, err := actors.Spawn[SessionMessage](parent, actors.Spec[SessionMessage]{
		Name: fmt.Sprint(number), Kind: "session", Bounds: sessionBounds,
		New: func() actors.Actor { return &Session{s: s, subs: newPlaces(&opts.Delivery)} },
		OnUnstepped: func(m SessionMessage) {
			if x, ok := m.(*Subscribe); ok {
				x.request.refuse(wire.Refuse(wire.CodeShardUnavailable, "the connection is closing; connect again"))
			}
		},
		OnUnanswered: func(m SessionMessage) {
			if x, ok := m.(*Subscribe); ok {
				x.request.refuse(wire.Refuse(wire.CodeInternal, "the session failed; connect again"))
			}
		},
	})
	if err != nil {
		s.cancel()
		s.closeFor(CloseOverload)
	}
	return ref, err
}

// Receive is one turn.
func (a *Session) Receive(t *actors.Turn) {
	switch t.Lifecycle() {
	case actors.Started:
		t.ArmWake(t.Now().Add(a.s.opts.AuthTimeout)) // before the first stream is taken
		a.s.start(actors.RefOf[SessionMessage](t))
		return
	case actors.Stopping, actors.Stopped:
		a.end(t)
		return
	}
	for _, x := range t.ChildTerminated() {
		a.subs.give(x.Name)
	}
	for _, m := range t.Messages() {
		switch m := m.(type) {
		case *Subscribe:
			a.subscribe(t, m)
		case *ConnClosed:
			t.Stop()
		default:
			panic(fmt.Sprintf("sessionactor: a session got %T", m))
		}
	}
	for _, c := range t.Cells() {
		if c.Kind == DrainCell && !a.drain {
			a.drain, a.reads = true, a.subs.used() > 0
			a.s.drain()
		}
		if c.Kind == FinishCell {
			a.s.finished()
		}
	}
	if t.Wake() {
		a.wake(t)
	}
	if a.drain && a.linger.IsZero() && a.subs.used() == 0 && !a.s.busy() {
		// QUIC has no way to wait until the last answers are delivered, or read; closing at once would cut them off.
		a.linger = t.Now().Add(drainLinger)
		if a.reads {
			a.linger = t.Now().Add(drainReading)
		}
		t.ArmWake(a.linger)
	}
}

const (
	// drainLinger is how long a drained connection stays open so that its last answers reach the client.
	drainLinger = 100 * time.Millisecond
	// drainReading is the same for a connection whose subscriptions ended with the drain: what they delivered last lies in the windows of a
	// client that works on what came before, and is lost to it when the connection is closed. A client that has it may close first.
	drainReading = time.Second
)

func (a *Session) wake(t *actors.Turn) {
	if !a.s.authenticated.Load() && a.linger.IsZero() {
		a.s.authTimedOut()
	}
	if !a.linger.IsZero() && !t.Now().Before(a.linger) {
		a.s.conn.Close(CloseShutdown)
	}
}

func (a *Session) end(t *actors.Turn) {
	if a.closed {
		return
	}
	a.closed = true
	a.s.cancel()
	if t.Failed() != nil {
		a.s.closeFor(CloseInternal)
	}
	a.s.conn.Close(CloseShutdown)
}

func (a *Session) subscribe(t *actors.Turn, m *Subscribe) {
	r := m.request
	if a.drain {
		r.refuse(draining())
		return
	}
	if f := a.subs.refusal(r.from()); f != nil {
		r.refuse(*f)
		return
	}
	a.next++
	if err := spawnSubscription(t, a.s, a.next, r); err != nil {
		r.refuse(wire.Refuse(wire.CodeInternal, "the subscription could not be started: "+err.Error()).WithRetry(wire.RetryRetry))
		return
	}
	a.subs.take(subscriptionName(a.next), r.from())
}

// start begins to take streams.
func (s *session) start(ref actors.Ref[SessionMessage]) {
	s.ref = ref
	s.opts.Metrics.Connections.Inc()
	s.opts.Metrics.ConnectionsNow.Inc()
	s.pump("accept", func(ctx context.Context) {
		s.pump("accept publish-only", s.acceptReceiveStreams)
		s.acceptStreams(ctx)
	})
}

func (s *session) acceptStreams(ctx context.Context) {
	defer s.cancel()
	for {
		stream, err := s.conn.AcceptStream(ctx)
		if err != nil {
			return
		}
		s.opts.Metrics.Streams.WithLabelValues("control").Inc()
		s.open(newLane(s, wire.RoleControl, stream, stream))
	}
}

func (s *session) acceptReceiveStreams(ctx context.Context) {
	defer s.cancel()
	for {
		stream, err := s.conn.AcceptReceiveStream(ctx)
		if err != nil {
			return
		}
		s.opts.Metrics.Streams.WithLabelValues("publish_only").Inc()
		s.open(newLane(s, wire.RolePublishOnly, stream, nil))
	}
}

// pump runs a goroutine of the session. A panic in it costs the connection only. It reports false, and runs nothing, once
// the connection is gone and all pumps have ended.
func (s *session) pump(name string, run func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.pumps++
	s.opts.Runtime.Go(func() {
		defer s.pumpEnded()
		defer func() {
			if v := recover(); v != nil {
				s.opts.Events.Emit(pumpFailed{session: s.number, pump: name, value: fmt.Sprint(v), stack: debug.Stack()})
				s.closeFor(CloseInternal)
			}
		}()
		run(s.ctx)
	})
	return true
}

func (s *session) pumpEnded() {
	s.mu.Lock()
	s.pumps--
	over := s.pumps == 0
	s.over = over
	if over && s.look != nil {
		s.look.Stop()
	}
	s.mu.Unlock()
	if over { // the accept pumps are among them: the connection is gone
		s.opts.Metrics.ConnectionsNow.Dec()
		s.leaveGroups()
		_ = s.ref.Complete(&ConnClosed{}) // refused when the session was stopped first
	}
}

// open starts to read a stream. Before the first one has authenticated only so many may be open, and so many are read at
// once; the others wait their turn.
func (s *session) open(l *lane) {
	if !s.bookPreauth(l) {
		return
	}
	s.mu.Lock()
	if s.draining {
		l.core.Drain()
	}
	l.place = len(s.lanes)
	s.lanes = append(s.lanes, l)
	s.mu.Unlock()
	s.opts.Metrics.StreamsNow.Inc()
	_ = l.recv.SetReadDeadline(s.opts.Clock.Now().Add(s.opts.AuthTimeout))
	s.pump("read", func(ctx context.Context) {
		l.inPreauth = acquire(ctx, l.gate, s.preauth, 1)
		defer l.leavePreauth()
		l.readPump(ctx)
	})
}

// bookPreauth counts a stream that was opened before the first one has authenticated, with the connection and, but for the first,
// with the node. It closes the connection when that are too many.
func (s *session) bookPreauth(l *lane) bool {
	if s.authenticated.Load() {
		return true
	}
	switch n := s.streams.Add(1); {
	case n > int64(s.opts.PreauthStreamsMax):
		s.closeFor(CloseTooManyStreams)
		return false
	case n == 1:
		return true
	}
	if !s.opts.Preauth.Take(1) {
		s.opts.Preauth.Give(1)
		s.closeFor(CloseOverload)
		return false
	}
	l.preauthBooked = true
	return true
}

// laneDone forgets a lane that is closed.
func (s *session) laneDone(l *lane) {
	s.opts.Metrics.StreamsNow.Dec()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.lanes[len(s.lanes)-1]
	s.lanes[l.place], last.place = last, l.place
	s.lanes[len(s.lanes)-1] = nil
	s.lanes = s.lanes[:len(s.lanes)-1]
}

// idle tells a draining session that a lane has nothing open any more.
func (s *session) idle() {
	s.ref.Signal(actors.Cell{Sender: s.number, Kind: IdleCell, Value: true})
}

// streamAuthenticated notes that a stream has a valid token.
func (s *session) streamAuthenticated() { s.authenticated.Store(true) }

func (s *session) authTimedOut() { s.closeFor(CloseAuthTimeout) }

// closeFor closes the connection for a fault, and counts it once however many streams and pumps find one.
func (s *session) closeFor(code CloseCode) {
	s.closing.Do(func() {
		s.opts.Metrics.Closed.WithLabelValues(code.String()).Inc()
		if code == CloseAuthTimeout {
			s.opts.Metrics.AuthTimeouts.Inc()
		}
		s.conn.Close(code)
	})
}

// bookPartial books bytes of unfinished frames with the connection and the node.
func (s *session) bookPartial(n int64) bool {
	if !s.partial.Take(n) {
		s.partial.Give(n)
		return false
	}
	if !s.opts.Partial.Take(n) {
		s.opts.Partial.Give(n)
		s.partial.Give(n)
		return false
	}
	return true
}

func (s *session) givePartial(n int64) {
	s.partial.Give(n)
	s.opts.Partial.Give(n)
}

// drain makes every lane refuse what is new.
func (s *session) drain() {
	s.mu.Lock()
	s.draining = true
	lanes := slices.Clone(s.lanes)
	s.mu.Unlock()
	for _, l := range lanes {
		l.drain()
	}
	s.leaveGroups() // behind the last poll: from now on lanes refuse
}

func (s *session) busy() bool {
	s.mu.Lock()
	lanes := slices.Clone(s.lanes)
	s.mu.Unlock()
	return slices.ContainsFunc(lanes, (*lane).busy)
}
