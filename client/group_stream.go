package client

import (
	"context"
	"errors"
	"time"

	"github.com/felixd/felixd/wire"
)

// groupStream is a stream for many requests about a group, to whoever owns the shard. It is opened when it is needed, and again
// when it broke or the shard has another owner. One goroutine uses it at a time.
type groupStream struct {
	client  *Client
	route   *route
	op      string
	needs   wire.Features
	feature string // what is missing when the broker does not offer that

	at      *target
	control *control // nil: there is none
}

// do runs an exchange at the owner, wherever redirects lead. steps may run several times, and must take what was answered
// already into account. wait is how long the broker may take on purpose.
func (g *groupStream) do(ctx context.Context, wait time.Duration, steps func(s *control) error) error {
	return g.client.follow(ctx, g.route, func(t *target) error {
		if err := g.open(ctx, t); err != nil {
			return err
		}
		s := g.control
		s.link.busy.Add(1)
		defer s.link.busy.Add(-1)
		err := g.client.exchangeWithin(ctx, s, g.op, wait, func() error { return steps(s) })
		if err != nil && !goesOn(err) {
			g.close()
		}
		if errors.Is(err, ErrDraining) {
			s.pool.passOver(s.link)
		}
		return err
	})
}

// goesOn reports whether a stream is still good after an error: the broker answered in order.
func goesOn(err error) bool {
	var refused *BrokerError
	var leader *NotLeaderError
	return errors.As(err, &refused) && refused.Retry != 0 && refused.Code != wire.CodeDraining || errors.As(err, &leader)
}

// open makes sure that there is a stream to a broker.
func (g *groupStream) open(ctx context.Context, t *target) error {
	if g.control != nil && g.at == t && g.control.link.alive() {
		return nil
	}
	g.close()
	s, err := g.client.openControlAt(ctx, t.cacheLinks, g.op, 0, g.route.seat)
	if err != nil {
		return err
	}
	if !s.grant.Features.Has(g.needs) {
		s.finish()
		return &UnsupportedError{Op: g.op, Feature: g.feature}
	}
	g.at, g.control = t, s
	return nil
}

func (g *groupStream) close() {
	if g.control != nil {
		g.control.finish()
		g.control = nil
	}
}
