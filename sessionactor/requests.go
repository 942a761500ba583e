package sessionactor

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// publish routes a publish to its shard. The batch's bytes are those that were read; nothing is copied.
func (l *lane) publish(ctx context.Context, r sessioncore.Request) {
	p, m := r.Publish, l.session.opts.Metrics
	if p.Flags == 0 {
		m.JSONPublishes.Inc()
	}
	entry := l.lookup(p.Tenant, p.Namespace, p.Stream)
	if entry == nil {
		l.refuse(r.Token, notFound("stream", string(p.Tenant), string(p.Namespace), string(p.Stream)))
		return
	}
	if f := refuseNumbered(r, entry); f != nil {
		l.refuse(r.Token, *f)
		return
	}
	_, target := entry.Resolve(p.Key, p.Keyed)
	if target.State != route.Local {
		l.refuseElsewhere(r, target)
		return
	}
	if p.Count == 0 { // a batch of nothing is done before it begins
		l.settle(r.Token, sessioncore.Answer{})
		return
	}
	msg := &shardactor.Publish{Batch: batch.Batch{Count: p.Count, Kind: batch.Records, PayloadBytes: p.PayloadBytes}}
	records, bytes := p.Count, p.PayloadBytes
	l.session.opts.Delivery.frame(&msg.Batch, r.Framed) // p's names and key are gone after this
	if entry.Durable {
		l.toLog(msg, r)
	}
	msg.To(l, shardcore.Token(r.Token))
	msg.Sent = l.sampleSent(r.Token)
	if l.submit(ctx, r.Token, target.Shard, msg, msg.Batch.Size()) {
		if entry.Durable {
			l.awaitOutcome(r.Token)
		}
		m.Published.Add(float64(records))
		m.PublishedBytes.Add(float64(bytes))
	}
}

// lookup finds a stream; that of the last publish without looking.
func (l *lane) lookup(tenant, namespace, stream []byte) *shardactor.Entry {
	if e := l.entry; e != nil && !e.Gone() && e.Name.Name == string(stream) && e.Name.Namespace == string(namespace) && e.Name.Tenant == string(tenant) {
		return e
	}
	l.entry, l.scratch = l.session.opts.Table.Lookup(l.scratch, route.Stream, tenant, namespace, stream)
	return l.entry
}

// ask performs a request other than a publish.
func (l *lane) ask(ctx context.Context, r sessioncore.Request) {
	switch m := r.Message.(type) {
	case *wire.Subscribe:
		l.subscribe(r.Token, m)
	case *wire.ProducerInit:
		l.producerInit(r.Token, m)
	case *wire.Commit:
		l.commit(ctx, r.Token, m)
	case *wire.StateGet:
		l.stateGet(r.Token, m)
	case *wire.StreamRead:
		l.streamRead(r.Token, m)
	case *wire.OffsetForTime:
		l.offsetForTime(r.Token, m)
	case *wire.CacheGet:
		l.cacheGet(r.Token, m)
	case *wire.CachePut:
		l.cachePut(ctx, r.Token, m)
	case *wire.CacheDelete:
		l.cacheDelete(ctx, r.Token, m)
	case *wire.CachePutIf:
		l.cachePutIf(ctx, r.Token, m)
	case *wire.CacheDeleteIf:
		l.cacheDeleteIf(ctx, r.Token, m)
	case *wire.CacheWatch:
		l.cacheWatch(r.Token, m)
	case *wire.CounterAdd:
		l.counterAdd(ctx, r.Token, m)
	case *wire.CounterGet:
		l.counterGet(r.Token, m)
	case *wire.Topology:
		l.settle(r.Token, sessioncore.Answer{Message: &wire.TopologyView{Brokers: l.session.opts.Brokers}})
	case *wire.StreamShards:
		view := &wire.StreamShardsView{RequestID: m.RequestID}
		if e := l.find(route.Stream, m.TenantID, m.Namespace, m.Stream); e != nil {
			view.Shards, view.Routing = uint32(len(e.Shards())), e.Routing
		}
		l.settle(r.Token, sessioncore.Answer{Message: view})
	case *wire.CacheShards:
		view := &wire.CacheShardsView{RequestID: m.RequestID}
		if e := l.find(route.Cache, m.TenantID, m.Namespace, m.Cache); e != nil {
			view.Shards = uint32(len(e.Shards()))
		}
		l.settle(r.Token, sessioncore.Answer{Message: view})
	case *wire.ShardOwners:
		l.settle(r.Token, sessioncore.Answer{Message: l.shardOwners(m)})
	default:
		if l.group(ctx, r.Token, m) {
			return
		}
		panic(fmt.Sprintf("sessionactor: nobody performs %T", m))
	}
}

func (l *lane) find(kind route.Kind, tenant, namespace, name string) *shardactor.Entry {
	return l.session.opts.Table.Get(route.Name{Kind: kind, Tenant: tenant, Namespace: namespace, Name: name})
}

// shardOwners lists who serves each shard. A broker that is no member of a cluster names nobody: ask it for everything.
func (l *lane) shardOwners(m *wire.ShardOwners) *wire.ShardOwnersView {
	view := &wire.ShardOwnersView{RequestID: m.RequestID}
	kind := route.Stream
	if m.Kind == wire.ResourceCache {
		kind = route.Cache
	}
	e := l.find(kind, m.TenantID, m.Namespace, m.Name)
	if e == nil {
		return view
	}
	for i, t := range e.Shards() {
		o := wire.ShardOwner{Shard: uint32(i)}
		switch t.State {
		case route.Refused:
			o.Unavailable = wire.Some(t.Reason)
		case route.Remote:
			o.NodeID, o.Addr, o.Generation = wire.Some(t.Node), wire.Some(t.Addr), t.Generation
		}
		view.Owners = append(view.Owners, o)
	}
	return view
}

func notFound(kind, tenant, namespace, name string) wire.Refusal {
	return wire.Refuse(wire.CodeNotFound, fmt.Sprintf("%s not found: %s/%s/%s; if it was just created, repeat the request", kind, tenant, namespace, name))
}

func unavailable(reason, message string) wire.Refusal {
	return wire.Refuse(wire.CodeShardUnavailable, message).WithReason(reason, 0)
}

// elsewhere refuses a request for a shard that is not served here.
func elsewhere(t shardactor.Target) wire.Refusal {
	if t.State == route.Remote {
		return wire.Refuse(wire.CodeNotLeader, fmt.Sprintf("the shard is served by broker %s at %s", t.Node, t.Addr))
	}
	return unavailable(t.Reason, "nobody can serve the shard right now; repeat the request")
}
