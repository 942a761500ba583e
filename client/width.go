package client

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"github.com/felixd/felixd/wire"
)

// widthsMax bounds for how many streams the number of shards is remembered; past it the memory begins anew. An entry is
// a few hundred bytes.
const widthsMax = 4096

// widthCache remembers how streams map keys to shards, so that all publishes of a shard travel on one lane.
type widthCache struct {
	mu      sync.Mutex
	streams map[streamName]*width
}

type streamName struct{ namespace, stream string }

// width is what is known of a stream. The token in gate is the right to ask.
type width struct {
	gate   chan struct{}
	known  bool
	shards StreamShards
}

func (w *widthCache) entry(namespace, stream string) *width {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := streamName{namespace, stream}
	if e := w.streams[name]; e != nil {
		return e
	}
	if w.streams == nil || len(w.streams) >= widthsMax {
		w.streams = make(map[streamName]*width)
	}
	e := &width{gate: make(chan struct{}, 1)}
	e.gate <- struct{}{}
	w.streams[name] = e
	return e
}

// forget drops what is known of a stream, when it turned out to be gone.
func (w *widthCache) forget(namespace, stream string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.streams, streamName{namespace, stream})
}

// publishPlace chooses the lane of a publish: one per shard, so that order holds within a shard. A stream the broker does
// not know, or whose shards it does not tell, counts as one shard; the broker routes by the key in any case.
func (c *Client) publishPlace(ctx context.Context, p *publication) (int, error) {
	places := len(c.publishes.places)
	if places == 1 {
		return 0, nil
	}
	shard := uint32(0)
	if p.keyed {
		shards, err := c.width(ctx, p.namespace, p.stream)
		if err != nil {
			return 0, err
		}
		shard = shards.Routing.Shard(p.key, true, shards.Count)
	}
	var h maphash.Hash
	h.SetSeed(c.hashSeed)
	maphash.WriteComparable(&h, streamName{p.namespace, p.stream})
	return int((h.Sum64() + uint64(shard)) % uint64(places)), nil // neighbouring shards get lanes of their own
}

// width returns what is known of a stream's shards, asking once. Callers that meet here share the question.
func (c *Client) width(ctx context.Context, namespace, stream string) (StreamShards, error) {
	e := c.widths.entry(namespace, stream)
	select {
	case <-e.gate:
	case <-ctx.Done():
		return StreamShards{}, c.ended(ctx, "publish to "+namespace+"/"+stream)
	}
	defer func() { e.gate <- struct{}{} }()
	if e.known {
		return e.shards, nil
	}
	shards, err := c.StreamShards(ctx, namespace, stream)
	switch {
	case errors.Is(err, ErrUnsupported):
		e.known, e.shards = true, StreamShards{Count: 1, Routing: wire.RoutingModulo}
	case errors.Is(err, ErrNotFound): // the publish will be told so; ask again next time
		return StreamShards{Count: 1}, nil
	case err != nil:
		return StreamShards{}, err
	default:
		e.known, e.shards = true, shards
	}
	return e.shards, nil
}
