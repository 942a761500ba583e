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
	AckedLost   prometheus.Counter
	Disk        *DiskMetrics
	Groups      *GroupMetrics
}

// NewMetrics registers the metrics of the shards, and gauges over what they share; those of durable shards are registered by
// RegisterDisks.
func NewMetrics(reg prometheus.Registerer, tails *storage.Budget, caches *reading.CachePool, readers *storage.Readers) *Metrics {
	m := &Metrics{
		Expired:     prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_cache_expired_total", Help: "Cache entries removed because their time to live ended."}),
		Restarts:    prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_shard_restarts_total", Help: "Shards brought up again after a failure."}),
		Quarantined: prometheus.NewGauge(prometheus.GaugeOpts{Name: "felix_shards_quarantined", Help: "Shards that failed too often and wait for another try."}),
		Lost:        prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_shard_contents_lost_total", Help: "Failures that lost the contents of an ephemeral stream shard or of an in-memory cache shard."}),
		AckedLost:   prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_broker_acked_publishes_dropped_total", Help: "Records that were acknowledged before they were written, and whose write failed then: only with FELIX_ACK_ON_COMMIT off."}),
		Disk:        newDiskMetrics(),
		Groups:      newGroupMetrics(),
	}
	reg.MustRegister(m.Expired, m.Restarts, m.Quarantined, m.Lost, m.AckedLost,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_tail_bytes", Help: "Bytes of records held in memory for subscribers of streams."}, func() float64 { return float64(tails.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_tail_budget_bytes", Help: "Limit of felix_tail_bytes."}, func() float64 { return float64(tails.Limit()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_cache_bytes", Help: "Bytes of in-memory cache entries: keys, values and 64 bytes each."}, func() float64 { return float64(caches.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_cache_budget_bytes", Help: "Limit of felix_cache_bytes."}, func() float64 { return float64(caches.Limit()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "felix_cache_evicted_total", Help: "Cache entries evicted to make room for others."}, func() float64 { return float64(caches.Evicted()) }),
	)
	registerReaders(reg, readers)
	return m
}

// RegisterDisks registers the metrics of durable shards, of their store, and of what it shares with them. Call it before a log is opened.
func (m *Metrics) RegisterDisks(reg prometheus.Registerer, d *Disks) {
	m.Disk.register(reg, d)
	m.Groups.register(reg, d.opts.Exec.Now)
	d.claims.register(reg)
}

// registerReaders shows what slow readers cost and lose. The two names of the drops are the same number: one is the alert of the
// operations pages, the other the one that clients' documents use.
func registerReaders(reg prometheus.Registerer, readers *storage.Readers) {
	dropped := func() float64 { return float64(readers.Dropped()) }
	emulated := func() float64 {
		if readers.Policy() != storage.DropOld {
			return 0
		}
		return dropped()
	}
	reg.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "felix_subscribe_dropped_total", Help: "Records that slow subscribers lost, counted once for each of them."}, dropped),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "felix_sub_queue_dropped_total", Help: "The same as felix_subscribe_dropped_total."}, dropped),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "felix_sub_queue_drop_old_emulated_total", Help: "Those of them that were lost under the policy drop_old, which loses the newest as drop_new does."}, emulated),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_sub_lagging", Help: "Subscribers that have batches queued or in their hand."}, func() float64 { return float64(readers.Lagging()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_sub_reader_bytes", Help: "Bytes kept for subscribers after the stream's ring has let go of them."}, func() float64 { return float64(readers.Budget().Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_sub_reader_budget_bytes", Help: "Limit of felix_sub_reader_bytes."}, func() float64 { return float64(readers.Budget().Limit()) }),
	)
}
