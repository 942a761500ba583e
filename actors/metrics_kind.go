package actors

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// kind holds the resolved instruments of one kind of actor, and its live mailboxes for scraping.
type kind struct {
	name                      string
	live                      prometheus.Gauge
	spawned, panics, turns    prometheus.Counter
	stopped                   [2]prometheus.Counter // by Reason
	data, control, cell       prometheus.Counter
	refusedFull, refusedStops prometheus.Counter
	seconds                   prometheus.Observer

	mu    sync.Mutex
	boxes *mailbox // intrusive list through mailbox.kindNext
}

// kind returns the instruments of name, resolving them at its first use.
func (m *metrics) kind(name string) *kind {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.kinds[name]; ok {
		return k
	}
	k := &kind{
		name: name, live: m.live.WithLabelValues(name), spawned: m.spawned.WithLabelValues(name), panics: m.panics.WithLabelValues(name),
		turns: m.turns.WithLabelValues(name), seconds: m.seconds.WithLabelValues(name),
		stopped:     [2]prometheus.Counter{m.stopped.WithLabelValues(name, Orderly.String()), m.stopped.WithLabelValues(name, Panicked.String())},
		data:        m.messages.WithLabelValues(name, "data"),
		control:     m.messages.WithLabelValues(name, "control"),
		cell:        m.messages.WithLabelValues(name, "cell"),
		refusedFull: m.refused.WithLabelValues(name, "full"), refusedStops: m.refused.WithLabelValues(name, "stopped"),
	}
	m.kinds[name] = k
	m.order = append(m.order, k)
	return k
}

// add takes a new incarnation into the live gauges.
func (k *kind) add(b *mailbox) {
	k.live.Inc()
	k.mu.Lock()
	defer k.mu.Unlock()
	b.kindNext = k.boxes
	if k.boxes != nil {
		k.boxes.kindPrev = b
	}
	k.boxes = b
}

// remove ends an incarnation's share in the live gauges.
func (k *kind) remove(b *mailbox) {
	k.live.Dec()
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.kindPrev == nil {
		k.boxes = b.kindNext
	} else {
		b.kindPrev.kindNext = b.kindNext
	}
	if b.kindNext != nil {
		b.kindNext.kindPrev = b.kindPrev
	}
	b.kindPrev, b.kindNext = nil, nil
}

// held sums what the live mailboxes of this kind hold.
func (k *kind) held() (items, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for b := k.boxes; b != nil; b = b.kindNext {
		items += b.items.Load()
		bytes += b.bytes.Load()
	}
	return items, bytes
}

// each calls f for every live mailbox, kind by kind. f must be short: spawns and ends of that kind wait for it.
func (m *metrics) each(f func(b *mailbox)) {
	m.mu.Lock()
	kinds := m.order[:len(m.order):len(m.order)]
	m.mu.Unlock()
	for _, k := range kinds {
		k.mu.Lock()
		for b := k.boxes; b != nil; b = b.kindNext {
			f(b)
		}
		k.mu.Unlock()
	}
}
