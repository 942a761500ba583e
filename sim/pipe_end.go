package main

import (
	"context"
	"errors"
	"time"

	"github.com/felixd/felixd/actors/simrt"
)

// Close finishes the stream after what was written.
func (p *pipe) Close() error {
	if p.finished || p.stopped != nil {
		return p.stopped
	}
	p.finished = true
	p.cancel(errors.New("the stream was finished"))
	p.post()
	return nil
}

// CancelWrite breaks the stream off: what is on its way may be lost.
func (p *pipe) CancelWrite() {
	if p.stopped != nil || p.ended {
		return
	}
	p.stop(errReset)
	p.net.world.Post(simrt.Network, p.name, func() {
		p.net.world.Note("a reset arrives")
		p.breakOff(errReset)
	})
}

// CancelRead tells the writer to stop, and lets go of what was not read.
func (p *pipe) CancelRead() {
	if p.broken != nil || p.ended && p.read == len(p.arrived) {
		p.disarm()
		return
	}
	p.breakOff(errStopped)
	p.net.world.Post(simrt.Network, p.name, func() {
		p.net.world.Note("a stop arrives")
		p.stop(errStopped)
	})
}

// stop ends the writer's side.
func (p *pipe) stop(err error) {
	if p.stopped == nil {
		p.stopped = err
		p.cancel(err)
		p.writable.Ring()
	}
}

// breakOff ends the reader's side.
func (p *pipe) breakOff(err error) {
	if p.broken == nil {
		p.broken = err
		p.flight, p.arrived, p.read = nil, nil, 0
		p.disarm()
		p.over()
		p.readable.Ring()
	}
}

func (p *pipe) over() {
	if p.done != nil {
		p.done()
		p.done = nil
	}
}

// Context implements sessionactor.SendStream.
func (p *pipe) Context() context.Context { return p.ctx }

// SetReadDeadline implements sessionactor.ReceiveStream, on the reader's clock.
func (p *pipe) SetReadDeadline(t time.Time) error {
	p.disarm()
	p.expired = false
	if t.IsZero() || p.broken != nil {
		return nil
	}
	p.timer = p.clock.AfterFunc(t.Sub(p.clock.Now()), func() {
		p.net.world.Note("%s: read deadline", p.name)
		p.expired = true
		p.readable.Ring()
	})
	return nil
}

func (p *pipe) disarm() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}
