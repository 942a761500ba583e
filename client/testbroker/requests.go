package testbroker

import (
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

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
	default:
		b.handleCache(s, m)
	}
}

// handleCache serves what is about caches, and questions.
func (b *Broker) handleCache(s *Stream, m wire.Message) {
	switch m := m.(type) {
	case *wire.CachePut:
		b.cachePut(s, m)
	case *wire.CacheGet:
		b.cacheGet(s, m)
	case *wire.CacheDelete:
		b.cacheDelete(s, m)
	case *wire.CachePutIf:
		b.cachePutIf(s, m)
	case *wire.CacheDeleteIf:
		b.cacheDeleteIf(s, m)
	case *wire.CounterAdd:
		b.counterAdd(s, m)
	case *wire.CounterGet:
		b.counterGet(s, m)
	case *wire.CacheWatch:
		b.cacheWatch(s, m)
	case *wire.StreamShards:
		shards := b.options.Streams[m.Namespace+"/"+m.Stream]
		s.Send(&wire.StreamShardsView{Shards: shards, RequestID: m.RequestID, Routing: b.options.Routing})
	case *wire.CacheShards:
		s.Send(&wire.CacheShardsView{Shards: uint32(len(b.caches[m.Namespace+"/"+m.Cache])), RequestID: m.RequestID})
	case *wire.ShardOwners:
		view := &wire.ShardOwnersView{RequestID: m.RequestID}
		if len(b.logs[m.Namespace+"/"+m.Name]) > 0 {
			view.Owners = []wire.ShardOwner{{}}
		}
		s.Send(view)
	case *wire.Topology:
		s.Send(&wire.TopologyView{Brokers: []wire.Broker{{NodeID: "test", Addr: b.Addr()}}})
	default:
		if !b.handleGroup(s, m) {
			s.Refuse(wire.Refuse(wire.CodeInvalidRequest, "the test broker does not serve this"))
		}
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
