package testbroker

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// cacheShard is one shard of a cache: its entries, the changes that made them, and its counters.
type cacheShard struct {
	mu         sync.Mutex
	base, tail id.Offset
	changes    []wire.CacheEvent // from base on
	entries    map[string]entry
	counters   map[string]int64
	more       chan struct{} // closed and replaced with each change
}

// entry is a value of a cache.
type entry struct {
	value   []byte
	version id.Offset // of the put
	expires time.Time // zero: never
}

func (e entry) alive() bool { return e.expires.IsZero() || time.Now().Before(e.expires) }

func (e entry) event(key string, at id.Offset) wire.CacheEvent {
	event := wire.CacheEvent{Key: key, Value: wire.Some(e.value), Offset: at}
	if !e.expires.IsZero() {
		event.ExpiresAtMillis = uint64(e.expires.UnixMilli())
	}
	return event
}

func newCacheShards(n uint32) []*cacheShard {
	shards := make([]*cacheShard, n)
	for i := range shards {
		shards[i] = &cacheShard{entries: make(map[string]entry), counters: make(map[string]int64), more: make(chan struct{})}
	}
	return shards
}

// cacheShard finds the shard of a key, or refuses the request.
func (b *Broker) cacheShard(s *Stream, namespace, cache, key string) *cacheShard {
	shards := b.caches[namespace+"/"+cache]
	if len(shards) == 0 {
		s.Refuse(wire.Refuse(wire.CodeNotFound, "cache "+cache+" is not known here"))
		return nil
	}
	return shards[wire.RoutingModulo.Shard([]byte(key), true, uint32(len(shards)))]
}

// get is the live value of a key. The lock is held.
func (c *cacheShard) get(key string) (entry, bool) {
	e, ok := c.entries[key]
	return e, ok && e.alive()
}

// put writes a value and returns its version. The lock is held.
func (c *cacheShard) put(key string, value []byte, ttl wire.Opt[uint64]) id.Offset {
	e := entry{value: value, version: c.tail}
	if ttl.Set {
		e.expires = time.Now().Add(time.Duration(min(ttl.V, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond)
	}
	c.entries[key] = e
	c.add(e.event(key, c.tail))
	return e.version
}

// remove deletes what there is. The lock is held.
func (c *cacheShard) remove(key string) {
	if _, ok := c.entries[key]; ok {
		delete(c.entries, key)
		c.add(wire.CacheEvent{Key: key, Offset: c.tail})
	}
}

func (c *cacheShard) add(event wire.CacheEvent) {
	c.changes = append(c.changes, event)
	c.tail = c.tail.Add(1)
	close(c.more)
	c.more = make(chan struct{})
}

// current are the live values of the keys that match, in the order of their versions, and where changes go on.
func (c *cacheShard) current(matches func(key string) bool) ([]wire.CacheEvent, id.Offset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var events []wire.CacheEvent
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		if e, ok := c.get(key); ok && matches(key) {
			events = append(events, e.event(key, e.version))
		}
	}
	slices.SortFunc(events, func(x, y wire.CacheEvent) int { return cmp.Compare(x.Offset, y.Offset) })
	return events, c.tail
}

// since are the changes from an offset on that match, where to go on, and a channel that tells of more. gone says that
// changes from there on were compacted.
func (c *cacheShard) since(at id.Offset, matches func(key string) bool) (events []wire.CacheEvent, next id.Offset, more <-chan struct{}, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at < c.base {
		return nil, at, c.more, true
	}
	for _, e := range c.changes[at.Since(c.base):] {
		if matches(e.Key) {
			events = append(events, e)
		}
	}
	return events, c.tail, c.more, false
}

func (b *Broker) cachePut(s *Stream, m *wire.CachePut) {
	if c := b.cacheShard(s, m.Namespace, m.Cache, m.Key); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.put(m.Key, m.Value, m.TTLMillis)
		s.Send(&wire.CacheOK{RequestID: m.RequestID.V})
	}
}

func (b *Broker) cacheGet(s *Stream, m *wire.CacheGet) {
	c := b.cacheShard(s, m.Namespace, m.Cache, m.Key)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &wire.CacheValue{Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, RequestID: m.RequestID}
	if e, ok := c.get(m.Key); ok {
		answer.Value = wire.Some(e.value)
		if s.Grant.Features.Has(wire.FeatureCacheConditional) {
			answer.Version = wire.Some(uint64(e.version))
		}
	}
	s.Send(answer)
}

func (b *Broker) cacheDelete(s *Stream, m *wire.CacheDelete) {
	c := b.cacheShard(s, m.Namespace, m.Cache, m.Key)
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &wire.CacheValue{Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, RequestID: m.RequestID}
	if e, ok := c.get(m.Key); ok {
		answer.Value = wire.Some(e.value)
	}
	c.remove(m.Key)
	s.Send(answer)
}

// each runs f on a shard of a cache, "namespace/cache".
func (b *Broker) each(cache string, shard uint32, f func(c *cacheShard)) {
	c := b.caches[cache][shard]
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// CachePut writes a value without a lifetime into a shard of a cache, "namespace/cache", as a client would, and returns its
// version.
func (b *Broker) CachePut(cache string, shard uint32, key, value string) (version id.Offset) {
	b.each(cache, shard, func(c *cacheShard) { version = c.put(key, []byte(value), wire.Opt[uint64]{}) })
	return version
}

// CacheDelete removes what a shard of a cache has of a key.
func (b *Broker) CacheDelete(cache string, shard uint32, key string) {
	b.each(cache, shard, func(c *cacheShard) { c.remove(key) })
}

// CacheCompact drops the history of a shard of a cache: who asks for it gets current values instead.
func (b *Broker) CacheCompact(cache string, shard uint32) {
	b.each(cache, shard, func(c *cacheShard) { c.base, c.changes = c.tail, nil })
}

// filterOf is what a watch asks for; ok is false when it is not one of a key and a prefix.
func filterOf(m *wire.CacheWatch) (matches func(key string) bool, ok bool) {
	if m.Key.Set {
		return func(key string) bool { return key == m.Key.V }, !m.Prefix.Set
	}
	return func(key string) bool { return strings.HasPrefix(key, m.Prefix.V) }, m.Prefix.Set
}
