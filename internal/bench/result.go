package bench

import (
	"fmt"
	"math"
)

// Result is what one trial has found.
type Result struct {
	Label   string  `json:"label"`
	Seconds float64 `json:"seconds"`

	Records          uint64  `json:"records"` // answered, or received by all subscribers together, within the stretch
	RecordsPerSecond float64 `json:"records_per_second"`
	MBPerSecond      float64 `json:"mb_per_second"` // payload, 10^6 bytes

	Latency *Summary `json:"latency,omitempty"`
	// Late says how far the generator itself was behind its schedule when it sent; it is part of Latency.
	Late *Summary `json:"generator_late,omitempty"`

	Sent         uint64  `json:"sent,omitempty"` // records, warm-up included
	Refused      uint64  `json:"refused"`        // requests that were answered with a refusal, warm-up included
	FirstRefusal string  `json:"first_refusal,omitempty"`
	Lost         *uint64 `json:"lost"`     // records that were sent and did not arrive, warm-up included; null: not known
	Repeated     uint64  `json:"repeated"` // records that came twice or out of order

	GeneratorCPU *float64 `json:"generator_cpus"` // CPUs used on average; null: not known
	ServerCPU    *float64 `json:"server_cpus"`
	ServerProcs  *int     `json:"server_gomaxprocs,omitempty"`

	// RecordsPerSync is how many records one sync of the broker made durable, warm-up included; null: not known, or nothing was synced.
	RecordsPerSync *float64 `json:"records_per_sync,omitempty"`

	Notes []string `json:"notes,omitempty"`
}

// rates fills in what follows from how much was done in a stretch.
func rates(s stretch, records uint64, payload int) Result {
	return Result{
		Seconds: s.seconds, Records: records,
		RecordsPerSecond: float64(records) / s.seconds,
		MBPerSecond:      float64(records) * float64(payload) / s.seconds / 1e6,
		GeneratorCPU:     s.generator, ServerCPU: s.server, ServerProcs: s.after.GOMAXPROCS,
		RecordsPerSync: perSync(s.before, s.after), Notes: dropNotes(s.before, s.after),
	}
}

// perSync is how many records one sync made durable between two looks at a broker.
func perSync(before, after ServerUsage) *float64 {
	if before.Syncs == nil || before.Synced == nil || after.Syncs == nil || after.Synced == nil || *after.Syncs <= *before.Syncs {
		return nil
	}
	return ptr(float64(*after.Synced-*before.Synced) / float64(*after.Syncs-*before.Syncs))
}

// dropNotes repeats what the broker says that it dropped between two looks at it.
func dropNotes(before, after ServerUsage) []string {
	var notes []string
	add := func(before, after *uint64, what string) {
		if before != nil && after != nil && *after > *before {
			notes = append(notes, fmt.Sprintf("the broker counted %d %s", *after-*before, what))
		}
	}
	add(before.DroppedPublish, after.DroppedPublish, "unacknowledged batches that it dropped because a queue was full")
	add(before.DroppedReads, after.DroppedReads, "records that slow subscribers lost")
	return notes
}

// refused adds refusals of one worker.
func (r *Result) refused(n uint64, first error) {
	r.Refused += n
	if r.FirstRefusal == "" && first != nil {
		r.FirstRefusal = first.Error()
	}
}

// published compares what was sent with what the broker says it took. With certain, every answer came and vouches for what was
// sent before it, so that nothing is lost that was not refused; otherwise only the broker knows.
func (r *Result) published(s stretch, certain bool) {
	if certain {
		r.Lost = ptr(uint64(0))
		return
	}
	before, after := s.before.Published, s.after.Published
	if before == nil || after == nil {
		return
	}
	taken := *after - *before
	if taken > r.Sent {
		r.Notes = append(r.Notes, fmt.Sprintf("the broker took %d records more than were sent here: somebody else publishes to it", taken-r.Sent))
		return
	}
	r.Lost = ptr(r.Sent - taken)
}

// Figure is one number of a result that cases are compared by.
type Figure string

// Figures.
const (
	Rate Figure = "rate" // records per second
	P50  Figure = "p50"
	P99  Figure = "p99"
	// ServerCost and GeneratorCost are microseconds of CPU per record: they hardly change when other programs take the machine's time, and
	// tell on which side of the connection it goes.
	ServerCost    Figure = "server CPU us per record"
	GeneratorCost Figure = "generator CPU us per record"
	// PerSync is records that one sync made durable.
	PerSync Figure = "records per sync"
)

// allFigures are those that a report lists, in order.
func allFigures() []Figure { return []Figure{Rate, P50, P99, ServerCost, GeneratorCost, PerSync} }

// of returns the figure; NaN when the result does not have it.
func (f Figure) of(r Result) float64 {
	switch f {
	case Rate:
		return r.RecordsPerSecond
	case P50, P99:
		if r.Latency == nil {
			return math.NaN()
		}
		if f == P50 {
			return r.Latency.P50
		}
		return r.Latency.P99
	case ServerCost:
		return r.cost(r.ServerCPU)
	case GeneratorCost:
		return r.cost(r.GeneratorCPU)
	case PerSync:
		if r.RecordsPerSync == nil {
			return math.NaN()
		}
		return *r.RecordsPerSync
	}
	panic("bench: no figure " + string(f))
}

// cost is CPUs per record and second, in microseconds per record.
func (r Result) cost(cpus *float64) float64 {
	if cpus == nil || r.RecordsPerSecond == 0 {
		return math.NaN()
	}
	return *cpus / r.RecordsPerSecond * 1e6
}
