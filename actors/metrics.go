package actors

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the instruments of one system. Labels are kinds, lanes, reasons and event names: never an actor.
type metrics struct {
	live      *prometheus.GaugeVec
	spawned   *prometheus.CounterVec
	stopped   *prometheus.CounterVec
	panics    *prometheus.CounterVec
	messages  *prometheus.CounterVec
	turns     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	refused   *prometheus.CounterVec
	events    *prometheus.CounterVec
	executors prometheus.Gauge
	busy      prometheus.Gauge

	mu    sync.Mutex
	kinds map[string]*kind
	order []*kind // in order of first spawn, for scraping
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		live:      gauges("felixd_actor_live", "Actors alive now.", "kind"),
		spawned:   counters("felixd_actor_spawned_total", "Actors spawned.", "kind"),
		stopped:   counters("felixd_actor_stopped_total", "Actors that ended, by reason (stopped, panicked).", "kind", "reason"),
		panics:    counters("felixd_actor_panics_total", "Panics recovered in turns, lifecycle turns and callbacks of actors.", "kind"),
		messages:  counters("felixd_actor_messages_total", "Messages stepped, by lane (data, control, cell).", "kind", "lane"),
		turns:     counters("felixd_actor_turns_total", "Turns taken; messages divided by turns is the batching.", "kind"),
		refused:   counters("felixd_actor_mailbox_refused_total", "Sends refused, by reason (full, stopped).", "kind", "reason"),
		events:    counters("felixd_events_total", "Events emitted, by name.", "event"),
		executors: gauge("felixd_actor_executors", "Goroutines the fair dispatcher may use."),
		busy:      gauge("felixd_actor_executors_busy", "Goroutines the fair dispatcher is using now."),
		kinds:     make(map[string]*kind),
	}
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "felixd_actor_turn_seconds",
		Help:    "Duration of turns in seconds; one turn in 64 of each actor is measured.",
		Buckets: prometheus.ExponentialBuckets(1e-6, 4, 11), // 1 us to 1 s
	}, []string{"kind"})
	if reg != nil {
		reg.MustRegister(m.live, m.spawned, m.stopped, m.panics, m.messages, m.turns, m.refused, m.events, m.executors, m.busy, m.seconds, newMailboxCollector(m))
	}
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// mailboxCollector computes the mailbox gauges when they are scraped, so that sending costs no shared counter.
type mailboxCollector struct {
	m            *metrics
	items, bytes *prometheus.Desc
}

func newMailboxCollector(m *metrics) *mailboxCollector {
	label := []string{"kind"}
	return &mailboxCollector{
		m:     m,
		items: prometheus.NewDesc("felixd_actor_mailbox_items", "Data messages queued in live mailboxes.", label, nil),
		bytes: prometheus.NewDesc("felixd_actor_mailbox_bytes", "Bytes of data messages queued in live mailboxes.", label, nil),
	}
}

func (c *mailboxCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.items
	ch <- c.bytes
}

func (c *mailboxCollector) Collect(ch chan<- prometheus.Metric) {
	c.m.mu.Lock()
	kinds := c.m.order[:len(c.m.order):len(c.m.order)]
	c.m.mu.Unlock()
	for _, k := range kinds {
		items, bytes := k.held()
		ch <- prometheus.MustNewConstMetric(c.items, prometheus.GaugeValue, float64(items), k.name)
		ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(bytes), k.name)
	}
}
