package shardactor

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
)

// DiskMetrics are the counters of the durable shards of a node; none has a label per shard.
type DiskMetrics struct {
	OpenFailures    prometheus.Counter
	Poisoned        prometheus.Counter
	SnapshotsFailed prometheus.Counter
	Skipped         prometheus.Counter
	RemovedSegments prometheus.Counter
	RemovedBytes    prometheus.Counter
	JanitorFailures prometheus.Counter

	Compactions        prometheus.Counter
	CompactionFailures prometheus.Counter
	CompactionBytes    prometheus.Counter

	appends   prometheus.Histogram
	syncs     prometheus.Histogram
	perSync   prometheus.Histogram
	recovery  prometheus.Histogram
	hanging   atomic.Int64
	unchecked atomic.Int64  // bytes that opens under way have still to read
	undecoded atomic.Uint64 // snapshots of producers and keys that could be read and not used
}

func newDiskMetrics() *DiskMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	latency := prometheus.ExponentialBuckets(25e-6, 2, 18) // 25 us to 3 s
	return &DiskMetrics{
		OpenFailures:    counter("felix_broker_shard_open_failures_total", "Logs of durable shards that could not be opened."),
		Poisoned:        counter("felix_storage_logs_poisoned_total", "Logs that ended because a sync failed; they come back with a new process."),
		SnapshotsFailed: counter("felix_storage_snapshot_failures_total", "Snapshots of producers that could not be saved: the next open takes longer."),
		Skipped:         counter("felix_storage_retention_runs_skipped_total", "Runs of the janitor that were skipped because the log's last one was not over."),
		RemovedSegments: counter("felix_storage_retention_segments_total", "Segments removed by retention."),
		RemovedBytes:    counter("felix_storage_retention_bytes_total", "Bytes of segments removed by retention."),
		JanitorFailures: counter("felix_storage_retention_failures_total", "Runs of retention, compression, or the removal of deleted logs that failed; they are tried again."),

		Compactions:        counter("felix_cache_compactions_total", "Compactions of the logs of caches and counters that came to their end."),
		CompactionFailures: counter("felix_cache_compaction_failures_total", "Compactions that were given up: another one begins when the log has grown on."),
		CompactionBytes:    counter("felix_cache_compaction_bytes_total", "Bytes of live records that compactions appended again."),

		appends:  histogram("felix_storage_append_duration_seconds", "Time from giving an append to a durable log until it is acknowledged there.", latency),
		syncs:    histogram("felix_storage_sync_duration_seconds", "Time of one sync of a durable log's data.", latency),
		perSync:  histogram("felix_storage_sync_batch_appends", "Records made durable by one sync.", prometheus.ExponentialBuckets(1, 4, 10)),
		recovery: histogram("felix_storage_recovery_duration_seconds", "Time to open and check one durable log.", prometheus.ExponentialBuckets(1e-3, 4, 10)),
	}
}

