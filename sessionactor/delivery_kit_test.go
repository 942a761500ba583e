package sessionactor

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/wire"
)

type labelPair = dto.LabelPair

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// newEntry is a route to a shard that nobody serves.
func newEntry(a route.Assignment, durable bool) *shardactor.Entry {
	return route.NewEntry(a.Name, a.Incarnation, a.Routing, durable, []shardactor.Target{{Generation: a.Generation}})
}

// newFeed is the delivery of a subscription without a session around it.
func newFeed(o *Options, finish context.Context, n uint64, out SendStream, r subscribeRequest) *delivery {
	if o.Metrics == nil {
		o.Metrics = NewMetrics(newRegistry())
	}
	d := newDelivery(&session{finish: finish, opts: o}, n, r)
	d.gate, d.stream = Goroutines().NewGate(), out
	d.shape = shapeFor(r.grant, n, r.entry, &o.Delivery)
	return d
}

// requested is a subscribe of one shard of a stream.
func requested(capacity int, durable bool, g wire.Grant) subscribeRequest {
	return subscribeRequest{asked: asked{capacity: capacity, entry: newEntry(stream("orders", 1), durable), grant: g}}
}
