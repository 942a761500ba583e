package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/felixd/felixd/wire"
)

// laneDepthMax bounds what a broker can make this client keep by granting a huge window.
const laneDepthMax = 4 * wire.PublishWindow

// laneKind says what travels on a lane.
type laneKind uint8

const (
	publishLane laneKind = iota + 1
	cacheLane
)

// lane is an authenticated stream with several requests under way. Requests are written in the order of submit; a broker
// answers the requests of a stream in their order, but answers name their request, so another order does no harm. What a
// lane holds is bounded in items by its slots, and in bytes by the client's budgets. The token it was opened with may
// expire meanwhile: the stream stays good until the broker ends it.
type lane struct {
	client  *Client
	kind    laneKind
	control *control

	slots  chan struct{} // one for each request under way
	wake   chan struct{} // there is something for the writer
	timer  *time.Timer   // looks after the oldest unanswered request
	closed chan struct{} // everything has ended

	mu        sync.Mutex
	lastID    uint64
	out       outbox         // not written yet
	pending   fifo[*request] // written, or about to be, and unanswered
	writing   bool           // the writer has a chunk that may not be written yet
	tried     int            // bytes that were written without it since it has written
	gathered  bool           // it is in link.gathering, and somebody is about to write for it
	unordered bool           // an answer overtook another: an uncorrelated error could be anybody's
	blind     bool           // a request without an answer went this way: only the end of the stream says that the broker took it
	closing   bool           // no new requests; the stream ends after the last
	err       error          // why it died; nil while it lives
	lost      int            // requests that were under way then
	dead      chan struct{}  // closed with err
}

// newLane starts a lane on a stream. It is ErrClosed when the client is closing.
func newLane(c *Client, kind laneKind, control *control) (*lane, error) {
	l := &lane{
		client: c, kind: kind, control: control,
		slots: make(chan struct{}, depthOf(c, kind, control)), wake: make(chan struct{}, 1),
		out:  outbox{spares: &c.chunks},
		dead: make(chan struct{}), closed: make(chan struct{}),
	}
	l.timer = time.AfterFunc(c.opts.AckTimeout, l.overdue)
	l.timer.Stop()
	if !c.life.spawn(l.run) {
		control.finish()
		return nil, ErrClosed
	}
	return l, nil
}

// depthOf is how many requests a lane has under way.
func depthOf(c *Client, kind laneKind, control *control) int {
	if control.window == 0 {
		return c.opts.PublishQueueDepth
	}
	depth := int(min(control.window, laneDepthMax))
	if kind == publishLane && !control.grant.Features.Has(wire.FeatureStreamPublishWindow) {
		depth = max(1, depth/c.opts.PublishStreams) // the window is the connection's, and all lanes may be on one
	}
	return depth
}

func (l *lane) run() {
	var writer sync.WaitGroup
	writer.Go(l.write)
	l.read()
	writer.Wait()
	l.timer.Stop()
	l.control.finish()
	close(l.closed)
}

// alive reports whether the lane takes requests.
func (l *lane) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && !l.closing
}

// submit queues a request, waiting for a slot. An error means that nothing was or will be sent, and the request is still
// the caller's; errLaneGone asks for another lane.
func (l *lane) submit(ctx context.Context, r *request) error {
	select {
	case l.slots <- struct{}{}:
	case <-l.dead:
		return errLaneGone
	case <-ctx.Done():
		return opError(r.op(), ctx.Err())
	}
	joins, err := l.enqueue(r)
	if err != nil {
		<-l.slots
	}
	if joins {
		l.control.link.gathering.Do(l, (*lane).writeGathered)
	}
	return err
}

// enqueue queues a request, and has it written unless joins says that it leaves with requests of others, which the caller sees to.
func (l *lane) enqueue(r *request) (joins bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.closing {
		return false, errLaneGone
	}
	l.lastID++
	r.id = l.lastID
	idle := l.idle()
	if err := l.out.add(l, r); err != nil {
		return false, err
	}
	l.blind = l.blind || r.silent
	if idle {
		l.control.link.owed()
	}
	switch {
	case l.gathers():
		joins = !l.gathered
		l.gathered = true
	case !l.writeNow():
		l.ring()
	}
	return joins, nil
}

// errLaneGone says that a lane takes no more requests; the one at hand was not sent.
var errLaneGone = errors.New("the stream is gone")

// idle reports whether nothing is under way. The lock is held.
func (l *lane) idle() bool { return l.out.requests+l.pending.len() == 0 }

func (l *lane) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// finishOne accounts for one request that left the lane. The lock is held.
func (l *lane) finishOne() {
	<-l.slots
	if l.idle() {
		l.control.link.settled()
	}
	if l.closing {
		l.ring()
	}
}

// retire takes no new requests and ends the stream after the last: the broker said that it goes away.
func (l *lane) retire() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.ring()
}
