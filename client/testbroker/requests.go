package testbroker

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// value is a cache entry.
type value struct {
	bytes   []byte
	expires time.Time // zero: never
}

func (v value) alive() bool { return v.expires.IsZero() || time.Now().Before(v.expires) }

// handle serves one request.
func (b *Broker) handle(s *Stream, f Frame) {
	if p, ok := f.Publish(); ok {
		if p.Flags.Has(wire.FlagPublishIdempotent) {
			b.publishNumbered(s, &p)
		} else {
			b.publish(s, &p, false)
		}
		return
	}
	switch m := f.Message().(type) {
	case *wire.PublishMessage:
		p := m.Publish()
		b.publish(s, &p, true)
	case *wire.PublishBatchMessage:
		p := m.Publish()
		b.publish(s, &p, true)
	case *wire.ProducerInit:
		producerInit(s, m)
	case *wire.PublishIdempotent:
		p := m.Publish()
		b.publishNumbered(s, &p)
	case *wire.PublishIf:
		b.publishIf(s, m)
	case *wire.Commit:
		b.commit(s, m)
	case *wire.StateGet:
		b.stateGet(s, m)
	case *wire.StreamRead:
		b.read(s, m)
	case *wire.OffsetForTime:
		b.offsetForTime(s, m)
	case *wire.Subscribe:
		b.subscribe(s, m)
	case *wire.CachePut, *wire.CacheGet, *wire.CacheDelete:
		b.cache(s, m)
	case *wire.StreamShards:
		shards := b.options.Streams[m.Namespace+"/"+m.Stream]
		s.Send(&wire.StreamShardsView{Shards: shards, RequestID: m.RequestID, Routing: b.options.Routing})
	case *wire.CacheShards:
		s.Send(&wire.CacheShardsView{Shards: b.options.Caches[m.Namespace+"/"+m.Cache], RequestID: m.RequestID})
	case *wire.ShardOwners:
		view := &wire.ShardOwnersView{RequestID: m.RequestID}
		if len(b.logs[m.Namespace+"/"+m.Name]) > 0 {
			view.Owners = []wire.ShardOwner{{}}
		}
		s.Send(view)
	case *wire.Topology:
		s.Send(&wire.TopologyView{Brokers: []wire.Broker{{NodeID: "test", Addr: b.Addr()}}})
	default:
		s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "the test broker does not serve this"))
	}
}

func (b *Broker) publish(s *Stream, p *wire.Publish, json bool) {
	answer := func(a wire.PublishAck) {
		a.RequestID = p.RequestID
		switch {
		case p.Ack == wire.AckNone:
		case json:
			s.Raw(wire.AppendPublishAnswer(nil, &a, s.Grant))
		default:
			s.Ack(a)
		}
	}
	logs := b.logs[string(p.Namespace)+"/"+string(p.Stream)]
	if len(logs) == 0 {
		refusal := wire.Refuse(wire.CodeNotFound, "stream "+string(p.Stream)+" is not known here")
		answer(wire.PublishAck{Refusal: &refusal})
		return
	}
	shard := b.options.Routing.Shard(p.Key, p.Keyed, uint32(len(logs)))
	first := logs[shard].append(p.Region)
	answer(wire.PublishAck{HasOffset: b.options.Durable, Offset: offsetIf(b.options.Durable, first)})
}

func offsetIf(durable bool, n id.Offset) id.Offset {
	if durable {
		return n
	}
	return 0
}

func (b *Broker) cache(s *Stream, m wire.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := m.(type) {
	case *wire.CachePut:
		if entries, ok := b.entries(s, m.Namespace, m.Cache); ok {
			v := value{bytes: m.Value}
			if m.TTLMillis.Set {
				v.expires = time.Now().Add(time.Duration(m.TTLMillis.V) * time.Millisecond)
			}
			entries[m.Key] = v
			s.Send(&wire.CacheOK{RequestID: m.RequestID.V})
		}
	case *wire.CacheGet:
		if entries, ok := b.entries(s, m.Namespace, m.Cache); ok {
			s.Send(cacheValue(m.Namespace, m.Cache, m.Key, m.RequestID, entries))
		}
	case *wire.CacheDelete:
		if entries, ok := b.entries(s, m.Namespace, m.Cache); ok {
			s.Send(cacheValue(m.Namespace, m.Cache, m.Key, m.RequestID, entries))
			delete(entries, m.Key)
		}
	}
}

// entries finds a cache or refuses the request.
func (b *Broker) entries(s *Stream, namespace, cache string) (map[string]value, bool) {
	entries, ok := b.caches[namespace+"/"+cache]
	if !ok {
		s.Refuse(wire.Refuse(wire.CodeNotFound, "cache "+cache+" is not known here"))
	}
	return entries, ok
}

func cacheValue(namespace, cache, key string, requestID wire.Opt[uint64], entries map[string]value) *wire.CacheValue {
	answer := &wire.CacheValue{Namespace: namespace, Cache: cache, Key: key, RequestID: requestID}
	if v, ok := entries[key]; ok && v.alive() {
		answer.Value = wire.Some(v.bytes)
	}
	return answer
}
