package sessionactor

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
)

type labelPair = dto.LabelPair

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// newEntry is a route to a shard that nobody serves.
func newEntry(a route.Assignment, durable bool) *shardactor.Entry {
	return route.NewEntry(a.Name, a.Incarnation, a.Routing, durable, []shardactor.Target{{Generation: a.Generation}})
}
