package main

import (
	"context"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/sessionactor"
)

// network carries connections between clients and the nodes of one world.
type network struct {
	world  *simrt.World
	marks  *Marks
	tight  bool // windows are small in this world
	links  []*link
	wanted int             // subscriptions of all links that wait for a stream
	parked map[string]bool // pumps that waited for room and have not read since; never iterated
}

// drawWindow chooses the flow-control window of one direction of a stream, in bytes.
func (n *network) drawWindow() int {
	r := n.world.Rand()
	if n.tight && r.IntN(2) == 0 {
		return 100 + r.IntN(1000)
	}
	return 4<<10 + r.IntN(256<<10)
}

// link is one connection. Its two sides learn of its end at different moments.
type link struct {
	net     *network
	name    string
	client  *side
	broker  *side
	places  int           // unidirectional streams the client still allows the broker
	wanted  []*simrt.Gate // of those who wait for one, oldest first
	code    sessionactor.CloseCode
	closed  bool   // by the broker, with code
	session string // path of the session, once it takes streams
}

// side is one end of a link.
type side struct {
	link    *link
	ctx     context.Context
	cancel  context.CancelCauseFunc
	other   *side
	streams queue[stream] // opened by the other side, bidirectional
	oneWay  queue[*pipe]  // opened by the other side, unidirectional
	ends    []*pipe       // that end here, to be read
	begins  []*pipe       // that begin here, to be written
	clock   actors.Clock
}

// queue is what one side waits for.
type queue[T any] struct {
	list []T
	gate *simrt.Gate
}

func (q *queue[T]) push(v T) {
	q.list = append(q.list, v)
	q.gate.Ring()
}

// pop waits for the next one.
func (q *queue[T]) pop(until ...context.Context) (v T, ok bool) {
	for len(q.list) == 0 {
		if !q.gate.Wait(until...) {
			return v, false
		}
	}
	v = q.list[0]
	q.list = q.list[1:]
	return v, true
}

// stream is one end of a bidirectional stream.
type stream struct{ in, out *pipe }

// dial makes a connection between a client and a node; the node gets it when the network has carried it there.
func (n *network) dial(name string, to *broker, clientClock actors.Clock, places int) *link {
	l := &link{net: n, name: name, places: places}
	l.client, l.broker = l.newSide(clientClock), l.newSide(to.clock)
	l.client.other, l.broker.other = l.broker, l.client
	n.links = append(n.links, l)
	n.world.Post(simrt.Network, name, func() {
		n.world.Note("the connection arrives at %s", to.name)
		to.acceptor.arrived(l)
	})
	return l
}

func (l *link) newSide(clock actors.Clock) *side {
	s := &side{link: l, clock: clock}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.streams.gate, s.oneWay.gate = l.net.world.NewGate(), l.net.world.NewGate()
	return s
}

// fail ends one side: everything it reads or writes fails from now on.
func (s *side) fail(err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.cancel(err)
	for _, p := range s.ends {
		p.breakOff(err)
	}
	for _, p := range s.begins {
		p.stop(err)
	}
}

// lose ends both sides, this one now and the other when the network gets there.
func (s *side) lose(why string) {
	if s.ctx.Err() != nil {
		return
	}
	s.fail(errLost)
	s.link.net.world.Post(simrt.Network, s.link.name, func() {
		s.link.net.world.Note("the other side hears of the end: %s", why)
		s.other.fail(errLost)
	})
}

// open opens a bidirectional stream towards the other side.
func (s *side) open(name string) stream {
	out, in := s.towards(name+">"), s.from(name+"<")
	s.link.net.world.Post(simrt.Network, name, func() {
		s.link.net.world.Note("the stream is opened")
		if s.other.ctx.Err() == nil {
			s.other.streams.push(stream{in: out, out: in})
		}
	})
	return stream{in: in, out: out}
}

// openOneWay opens a unidirectional stream towards the other side.
func (s *side) openOneWay(name string) *pipe {
	out := s.towards(name + ">")
	s.link.net.world.Post(simrt.Network, name, func() {
		s.link.net.world.Note("the stream is opened")
		if s.other.ctx.Err() == nil {
			s.other.oneWay.push(out)
		}
	})
	return out
}

func (s *side) towards(name string) *pipe {
	p := s.link.net.newPipe(name, s.other.clock)
	s.begins, s.other.ends = append(s.begins, p), append(s.other.ends, p)
	s.adopt(p)
	return p
}

func (s *side) from(name string) *pipe {
	p := s.link.net.newPipe(name, s.clock)
	s.ends, s.other.begins = append(s.ends, p), append(s.other.begins, p)
	s.adopt(p)
	return p
}

// adopt makes a pipe that is opened on a dead link dead too.
func (s *side) adopt(p *pipe) {
	if s.ctx.Err() != nil {
		p.stop(errLost)
		p.breakOff(errLost)
	}
}
