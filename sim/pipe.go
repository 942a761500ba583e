package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/sessionactor"
)

var (
	errReset   = errors.New("the writer broke the stream off")
	errStopped = errors.New("the reader stopped the stream")
	errLost    = errors.New("the connection is gone")
)

// pipe is one direction of a stream. What is written is on its way first; the network delivers it later, in pieces the seed chooses, and
// only then it can be read. The writer is held back while window bytes wait, as QUIC's flow control does.
//
//  1. len(flight) + len(arrived) <= window, always;
//  2. what is read is exactly what was written, in order, until the first of: end, reset, loss of the connection;
//  3. a delivery is posted iff posted, and one is posted while there is anything to deliver.
type pipe struct {
	net    *network
	name   string
	window int

	flight   []byte
	arrived  []byte
	read     int // of arrived
	posted   bool
	busy     bool // a Write waits for room
	finished bool // by the writer: no more is written
	ended    bool // the end has arrived too
	broken   error
	stopped  error
	readable *simrt.Gate
	writable *simrt.Gate

	ctx    context.Context // ends when the reader has stopped it, or it was finished
	cancel context.CancelCauseFunc

	clock   actors.Clock // of the reader, for its deadline
	timer   actors.Timer
	expired bool
	done    func() // called once when nothing is left to do for the network
}

func (n *network) newPipe(name string, clock actors.Clock) *pipe {
	p := &pipe{net: n, name: name, window: n.drawWindow(), clock: clock, readable: n.world.NewGate(), writable: n.world.NewGate()}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// Read takes what has arrived, in pieces as small as the seed likes.
func (p *pipe) Read(b []byte) (int, error) {
	if who := p.net.world.Running(); p.net.parked[who] {
		delete(p.net.parked, who)
		p.net.marks.hit(markParkedAdmitted)
	}
	for {
		switch waiting := len(p.arrived) - p.read; {
		case p.broken != nil:
			return 0, p.broken
		case p.expired:
			return 0, os.ErrDeadlineExceeded
		case waiting > 0:
			return p.take(b, waiting), nil
		case p.ended:
			return 0, io.EOF
		}
		if !p.readable.Wait() {
			return 0, errLost // the world ends
		}
	}
}

func (p *pipe) take(b []byte, waiting int) int {
	n := min(len(b), waiting)
	if r := p.net.world.Rand(); n > 1 && r.IntN(8) == 0 {
		n = 1 + r.IntN(n)
		p.net.marks.hit(markShortRead)
	}
	copy(b, p.arrived[p.read:p.read+n])
	if p.read += n; p.read == len(p.arrived) {
		p.arrived, p.read = p.arrived[:0], 0
	}
	p.writable.Ring()
	return n
}

// Write waits until all of b is on its way.
func (p *pipe) Write(b []byte) (int, error) {
	p.busy = true
	defer func() { p.busy = false }()
	done := 0
	for done < len(b) {
		if err := p.refused(); err != nil {
			return done, err
		}
		n := min(len(b)-done, p.room())
		if n <= 0 {
			p.net.marks.hit(markBlock)
			p.net.world.Note("waits for room in %s", p.name)
			if !p.writable.Wait() {
				return done, errLost
			}
			continue
		}
		p.send(b[done : done+n])
		done += n
	}
	return done, p.refused()
}

// TryWriteAll implements sessionactor.SendStream.
func (p *pipe) TryWriteAll(b []byte) error {
	if err := p.refused(); err != nil {
		return err
	}
	if p.busy || len(b) > p.room() {
		p.net.marks.hit(markWouldBlock)
		p.net.world.Note("%d bytes would block on %s", len(b), p.name)
		return sessionactor.ErrWouldBlock
	}
	p.send(b)
	return nil
}

func (p *pipe) room() int { return p.window - len(p.flight) - (len(p.arrived) - p.read) }

// refused is why nothing more can be written.
func (p *pipe) refused() error {
	if p.stopped == nil && p.finished {
		return errors.New("the stream was finished")
	}
	return p.stopped
}

func (p *pipe) send(b []byte) {
	p.net.world.Note("writes %d bytes to %s", len(b), p.name)
	p.flight = append(p.flight, b...)
	p.post()
}

// post makes a delivery a possible next step.
func (p *pipe) post() {
	if !p.posted && p.broken == nil {
		p.posted = true
		p.net.world.Post(simrt.Network, p.name, p.deliver)
	}
}

// deliver moves some of what is on its way to the reader, and the end behind it.
func (p *pipe) deliver() {
	p.posted = false
	if p.broken != nil {
		return
	}
	w, n := p.net.world, len(p.flight)
	if n > 1 && w.Rand().IntN(3) == 0 {
		n = 1 + w.Rand().IntN(n)
	}
	w.MixBytes(p.flight[:n])
	w.Note("%d of %d bytes arrive", n, len(p.flight))
	p.arrived = append(p.arrived, p.flight[:n]...)
	p.flight = p.flight[:copy(p.flight, p.flight[n:])]
	switch {
	case len(p.flight) > 0:
		p.post()
	case p.finished:
		p.ended = true
		w.Note("the end arrives")
		p.over()
	}
	p.readable.Ring()
}
