package client

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// StreamShards is how a stream maps keys to shards.
type StreamShards struct {
	Count   uint32
	Routing wire.Routing
}

// ShardOwner says which broker serves a shard.
type ShardOwner struct {
	Shard       uint32
	NodeID      string        // empty outside a cluster
	Addr        string        // "IP:port"; empty outside a cluster or when it published none
	Generation  id.Generation // 0 outside a cluster
	Unavailable string        // why nobody can serve it; empty when somebody does
}

// Endpoint is a broker that new clients may dial.
type Endpoint struct{ NodeID, Addr string }

// StreamShards asks how many shards a stream has. A stream the broker does not know is an error that matches ErrNotFound.
func (c *Client) StreamShards(ctx context.Context, namespace, stream string) (StreamShards, error) {
	op := fmt.Sprintf("ask shards of stream %s/%s", namespace, stream)
	if err := checkNames(op, namespace, "stream", stream); err != nil {
		return StreamShards{}, err
	}
	requestID := c.requestID.Add(1)
	answer, err := c.ask(ctx, op, wire.FeatureStreamShards, "stream_shards", &wire.StreamShards{
		TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream, RequestID: requestID,
	})
	if err != nil {
		return StreamShards{}, err
	}
	view, ok := answer.(*wire.StreamShardsView)
	if !ok {
		return StreamShards{}, refusalOf(op, answer)
	}
	if err := echoes(op, requestID, view.RequestID); err != nil {
		return StreamShards{}, err
	}
	if view.Shards > wire.MaxShardOwners { // more than any stream may have, and something is allocated for each
		return StreamShards{}, &ProtocolError{Op: op, What: fmt.Sprintf("said the stream has %d shards", view.Shards)}
	}
	if view.Shards == 0 {
		return StreamShards{}, fmt.Errorf("%s: the stream is %w", op, ErrNotFound)
	}
	return StreamShards{Count: view.Shards, Routing: view.Routing}, nil
}

// CacheShards asks how many shards a cache has. A cache the broker does not know is an error that matches ErrNotFound.
func (c *Client) CacheShards(ctx context.Context, namespace, cache string) (uint32, error) {
	op := fmt.Sprintf("ask shards of cache %s/%s", namespace, cache)
	if err := checkNames(op, namespace, "cache", cache); err != nil {
		return 0, err
	}
	requestID := c.requestID.Add(1)
	answer, err := c.ask(ctx, op, wire.FeatureCacheShards, "cache_shards", &wire.CacheShards{
		TenantID: c.opts.TenantID, Namespace: namespace, Cache: cache, RequestID: requestID,
	})
	if err != nil {
		return 0, err
	}
	view, ok := answer.(*wire.CacheShardsView)
	if !ok {
		return 0, refusalOf(op, answer)
	}
	if err := echoes(op, requestID, view.RequestID); err != nil {
		return 0, err
	}
	if view.Shards > wire.MaxShardOwners { // as of a stream
		return 0, &ProtocolError{Op: op, What: fmt.Sprintf("said the cache has %d shards", view.Shards)}
	}
	if view.Shards == 0 {
		return 0, fmt.Errorf("%s: the cache is %w", op, ErrNotFound)
	}
	return view.Shards, nil
}

// ShardOwners asks who serves each shard of a stream or cache, in shard order. An unknown name is an error that matches
// ErrNotFound.
func (c *Client) ShardOwners(ctx context.Context, kind wire.ResourceKind, namespace, name string) ([]ShardOwner, error) {
	op := fmt.Sprintf("ask owners of %s %s/%s", kind, namespace, name)
	if err := checkNames(op, namespace, kind.String(), name); err != nil {
		return nil, err
	}
	requestID := c.requestID.Add(1)
	answer, err := c.ask(ctx, op, wire.FeatureShardOwners, "shard_owners", &wire.ShardOwners{
		TenantID: c.opts.TenantID, Namespace: namespace, Name: name, Kind: kind, RequestID: requestID,
	})
	if err != nil {
		return nil, err
	}
	view, ok := answer.(*wire.ShardOwnersView)
	if !ok {
		return nil, refusalOf(op, answer)
	}
	if err := echoes(op, requestID, view.RequestID); err != nil {
		return nil, err
	}
	if len(view.Owners) == 0 {
		return nil, fmt.Errorf("%s: it is %w", op, ErrNotFound)
	}
	owners := make([]ShardOwner, len(view.Owners))
	for i, o := range view.Owners {
		owners[i] = ShardOwner{Shard: o.Shard, NodeID: o.NodeID.V, Addr: o.Addr.V, Generation: o.Generation, Unavailable: o.Unavailable.V}
	}
	return owners, nil
}

// Endpoints asks which brokers new clients may dial. It is advice, and may be empty. The client asks by itself when it has
// connected, and tries those addresses after its Addrs.
func (c *Client) Endpoints(ctx context.Context) ([]Endpoint, error) {
	const op = "ask brokers"
	answer, err := c.ask(ctx, op, wire.FeatureTopology, "topology", &wire.Topology{})
	if err != nil {
		return nil, err
	}
	view, ok := answer.(*wire.TopologyView)
	if !ok {
		return nil, refusalOf(op, answer)
	}
	endpoints := make([]Endpoint, len(view.Brokers))
	for i, b := range view.Brokers {
		endpoints[i] = Endpoint{NodeID: b.NodeID, Addr: b.Addr}
	}
	return endpoints, nil
}

// echoes checks that an answer belongs to its request.
func echoes(op string, sent, got uint64) error {
	if sent == got {
		return nil
	}
	return &ProtocolError{Op: op, What: fmt.Sprintf("answered request %d instead of %d", got, sent)}
}
