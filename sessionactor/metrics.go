package sessionactor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/wire"
)

// Metrics are the counters of all sessions of a node.
type Metrics struct {
	Connections    prometheus.Counter
	Closed         *prometheus.CounterVec // by reason: connections that the broker ended for a fault or for want of room
	Streams        *prometheus.CounterVec // by role
	StreamsNow     prometheus.Gauge
	StreamsRefused *prometheus.CounterVec // by reason: streams that the broker ended for a fault
	Requests       *prometheus.CounterVec // by kind
	Refused        *prometheus.CounterVec // by code
	ReadFailures   prometheus.Counter
	DroppedFrames  prometheus.Counter
	JSONPublishes  prometheus.Counter
	QueueFull      *TenantCounter // by tenant and action: refused, dropped
	QueueWaits     prometheus.Counter
	ShardFailures  prometheus.Counter
	AuthTimeouts   prometheus.Counter
	AuthFailures   prometheus.Counter

	Published      prometheus.Counter // records
	PublishedBytes prometheus.Counter
	Delivered      prometheus.Counter // records
	DeliveredBytes prometheus.Counter
	Subscribes     prometheus.Counter
	Encodes        prometheus.Counter // event frames encoded; those that came ready made are not counted
	ConnectionsNow prometheus.Gauge
	Subscribers    prometheus.Gauge
	CacheRequests  *prometheus.CounterVec // by op and result

	GroupRequests  *prometheus.CounterVec // by op and result
	GroupPolls     prometheus.Gauge       // that wait, or whose records are being read
	GroupPollBytes prometheus.Gauge       // that they hold of Options.Polls

	Parked      prometheus.Gauge // reads and subscribes that wait
	ParkedBytes prometheus.Gauge // that they hold of Options.Parked

	ReadsOverdue prometheus.Gauge // that were answered as failed and have not come back

	PutAside prometheus.Counter // large pages that were written piece by piece

	Watches        prometheus.Gauge
	WatchEvents    prometheus.Counter
	WatchesLagged  prometheus.Counter
	WatchesStuck   prometheus.Counter // that let go of current values
	WatchRetained  prometheus.Counter // current values written
	Resnapshots    prometheus.Counter
	WatchesTooMany prometheus.Counter // refused for what they would have to be given

	// Counters of hot paths, looked up once.
	requests            [wire.RequestKinds]prometheus.Counter
	cacheHit, cacheMiss prometheus.Counter
}

