package shardactor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage"
)

// Metrics are the counters of the shards of a node; none has a label per shard.
type Metrics struct {
	Expired     prometheus.Counter
	Restarts    prometheus.Counter
	Quarantined prometheus.Gauge
	Lost        prometheus.Counter
}

// NewMetrics registers the metrics of the shards, and gauges over the memory they share.
func NewMetrics(reg prometheus.Registerer, tails *storage.Budget, caches *reading.CachePool) *Metrics {
	m := &Metrics{
		Expired:     prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_cache_expired_total", Help: "Cache entries removed because their time to live ended."}),
		Restarts:    prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_shard_restarts_total", Help: "Shards brought up again after a failure."}),
		Quarantined: prometheus.NewGauge(prometheus.GaugeOpts{Name: "felix_shards_quarantined", Help: "Shards that failed too often and wait for another try."}),
		Lost:        prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_shard_contents_lost_total", Help: "Failures that lost the contents of an ephemeral stream shard or of an in-memory cache shard."}),
	}
	reg.MustRegister(m.Expired, m.Restarts, m.Quarantined, m.Lost,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_tail_bytes", Help: "Bytes of records held in memory for subscribers of ephemeral streams."}, func() float64 { return float64(tails.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_tail_budget_bytes", Help: "Limit of felix_tail_bytes."}, func() float64 { return float64(tails.Limit()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_cache_bytes", Help: "Bytes of in-memory cache entries: keys, values and 64 bytes each."}, func() float64 { return float64(caches.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_cache_budget_bytes", Help: "Limit of felix_cache_bytes."}, func() float64 { return float64(caches.Limit()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "felix_cache_evicted_total", Help: "Cache entries evicted to make room for others."}, func() float64 { return float64(caches.Evicted()) }),
	)
	return m
}