// register shows them, and what is counted by the store and the pools.
func (m *DiskMetrics) register(reg prometheus.Registerer, d *Disks) {
	c := d.opts.Store.Counters()
	total := func(name, help string, v *atomic.Uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(v.Load()) })
	}
	gauge := func(name, help string, v func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, v)
	}
	reg.MustRegister(m.OpenFailures, m.Poisoned, m.SnapshotsFailed, m.Skipped, m.RemovedSegments, m.RemovedBytes, m.JanitorFailures,
		m.Compactions, m.CompactionFailures, m.CompactionBytes,
		m.appends, m.syncs, m.perSync, m.recovery,
		total("felix_storage_append_total", "Appends written to durable logs.", &c.Appends),
		total("felix_storage_append_bytes_total", "Bytes written to durable logs.", &c.AppendedBytes),
		total("felix_storage_sync_total", "Syncs of durable logs that succeeded.", &c.Syncs),
		total("felix_storage_sync_failures_total", "Syncs that failed: each ended a log until the next start.", &c.SyncFailures),
		total("felix_storage_write_failures_total", "Appends refused because a write failed.", &c.WriteFailures),
		total("felix_storage_full_total", "Writes refused because the disk or a quota is full.", &c.Full),
		total("felix_storage_segment_roll_total", "Segments begun after a full one.", &c.Rolls),
		total("felix_storage_recovery_truncated_bytes", "Bytes of unfinished appends cut off while opening logs.", &c.TruncatedBytes),
		total("felix_storage_mark_failures_total", "Times that durable.mark could not be written; recovery is only stricter for it.", &c.MarkFailures),
		total("felix_storage_index_failures_total", "Indexes that could not be written; they are made anew when needed.", &c.IndexFailures),
		total("felix_storage_reads_corrupt_total", "Reads that found damage.", &c.ReadsCorrupt),
		total("felix_storage_compressed_in_bytes_total", "Bytes of sealed segments that were compressed.", &c.CompressedIn),
		total("felix_storage_compressed_out_bytes_total", "What was left of felix_storage_compressed_in_bytes_total.", &c.CompressedOut),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "felix_storage_producer_state_rebuilt_total", Help: "Snapshots of producers that could not be used: what they say was read from the log."},
			func() float64 { return float64(c.SnapshotsIgnored.Load() + m.undecoded.Load()) }),
		gauge("felix_storage_unsynced_bytes", "Bytes written and not known to be on the device.", func() float64 { return float64(c.UnsyncedBytes.Load()) }),
		gauge("felix_storage_open_logs", "Durable logs that are open.", func() float64 { return float64(c.OpenLogs.Load()) }),
		gauge("felix_storage_awake_logs", "Of felix_storage_open_logs, those with files open for writing.", func() float64 { return float64(c.AwakeLogs.Load()) }),
		gauge("felix_storage_stalled_logs", "Durable logs with a write or sync that takes suspiciously long.", func() float64 { return float64(m.hanging.Load()) }),
		gauge("felix_storage_recovery_unchecked_bytes", "Bytes that logs which are being opened have still to read.", func() float64 { return float64(m.unchecked.Load()) }),
		gauge("felix_storage_free_bytes", "Bytes that may still be written to the logs' file system; -1 if it does not say.", d.free),
	)
	registerState(reg, d.state)
	d.kept.registerKept(reg)
	reg.MustRegister(
		gauge("felix_cache_index_bytes", "Memory of the keys and short values of log-backed caches, and of counters.", func() float64 { return float64(d.index.Used()) }),
		gauge("felix_cache_index_budget_bytes", "Limit of felix_cache_index_bytes: new keys beyond it are refused.", func() float64 { return float64(d.index.Limit()) }),
	)
	registerSlots(reg, d.opts.Slots)
	if p, ok := d.opts.Exec.(*diskpool.Pool); ok {
		registerPool(reg, p)
	}
	c.Synced = func(records uint64, took time.Duration) {
		m.syncs.Observe(took.Seconds())
		m.perSync.Observe(float64(records))
	}
}

func (d *Disks) free() float64 {
	n, err := d.opts.Store.Free()
	if err != nil {
		return -1
	}
	return float64(n)
}

func registerState(reg prometheus.Registerer, b *reading.StateBudget) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_state_bytes", Help: "Bytes of entity state left by commits: entities, keys, values and 128 bytes each."}, func() float64 { return float64(b.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_state_budget_bytes", Help: "Limit of felix_state_bytes: commits that need more are refused."}, func() float64 { return float64(b.Limit()) }),
	)
}

func registerSlots(reg prometheus.Registerer, s *diskpool.ReadSlots) {
	if s == nil {
		return
	}
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_storage_read_slots", Help: "Reads of durable logs that are under way."}, func() float64 { return float64(s.Used()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_storage_read_slots_budget", Help: "Limit of felix_storage_read_slots."}, func() float64 { return float64(s.Limit()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_storage_reads_waiting", Help: "Reads of durable logs that wait for a slot."}, func() float64 { return float64(s.Waiting()) }),
	)
}

func registerPool(reg prometheus.Registerer, p *diskpool.Pool) {
	for _, k := range diskpool.Kinds() {
		labels := prometheus.Labels{"kind": k.String()}
		reg.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_storage_jobs_running", Help: "Jobs of the disk pool that are running.", ConstLabels: labels}, func() float64 { s := p.Stats(); return float64(s.Of(k).Running) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_storage_jobs_queued", Help: "Jobs of the disk pool that wait.", ConstLabels: labels}, func() float64 { s := p.Stats(); return float64(s.Of(k).Queued) }),
		)
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_storage_oldest_job_seconds", Help: "Age of the oldest job of the disk pool that did not end."}, func() float64 { return p.Stats().Oldest.Seconds() }))
}

// stalled counts a log whose disk does not answer, or that answers again.
func (m *DiskMetrics) stalled(is bool) {
	if is {
		m.hanging.Add(1)
	} else {
		m.hanging.Add(-1)
	}
}

func (m *DiskMetrics) recovered(r disklog.RecoveryInfo) { m.recovery.Observe(r.Duration.Seconds()) }
