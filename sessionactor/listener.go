package sessionactor

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/actors"
)

// ListenerMessage is everything a Listener accepts.
//
//sumtype:decl
type ListenerMessage interface{ listenerMessage() }

// Accepted is a connection that a client made.
type Accepted struct{ Conn Conn }

// Drain asks the listener to take no more connections and to let the sessions finish; Done is called once none is left.
type Drain struct{ Done func() }

func (*Accepted) listenerMessage() {}
func (*Drain) listenerMessage()    {}

// Listener owns the client sessions of a node.
//
//	path     sessions                               lanes    data 64 items / 1 KiB, control
//	blocks   never                                  failure  the node drains and exits: no client can reach it
//
//	in               from               then
//	Accepted         its accept pump    a Session
//	Drain            the daemon         DrainCell to every Session; Done when the last is gone
//	QuietCell        the admission      FinishCell to every Session
//	Terminated       its Sessions       counted
type Listener struct {
	opts     *Options
	acceptor Acceptor
	cancel   context.CancelFunc
	sessions []named
	index    map[string]int // place in sessions
	next     uint64
	draining *Drain
	drained  bool
}

// QuietCell tells a draining listener that nothing is under way any more.
const QuietCell actors.CellKind = 1

type named struct {
	name string
	ref  actors.Ref[SessionMessage]
}

// listenerBounds: 64 connections may wait for their session; more are closed as overload.
var listenerBounds = actors.Bounds{DataItems: 64, DataBytes: 1 << 10}

// SpawnListener starts to accept connections.
func SpawnListener(sys *actors.System, opts Options, acceptor Acceptor) (actors.Ref[ListenerMessage], error) {
	return actors.Spawn[ListenerMessage](sys, actors.Spec[ListenerMessage]{
		Name: "sessions", Kind: "listener", Bounds: listenerBounds,
		New: func() actors.Actor { return &Listener{opts: &opts, acceptor: acceptor, index: map[string]int{}} },
		OnUnstepped: func(m ListenerMessage) {
			switch m := m.(type) {
			case *Accepted:
				m.Conn.Close(CloseShutdown)
			case *Drain:
				m.Done()
			}
		},
	})
}

// Receive is one turn.
func (l *Listener) Receive(t *actors.Turn) {
	switch t.Lifecycle() {
	case actors.Started:
		ctx, cancel := context.WithCancel(context.Background())
		l.cancel = cancel
		ref := actors.RefOf[ListenerMessage](t)
		l.opts.Runtime.Go(func() { acceptPump(ctx, l.acceptor, ref, l.opts.Metrics) })
		return
	case actors.Stopping, actors.Stopped:
		l.cancel()
		return
	}
	for _, x := range t.ChildTerminated() {
		l.forget(x.Name)
	}
	for _, m := range t.Messages() {
		switch m := m.(type) {
		case *Accepted:
			l.accepted(t, m.Conn)
		case *Drain:
			l.drain(t, m)
		default:
			panic(fmt.Sprintf("sessionactor: a listener got %T", m))
		}
	}
	for _, c := range t.Cells() {
		if c.Kind == QuietCell {
			l.tell(FinishCell)
		}
	}
	if l.draining != nil && len(l.sessions) == 0 && !l.drained {
		l.drained = true
		l.draining.Done()
	}
}

func (l *Listener) accepted(t *actors.Turn, conn Conn) {
	if l.draining != nil {
		conn.Close(CloseShutdown)
		return
	}
	l.next++
	ref, err := spawnSession(t, l.opts, l.next, conn)
	if err != nil {
		return // the connection was closed
	}
	name := fmt.Sprint(l.next)
	l.index[name] = len(l.sessions)
	l.sessions = append(l.sessions, named{name, ref})
}

func (l *Listener) forget(name string) {
	i, ok := l.index[name]
	if !ok {
		return
	}
	last := len(l.sessions) - 1
	l.sessions[i] = l.sessions[last]
	l.index[l.sessions[i].name] = i
	l.sessions[last] = named{}
	l.sessions = l.sessions[:last]
	delete(l.index, name)
}

// drain stops in two steps. First nothing more gets under way, and the lanes refuse what is new. When all that was under way, of all
// sessions, has its outcome, there is nothing left to come for subscribers, and they end too, with everything that was acknowledged.
func (l *Listener) drain(t *actors.Turn, m *Drain) {
	if l.draining != nil {
		m.Done()
		return
	}
	l.draining = m
	l.cancel()
	_ = l.acceptor.StopAccepting() // it may be closed already; either way nothing new comes
	l.tell(DrainCell)
	ref := actors.RefOf[ListenerMessage](t)
	l.opts.Admission.drain(func() { ref.Signal(actors.Cell{Kind: QuietCell, Value: true}) })
}

func (l *Listener) tell(kind actors.CellKind) {
	for _, s := range l.sessions {
		s.ref.Signal(actors.Cell{Kind: kind, Value: true})
	}
}

// acceptPump hands connections to the listener, and closes those that it has no room for: the client tries again.
func acceptPump(ctx context.Context, acceptor Acceptor, ref actors.Ref[ListenerMessage], metrics *Metrics) {
	for {
		conn, err := acceptor.Accept(ctx)
		if err != nil {
			return
		}
		if err := ref.TrySend(&Accepted{Conn: conn}, 0); err != nil {
			metrics.Closed.WithLabelValues(CloseOverload.String()).Inc()
			conn.Close(CloseOverload)
		}
	}
}
