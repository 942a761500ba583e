package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/wire"
)

const (
	// laneDepth is how many requests a lane has under way when the broker granted no window: what the reference client
	// queues per stream.
	laneDepth = 64
	// laneDepthMax bounds what a broker can make this client keep by granting a huge window.
	laneDepthMax = 4 * wire.PublishWindow
	// writeChunk is how many bytes of small requests are joined into one write.
	writeChunk = 64 << 10
)

// laneKind says what travels on a lane.
type laneKind uint8

const (
	publishLane laneKind = iota + 1
	cacheLane
)

// lane is an authenticated stream with several requests under way. Requests are written in the order of submit; a broker
// answers the requests of a stream in their order, but answers name their request, so another order does no harm. What a
// lane holds is bounded in items by its slots, and for publishes in bytes by the client's budget.
type lane struct {
	client  *Client
	kind    laneKind
	control *control

	slots  chan struct{} // one for each request under way
	wake   chan struct{} // there is something for the writer
	nextID atomic.Uint64
	timer  *time.Timer   // looks after the oldest unanswered request
	closed chan struct{} // everything has ended

	mu        sync.Mutex
	queue     fifo[*request] // not written yet
	pending   fifo[*request] // written, or about to be, and unanswered
	unordered bool           // an answer overtook another: an uncorrelated error could be anybody's
	closing   bool           // no new requests; the stream ends after the last
	err       error          // why it died; nil while it lives
	lost      int            // requests that were under way then
	dead      chan struct{}  // closed with err
}

func newLane(c *Client, kind laneKind, control *control) *lane {
	depth := laneDepth
	if control.window > 0 {
		depth = int(min(control.window, laneDepthMax))
		if !control.grant.Features.Has(wire.FeatureStreamPublishWindow) && kind == publishLane {
			depth = max(1, depth/c.opts.PublishStreams) // the window is the connection's
		}
	}
	l := &lane{
		client: c, kind: kind, control: control,
		slots: make(chan struct{}, depth), wake: make(chan struct{}, 1),
		dead: make(chan struct{}), closed: make(chan struct{}),
	}
	l.timer = time.AfterFunc(c.opts.AckTimeout, l.overdue)
	l.timer.Stop()
	var both sync.WaitGroup
	both.Go(l.write)
	both.Go(l.read)
	c.readers.Go(func() {
		both.Wait()
		l.timer.Stop()
		control.finish()
		close(l.closed)
	})
	return l
}

// alive reports whether the lane takes requests.
func (l *lane) alive() bool {
	select {
	case <-l.dead:
		return false
	default:
		return true
	}
}

// submit queues a request whose frame is complete, waiting for a slot. An error means that nothing was or will be sent, and
// the request is still the caller's; errLaneGone asks for another lane.
func (l *lane) submit(ctx context.Context, r *request) error {
	select {
	case l.slots <- struct{}{}:
	case <-l.dead:
		return errLaneGone
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", r.op, ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.closing {
		<-l.slots
		return errLaneGone
	}
	if l.queue.len()+l.pending.len() == 0 {
		l.control.link.busy.Add(1)
	}
	l.queue.push(r)
	l.ring()
	return nil
}

// errLaneGone says that a lane takes no more requests; the one at hand was not sent.
var errLaneGone = errors.New("the stream is gone")

func (l *lane) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// finishOne accounts for one request that left queue and pending. The lock is held.
func (l *lane) finishOne() {
	<-l.slots
	if l.queue.len()+l.pending.len() == 0 {
		l.control.link.busy.Add(-1)
	}
	if l.closing {
		l.ring()
	}
}
