package client

import (
	"context"
	"errors"
	"slices"

	"github.com/felixd/felixd/wire"
)

// hopsMax is how many redirects one try follows.
const hopsMax = 3

// follow runs step at the owner of a shard: at the remembered one, else at the entry, and from there wherever the brokers
// point, up to three hops and never twice to the same broker. A broker that was pointed to and cannot serve sends the
// request back to the entry once. step must change nothing unless it succeeds.
func (c *Client) follow(ctx context.Context, r *route, step func(t *target) error) error {
	at := r.current(c.entry)
	var visited []string // node ids of the hops
	returned := false
	for {
		err := step(at)
		if err == nil || ctx.Err() != nil {
			return err
		}
		r.forget(at)
		var moved *NotLeaderError
		switch {
		case errors.As(err, &moved):
			next := c.hop(moved)
			if next == nil || len(visited) == hopsMax || slices.Contains(visited, moved.NodeID) {
				return err
			}
			visited = append(visited, moved.NodeID)
			r.learn(c, wire.Owner{NodeID: moved.NodeID, Addr: moved.Addr, Generation: moved.Generation})
			at = next
		case at != c.entry && !returned && (isConnectFailure(err) || untaken(err)):
			returned, at = true, c.entry
		default:
			return err
		}
	}
}

// hop is the broker a redirect points to; nil when it named no address.
func (c *Client) hop(moved *NotLeaderError) *target {
	if moved.Addr == "" {
		return nil
	}
	return c.owners.at(c, moved.Addr)
}
