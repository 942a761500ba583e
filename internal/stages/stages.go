// Package stages measures where the time of a request or a delivery goes: in the broker's own work on the bytes, in a queue, in
// storage, or in waiting for a client. One in so many is measured, because reading the clock around a stage costs about as much as
// a small stage does; the others pay one comparison and one decrement.
package stages

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Path says whose time it is.
type Path uint8

const (
	// Publish is a request that publishes.
	Publish Path = iota
	// Cache is a request about a cache.
	Cache
	// Deliver is what one step of a subscription writes.
	Deliver

	pathEnd
)

// Stage says what the time went into.
type Stage uint8

const (
	// Wire is work on the bytes: decode, validate, and encode the answer or the events.
	Wire Stage = iota
	// Queue is the wait in the mailbox of a shard, from the send to the beginning of the turn.
	Queue
	// Storage is, of a request, the time from the append until what was appended is readable, durable if the log is; of a delivery,
	// the time to read from the log.
	Storage
	// Transport is the time that an answer or an event write waits for its client.
	Transport

	stageEnd
)

// String is the path as a metric label.
func (p Path) String() string {
	if p >= pathEnd {
		return "unknown"
	}
	return [pathEnd]string{"publish", "cache", "deliver"}[p]
}

// String is the stage as a metric label.
func (s Stage) String() string {
	if s >= stageEnd {
		return "unknown"
	}
	return [stageEnd]string{"wire", "queue", "storage", "transport"}[s]
}

// SampleEvery is the default: one request in so many is measured.
const SampleEvery = 64

// Instant is a moment on the clock of some Timings, in nanoseconds; 0 is none, which is what everything that is not measured
// carries.
type Instant int64

// Timings are the histograms of one node. A nil *Timings measures nothing; that is how they are switched off. Safe for concurrent
// use, without allocating.
type Timings struct {
	now   func() time.Time
	began time.Time
	every uint32
	phase atomic.Uint32 // of the next Sampler
	seen  [pathEnd][stageEnd]prometheus.Observer
}

// New registers the histograms. now is the node's clock; one in every is measured, which must be at least 1.
func New(reg prometheus.Registerer, now func() time.Time, every int) *Timings {
	if every < 1 || every > 1<<30 {
		panic(fmt.Sprintf("stages: one in %d cannot be measured", every))
	}
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "felix_stage_seconds",
		Help: "Time by stage, in seconds, of a sample (FELIX_TIMING_SAMPLE_EVERY). path: publish, cache, deliver. stage: wire (work on the bytes), " +
			"queue (wait for the shard's turn), storage (append until readable, or read), transport (wait for the client).",
		Buckets: prometheus.ExponentialBuckets(1e-6, 4, 13), // 1 us to 17 s
	}, []string{"path", "stage"})
	reg.MustRegister(vec)
	t := &Timings{now: now, began: now(), every: uint32(every)}
	for p := range pathEnd {
		for s := range stageEnd {
			if p != Deliver || s != Queue { // a subscription takes no turn
				t.seen[p][s] = vec.WithLabelValues(p.String(), s.String())
			}
		}
	}
	return t
}

// Now is the present. Of a nil Timings it is 0.
func (t *Timings) Now() Instant {
	if t == nil {
		return 0
	}
	return t.At(t.now())
}

// At is a time of the node's clock as an Instant. Of a nil Timings it is 0.
func (t *Timings) At(at time.Time) Instant {
	if t == nil {
		return 0
	}
	return Instant(at.Sub(t.began)) + 1 // never 0, which is none
}

// Took notes how long one stage of one request took. A clock that went back counts as no time. A nil Timings notes nothing.
func (t *Timings) Took(p Path, s Stage, d time.Duration) {
	if t != nil {
		t.seen[p][s].Observe(max(d, 0).Seconds())
	}
}

// Since is how long ago at was; at 0 is no time ago.
func (t *Timings) Since(at Instant) time.Duration {
	if t == nil || at == 0 {
		return 0
	}
	return time.Duration(t.Now() - at)
}

// Sampler chooses which requests of one owner are measured. It is not safe for concurrent use.
type Sampler struct{ skip uint32 }

// Sampler returns one that begins somewhere in its count, each elsewhere than the one before, so that owners which never see many
// requests are represented too.
func (t *Timings) Sampler() Sampler {
	if t == nil {
		return Sampler{}
	}
	return Sampler{skip: t.phase.Add(1) % t.every}
}

// Take reports whether the next one is to be measured by t; never if t is nil.
func (s *Sampler) Take(t *Timings) bool {
	if t == nil {
		return false
	}
	if s.skip > 0 {
		s.skip--
		return false
	}
	s.skip = t.every - 1
	return true
}
