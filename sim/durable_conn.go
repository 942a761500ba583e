package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/wire"
)

// dclient is one client process, which connects again whenever it loses its connection.
type dclient struct {
	run     *drun
	name    string
	number  uint64
	records uint64
	streams uint64
	vain    int // times in a row that it was refused
}

// dconn is one connection of a client with the one stream that it asks on.
type dconn struct {
	c       *dclient
	link    *link
	name    string
	stream  stream
	pending []*dask
	changed *simrt.Gate // of the one coroutine that asks
	over    bool
	buf     []byte
}

// dask is one request that waits for its answer.
type dask struct {
	what string
	sent int // step
	take func(*dask, answer) error
	lost func() // it will never be answered
}

func (r *drun) newClient() *dclient {
	r.clients++
	return &dclient{run: r, name: fmt.Sprintf("c%d", r.clients), number: uint64(r.clients)}
}

// work starts what the client does; the run waits for its end.
func (c *dclient) work(what string, do func()) {
	c.run.busy++
	c.launch(what, func() {
		do()
		c.run.busy--
	})
}

func (c *dclient) launch(what string, do func()) {
	c.run.world.Go(simrt.Outside, c.name+" "+what, do)
}

// sleep gives way for up to d of true time; false when the world ends.
func (c *dclient) sleep(d time.Duration) bool {
	g := c.run.world.NewGate()
	c.run.clock.AfterFunc(time.Duration(c.run.world.Rand().Int64N(int64(d))), g.Ring)
	return g.Wait()
}

// retry waits before a client tries again: longer and longer while that is in vain. false when the world ends.
func (c *dclient) retry() bool {
	c.vain = min(c.vain+1, 10)
	return c.sleep(2 * time.Millisecond << c.vain)
}

// connect connects to the node, whichever life it is in, and authenticates; nil when there is nothing left to do.
func (c *dclient) connect() *dconn {
	for wait := 4 * time.Millisecond; !c.run.finished; wait = min(2*wait, time.Second) {
		if n := c.run.node; n != nil && n.listens {
			t := c.dial(n)
			if t.authenticate() {
				return t
			}
			t.close()
		}
		if !c.sleep(wait) {
			return nil
		}
	}
	return nil
}

func (c *dclient) dial(n *dnode) *dconn {
	c.streams++
	t := &dconn{c: c, name: fmt.Sprintf("%s/%d", c.name, c.streams), changed: c.run.world.NewGate()}
	t.link = c.run.net.dial(t.name, n.at, c.run.clock, 1)
	t.stream = t.link.client.open(t.name)
	c.launch("reader", t.read)
	return t
}

func (t *dconn) authenticate() bool {
	auth := &wire.Auth{TenantID: durableTenant, Token: "good " + durableTenant}
	offerToday(auth)
	if t.c.run.plan.Limits.AckAtClaim { // or the client asks for more than the node gives by itself
		auth.ClientFeatures = wire.Some(auth.ClientFeatures.V &^ wire.FeatureAckOnCommit)
	}
	good := false
	ok := t.do(&dask{what: "auth", take: func(_ *dask, got answer) error {
		_, good = got.message.(*wire.AuthOK)
		return nil
	}}, wire.AppendJSONFrame(nil, auth))
	return ok && good
}

// close ends the connection from the client's side.
func (t *dconn) close() { t.link.client.lose("the client closes it") }

// nextID numbers the requests of all clients.
func (r *drun) nextID() uint64 {
	r.requests++
	return r.requests
}

// send sends a request; false when the stream is over.
func (t *dconn) send(a *dask, frame []byte) bool {
	if t.over {
		return false
	}
	a.sent = t.c.run.world.Steps()
	t.c.run.world.Note("sends %s", a.what)
	if a.take != nil {
		t.pending = append(t.pending, a)
	}
	_, err := t.stream.Write(frame)
	return err == nil && !t.over
}

// idle waits until no more than most requests are open; false when the stream is over.
func (t *dconn) idle(most int) bool {
	for len(t.pending) > most && !t.over {
		if !t.changed.Wait() {
			return false
		}
	}
	return !t.over
}

// do sends a request and waits for its answer.
func (t *dconn) do(a *dask, frame []byte) bool { return t.send(a, frame) && t.idle(0) }

// read takes answers until the stream is over. They come in the order of the requests.
func (t *dconn) read() {
	for {
		flags, body, err := readFrame(t.stream.in, &t.buf)
		if err != nil {
			t.ended(err)
			return
		}
		a, err := decodeAnswer(flags, body)
		if err == nil {
			err = t.answered(a)
		}
		if err != nil {
			t.c.run.failf("%s: %v", t.name, err)
			t.ended(err)
			return
		}
	}
}

func (t *dconn) answered(a answer) error {
	if len(t.pending) == 0 {
		return fmt.Errorf("an answer to nothing: %s", a)
	}
	next := t.pending[0]
	t.pending = t.pending[1:]
	t.c.run.answered++
	t.c.run.world.Note("%s is answered %s", next.what, a)
	t.changed.Ring()
	if err := next.take(next, a); err != nil {
		return fmt.Errorf("%s: %w", next.what, err)
	}
	return nil
}

// ended gives up what was not answered. A stream whose connection lives ends only when the node goes down in order.
func (t *dconn) ended(err error) {
	t.over = true
	run := t.c.run
	if errors.Is(err, io.EOF) && len(t.pending) > 0 && !run.finished {
		run.failf("%s: the broker ended the stream with %d requests unanswered", t.name, len(t.pending))
	}
	if len(t.pending) > 0 {
		run.marks.hit(dmarkConnLost)
	}
	for _, a := range t.pending {
		if a.lost != nil {
			a.lost()
		}
	}
	t.pending = nil
	t.changed.Ring()
	t.stream.in.CancelRead()
}
