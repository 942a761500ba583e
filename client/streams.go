package client

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"github.com/felixd/felixd/wire"
)

// streamsMax bounds for how many streams something is remembered. An entry is a few hundred bytes, and as much again for
// each shard in use. Past the bound the entries are forgotten that no publish under way needs.
const streamsMax = 4096

type streamName struct{ namespace, stream string }

// streams remembers of each stream how it maps keys to shards and where its shards are served.
type streams struct {
	seed maphash.Seed

	mu     sync.Mutex
	byName map[streamName]*streamEntry
}

// streamEntry is what is known of a stream. The token in gate is the right to ask the broker.
type streamEntry struct {
	hash uint64 // spreads streams over lanes
	gate chan struct{}

	mu     sync.Mutex
	known  bool // the broker told the shards
	asked  bool // the broker does not tell
	shards StreamShards
	routes map[uint32]*route
}

func (s *streams) entry(namespace, stream string) *streamEntry {
	name := streamName{namespace, stream}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byName[name]; e != nil {
		return e
	}
	if len(s.byName) >= streamsMax {
		s.dropIdle()
	}
	if s.byName == nil {
		s.byName = make(map[streamName]*streamEntry)
	}
	e := &streamEntry{hash: maphash.Comparable(s.seed, name), gate: make(chan struct{}, 1)}
	e.gate <- struct{}{}
	s.byName[name] = e
	return e
}

// dropIdle forgets the streams of which nothing is under way. What is left is bounded by what may be under way.
func (s *streams) dropIdle() {
	for name, e := range s.byName {
		if e.idle() {
			delete(s.byName, name)
		}
	}
}

// route is where a shard's publishes go. Of a shard no stream can have nothing is remembered.
func (e *streamEntry) route(shard uint32) *route {
	if shard >= wire.MaxShardOwners {
		return &route{seat: e.hash + uint64(shard)}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.routes[shard]
	if r == nil {
		if e.routes == nil {
			e.routes = make(map[uint32]*route)
		}
		r = &route{seat: e.hash + uint64(shard)}
		e.routes[shard] = r
	}
	return r
}

func (e *streamEntry) idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.routes {
		if r.busy() {
			return false
		}
	}
	return true
}

// width returns what is known of the shards; settled is false before the broker was asked, and known is false when it
// does not tell.
func (e *streamEntry) width() (shards StreamShards, known, settled bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shards, e.known, e.known || e.asked
}

func (e *streamEntry) setWidth(shards StreamShards, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shards, e.known, e.asked = shards, known, true
}

// forgetWidth makes the next keyed publish ask again: the stream turned out to be gone.
func (e *streamEntry) forgetWidth() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shards, e.known, e.asked = StreamShards{}, false, false
}

// oneShard stands for a stream whose shards are not known: the broker routes by the key in any case.
var oneShard = StreamShards{Count: 1, Routing: wire.RoutingModulo}

// width returns a stream's shards, asking once. Callers that meet here share the question. known is false when the broker
// does not tell, or does not know the stream; then it is one shard as far as the client can see.
func (c *Client) width(ctx context.Context, e *streamEntry, namespace, stream string) (shards StreamShards, known bool, err error) {
	if shards, known, settled := e.width(); settled {
		return shards, known, nil
	}
	select {
	case <-e.gate:
	case <-ctx.Done():
		return StreamShards{}, false, c.ended(ctx, "publish to "+namespace+"/"+stream)
	}
	defer func() { e.gate <- struct{}{} }()
	if shards, known, settled := e.width(); settled {
		return shards, known, nil
	}
	shards, err = c.StreamShards(ctx, namespace, stream)
	switch {
	case errors.Is(err, ErrUnsupported):
		e.setWidth(oneShard, false)
		return oneShard, false, nil
	case errors.Is(err, ErrNotFound): // the publish will be told so; ask again next time
		return oneShard, false, nil
	case err != nil:
		return StreamShards{}, false, err
	}
	e.setWidth(shards, true)
	return shards, true, nil
}
