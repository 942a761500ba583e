package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// laneSet is a fixed number of lanes to one target, each opened when it is first needed and again after it died.
type laneSet struct {
	client *Client
	pool   *linkPool
	kind   laneKind
	places []lanePlace
}

type lanePlace struct {
	cell[*lane]
	users atomic.Int64 // requests under way, for the choice of the least busy
}

func newLaneSet(c *Client, pool *linkPool, size int, kind laneKind) *laneSet {
	s := &laneSet{client: c, pool: pool, kind: kind, places: make([]lanePlace, size)}
	for i := range s.places {
		p := &s.places[i]
		p.life, p.ctx, p.build, p.alive = &c.life, c.closing, s.open, (*lane).alive
	}
	return s
}

// open opens one lane, at the entry with as many tries as the options allow. Another broker is tried once: the entry can
// stand in for it.
func (s *laneSet) open(ctx context.Context) (*lane, error) {
	const op = "open a stream"
	bounds := limits{tries: s.client.opts.Attempts, time: s.client.opts.RetryDeadline}
	if s.pool.target != s.client.entry {
		bounds.tries = 1
	}
	var l *lane
	err := s.client.repeatWithin(ctx, op, bounds, repeatable, func() error {
		control, err := s.client.openControl(ctx, s.pool, op, 0)
		if err == nil {
			l, err = newLane(s.client, s.kind, control)
		}
		return err
	})
	return l, err
}

// submit queues a request on the i-th lane. A lane that goes away before it took the request is replaced; nothing is ever
// sent twice.
func (s *laneSet) submit(ctx context.Context, i int, r *request) error {
	for try := 1; ; try++ {
		l, err := s.places[i].get(ctx)
		if err != nil {
			return s.unopened(ctx, r, err)
		}
		err = l.submit(ctx, r)
		switch {
		case !errors.Is(err, errLaneGone):
			return err
		case s.client.isClosed():
			return closedError(r.op())
		case try >= s.client.opts.Attempts:
			return &ConnectionLostError{Op: r.op(), Addr: l.control.link.addr, Err: err}
		}
	}
}

// unopened is the error of a request whose lane could not be opened. The opening was shared, so it names the request anew.
func (s *laneSet) unopened(ctx context.Context, r *request, err error) error {
	switch {
	case s.client.isClosed():
		return closedError(r.op())
	case ctx.Err() != nil:
		return opError(r.op(), ctx.Err())
	}
	return opError(r.op(), err)
}

// leastBusy picks a place with the fewest requests, the first of them: sequential requests stay on one lane, concurrent
// ones spread. The caller gives it back with users.Add(-1).
func (s *laneSet) leastBusy() (i int) {
	best := &s.places[0]
	for j := range s.places {
		if s.places[j].users.Load() < best.users.Load() {
			i, best = j, &s.places[j]
		}
	}
	best.users.Add(1)
	return i
}

// close ends all lanes after their last answers, at once. Nothing new is opened any more.
func (s *laneSet) close(ctx context.Context) error {
	errs := make([]error, len(s.places))
	var all sync.WaitGroup
	for i := range s.places {
		all.Go(func() {
			if l, ok := s.places[i].settled(); ok {
				errs[i] = l.shut(ctx)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
