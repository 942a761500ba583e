package shardactor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/shardactor/groupcore"
)

// GroupMetrics are the counters of the consumer groups of a node; none has a label per group.
type GroupMetrics struct {
	Active prometheus.Gauge
	Failed prometheus.Counter

	delivered, redelivered, settled, nacked, lapsed, reclaimed, deadLettered, skipped, capped prometheus.Counter

	lag, inFlight, delayed, owed, dead atomic.Int64

	mu    sync.Mutex
	shown []*groupShown // of all groups in memory
}

// groupShown is what the metrics show of one group.
type groupShown struct {
	oldest                             time.Time // when the record was committed that the group waits for; zero for none; under GroupMetrics.mu
	place                              int       // in GroupMetrics.shown, if listed
	listed                             bool
	counts                             groupcore.Counts
	lag, inFlight, delayed, owed, dead int64
}

func newGroupMetrics() *GroupMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &GroupMetrics{
		Active:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "felix_groups", Help: "Consumer groups in memory; one that nobody uses for a while is let go of, and is in its log alone."}),
		Failed:       counter("felix_group_failures_total", "Consumer groups that failed and were brought up again from their logs."),
		delivered:    counter("felix_group_delivered_total", "Records handed out by consumer groups."),
		redelivered:  counter("felix_group_redelivered_total", "Of felix_group_delivered_total, those that had been handed out before."),
		settled:      counter("felix_group_settled_total", "Records finished in a consumer group."),
		nacked:       counter("felix_group_nacked_total", "Records given back by their holders."),
		lapsed:       counter("felix_group_lapsed_total", "Claims that ended because their holder did nothing in time."),
		reclaimed:    counter("felix_group_reclaimed_total", "Claims that a member took back on a new connection."),
		deadLettered: counter("felix_group_dead_lettered_total", "Records that became dead letters."),
		skipped:      counter("felix_group_skipped_total", "Offsets that held no record any more when a group came to them, or never one for clients."),
		capped:       counter("felix_group_polls_capped_total", "Polls answered empty because too much was in flight, or kept."),
	}
}

func (m *GroupMetrics) register(reg prometheus.Registerer, now func() time.Time) {
	gauge := func(name, help string, v *atomic.Int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(v.Load()) })
	}
	reg.MustRegister(m.Active, m.Failed, m.delivered, m.redelivered, m.settled, m.nacked, m.lapsed, m.reclaimed, m.deadLettered, m.skipped, m.capped,
		gauge("felix_group_lag_records", "Records between where groups in memory are and where their shards end.", &m.lag),
		gauge("felix_group_in_flight", "Records handed out and not finished.", &m.inFlight),
		gauge("felix_group_delayed", "Records given back that may not be handed out yet.", &m.delayed),
		gauge("felix_group_owed", "Records to be handed out again.", &m.owed),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "felix_group_oldest_unsettled_seconds", Help: "Age of the oldest record that a group in memory has not finished, to a second; after a start, what was there before counts from then."},
			func() float64 { return m.oldest(now()) }),
		gauge("felix_group_dead_letters", "Dead letters of the groups in memory.", &m.dead),
	)
}

// show adds what has changed in a group since it was shown last.
func (m *GroupMetrics) show(c *groupcore.Core, s *groupShown, a *ages) {
	n, old := c.Counts(), &s.counts
	add := func(to prometheus.Counter, now, before uint64) {
		if now > before {
			to.Add(float64(now - before))
		}
	}
	add(m.delivered, n.Delivered, old.Delivered)
	add(m.redelivered, n.Redelivered, old.Redelivered)
	add(m.settled, n.Settled, old.Settled)
	add(m.nacked, n.Nacked, old.Nacked)
	add(m.lapsed, n.Lapsed, old.Lapsed)
	add(m.reclaimed, n.Reclaimed, old.Reclaimed)
	add(m.deadLettered, n.DeadLettered, old.DeadLettered)
	add(m.skipped, n.Skipped, old.Skipped)
	add(m.capped, n.PollsCapped, old.PollsCapped)
	s.counts = n
	i, lag := c.Info(), int64(0)
	if i.Exists && i.Tail > i.Cursor {
		lag = int64(i.Tail - i.Cursor)
	}
	oldest, _ := a.since(i.Cursor)
	if lag == 0 {
		oldest = time.Time{}
	}
	m.mu.Lock()
	s.oldest = oldest
	if !s.listed {
		s.listed, s.place = true, len(m.shown)
		m.shown = append(m.shown, s)
	}
	m.mu.Unlock()
	m.set(s, groupShown{lag: lag, inFlight: int64(i.InFlight), delayed: int64(i.Delayed), owed: int64(i.Owed), dead: int64(i.Dead)})
}

// forget takes a group out of the sums.
func (m *GroupMetrics) forget(s *groupShown) {
	m.mu.Lock()
	if s.listed {
		last := m.shown[len(m.shown)-1]
		m.shown[s.place], last.place = last, s.place
		m.shown[len(m.shown)-1] = nil
		m.shown, s.listed = m.shown[:len(m.shown)-1], false
	}
	m.mu.Unlock()
	m.set(s, groupShown{})
}

// oldest is how long ago the oldest record was committed that some group has not finished, in seconds; 0 for none.
func (m *GroupMetrics) oldest(now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	most := time.Duration(0)
	for _, s := range m.shown {
		if !s.oldest.IsZero() {
			most = max(most, now.Sub(s.oldest))
		}
	}
	return most.Seconds()
}

func (m *GroupMetrics) set(s *groupShown, now groupShown) {
	m.lag.Add(now.lag - s.lag)
	m.inFlight.Add(now.inFlight - s.inFlight)
	m.delayed.Add(now.delayed - s.delayed)
	m.owed.Add(now.owed - s.owed)
	m.dead.Add(now.dead - s.dead)
	s.lag, s.inFlight, s.delayed, s.owed, s.dead = now.lag, now.inFlight, now.delayed, now.owed, now.dead
}