// NewMetrics registers the metrics of the sessions.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		reg.MustRegister(g)
		return g
	}
	m := &Metrics{
		Connections:    counter("felix_client_connections_total", "Client connections accepted."),
		ConnectionsNow: gauge("felix_client_connections", "Client connections open now."),
		Streams:        vec("felix_client_streams_total", "Streams that clients opened, by role: control (bidirectional) or publish_only.", "role"),
		StreamsNow:     gauge("felix_client_streams", "Client streams open now."),
		StreamsRefused: vec("felix_client_streams_refused_total", "Client streams that the broker ended for a fault: bad_magic, bad_version or too_long (a frame header that cannot be followed), partial_frames, answers_unread, not_possible (what the stream may not carry and nobody can answer), or the error code of its last answer.", "reason"),
		Closed:         vec("felix_client_connections_closed_total", "Client connections that the broker closed by itself, by reason: authentication_timeout, too_many_streams, overload, internal, repeated_failure.", "reason"),
		Requests:       vec("felix_requests_total", "Requests taken from clients, by kind.", "kind"),
		Refused:        vec("felix_requests_refused_total", "Requests answered with a refusal, by error code, or by the reason that publish_refused names; unsupported are those of a type that is not served.", "code"),
		ReadFailures:   counter("felix_log_read_failures_total", "Reads of logs for clients, subscriptions included, that the disk or damage on it made fail."),
		DroppedFrames:  counter("felix_frames_dropped_total", "Frames passed over without an answer because none was wanted or possible."),
		JSONPublishes:  counter("felix_broker_json_publishes_total", "Publishes that arrived as JSON, which is slower than the binary layout."),
		QueueFull:      newTenantCounter(vec("felix_tenant_publish_queue_full_total", "Requests to a shard that found no room, by tenant (_overflow: all beyond FELIX_TENANT_METRICS_MAX) and action: refused (answered overloaded) or dropped (unacknowledged).", "tenant", "action")),
		QueueWaits:     counter("felix_publish_queue_waits_total", "Requests to a shard that waited for room before they were let through or given up."),
		ShardFailures:  counter("felix_requests_failed_shards_total", "Requests that made a shard fail; the second one of a principal closes its connection."),
		AuthTimeouts:   counter("felix_quic_auth_timeout_total", "Connections closed because a stream did not authenticate in time."),
		AuthFailures:   counter("felix_auth_failures_total", "Tokens that were not accepted."),
		Published:      counter("felix_published_records_total", "Records accepted from publishers."),
		PublishedBytes: counter("felix_published_bytes_total", "Payload bytes accepted from publishers."),
		Delivered:      counter("felix_delivered_records_total", "Records written to subscribers."),
		DeliveredBytes: counter("felix_delivered_bytes_total", "Payload bytes written to subscribers."),
		Subscribes:     counter("felix_subscribe_requests_total", "Subscribe requests taken."),
		Subscribers:    gauge("felix_subscribers", "Subscriptions open now."),
		Encodes:        counter("felix_event_encodes_total", "Event frames that had to be encoded; one serves all subscribers that negotiated the same."),
		CacheRequests:  vec("felix_cache_requests_total", "Cache requests, by op (put, get, delete, put_if, delete_if, counter_add, counter_get) and result (ok, hit, miss, refused). A get that finds a value in memory or in the log is a hit.", "op", "result"),

		GroupRequests: vec("felix_group_requests_total", "Requests of consumer groups, by op (poll, ack, nack, extend, dead_letter, dead_letters, discard, redrive, seek, describe, delete) and result (ok, empty, refused). A poll that is answered without a record is empty.", "op", "result"),
		GroupPolls:    gauge("felix_group_polls_waiting", "Polls of consumer groups that wait for records, or for those to be read."),

		GroupPollBytes: gauge("felix_group_poll_bytes", "Bytes of memory that polls of consumer groups are counted with while they wait; at the bound of their connection, or of the node, more are answered overloaded."),

		Parked:       gauge("felix_parked_requests", "Reads of logs, gets of values that are not in memory included, and subscribes and watches that wait for a disk or for answers before theirs."),
		ReadsOverdue: gauge("felix_log_reads_overdue", "Reads of logs that their clients were told of as failed, because the disk did not answer, and that have not come back."),
		ParkedBytes:  gauge("felix_parked_request_bytes", "Bytes of memory that felix_parked_requests are counted with; at the bound of their connection, or of the node, more are answered overloaded."),

		PutAside: counter("felix_large_pages_put_aside_total", "Large records that found no room in felix_large_page_budget_bytes: they are written piece by piece, and read again for each."),

		Watches:        gauge("felix_cache_watches", "Watches of caches open now."),
		WatchEvents:    counter("felix_cache_watch_events_total", "Changes written to watches of caches."),
		WatchesStuck:   counter("felix_cache_watches_stuck_total", "Watches that let go of their current values because their client took none for 10 s; it is told where to resume when it reads on."),
		WatchRetained:  counter("felix_cache_watch_retained_values_total", "Current values written to watches before their changes, because they were asked for or the history was gone."),
		WatchesLagged:  counter("felix_cache_watches_lagged_total", "Watches that were ended because their client fell behind, and told where to resume."),
		Resnapshots:    counter("felix_cache_watch_resnapshots_total", "Watches that began with current values because compaction had removed the changes they asked for."),
		WatchesTooMany: counter("felix_cache_watches_refused_total", "Watches that were refused because their current values are more than a watch, or the node's watches together, may be given."),
	}
	for k := range m.requests {
		m.requests[k] = m.Requests.WithLabelValues(wire.RequestKind(k).String())
	}
	m.cacheHit, m.cacheMiss = m.CacheRequests.WithLabelValues("get", "hit"), m.CacheRequests.WithLabelValues("get", "miss")
	return m
}
