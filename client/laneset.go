package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// laneSet is a fixed number of lanes, each opened when it is first needed and again after it died.
type laneSet struct {
	client *Client
	pool   *linkPool
	kind   laneKind
	places []lanePlace
}

// lanePlace is one lane. The token in gate is the right to replace it; waiting for it can be given up.
type lanePlace struct {
	gate    chan struct{}
	current atomic.Pointer[lane]
	users   atomic.Int64 // requests under way, for the choice of the least busy
}

func newLaneSet(c *Client, pool *linkPool, size int, kind laneKind) *laneSet {
	s := &laneSet{client: c, pool: pool, kind: kind, places: make([]lanePlace, size)}
	for i := range s.places {
		s.places[i].gate = make(chan struct{}, 1)
		s.places[i].gate <- struct{}{}
	}
	return s
}

// lane returns the i-th lane, opening it if need be with as many tries as the options allow.
func (s *laneSet) lane(ctx context.Context, i int, op string) (*lane, error) {
	place := &s.places[i]
	if l := place.current.Load(); l != nil && l.alive() {
		return l, nil
	}
	ctx, cancel := s.client.bound(ctx)
	defer cancel()
	select {
	case <-place.gate:
	case <-ctx.Done():
		return nil, s.client.ended(ctx, op)
	}
	defer func() { place.gate <- struct{}{} }()
	if s.client.isClosed() {
		return nil, closedError(op)
	}
	if l := place.current.Load(); l != nil && l.alive() {
		return l, nil
	}
	err := s.client.repeat(ctx, op, func() error {
		control, err := s.client.openControl(ctx, s.pool, op)
		if err == nil {
			place.current.Store(newLane(s.client, s.kind, control))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return place.current.Load(), nil
}

// submit puts a request on the i-th lane. encode makes the frame for the lane it is to travel on and gives the request
// its id. A lane that goes away before it took the request is replaced; nothing is ever sent twice.
func (s *laneSet) submit(ctx context.Context, i int, r *request, encode func(l *lane) error) error {
	for try := 1; ; try++ {
		l, err := s.lane(ctx, i, r.op)
		if err != nil {
			return err
		}
		if err := encode(l); err != nil {
			return err
		}
		err = l.submit(ctx, r)
		switch {
		case !errors.Is(err, errLaneGone):
			return err
		case s.client.isClosed():
			return closedError(r.op)
		case try >= s.client.opts.Attempts:
			return &ConnectionLostError{Op: r.op, Addr: l.control.link.addr, Err: err}
		}
	}
}

// leastBusy picks a place with the fewest requests, the first of them: sequential requests stay on one lane, concurrent
// ones spread. The caller gives it back with release.
func (s *laneSet) leastBusy() (i int, release func()) {
	best := &s.places[0]
	for j := range s.places {
		if s.places[j].users.Load() < best.users.Load() {
			i, best = j, &s.places[j]
		}
	}
	best.users.Add(1)
	return i, func() { best.users.Add(-1) }
}

// close ends all lanes after their last answers, at once.
func (s *laneSet) close(ctx context.Context) error {
	errs := make([]error, len(s.places))
	var all sync.WaitGroup
	for i := range s.places {
		all.Go(func() {
			<-s.places[i].gate // an opening under way gives up first
			defer func() { s.places[i].gate <- struct{}{} }()
			if l := s.places[i].current.Load(); l != nil {
				errs[i] = l.shut(ctx)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
