package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// latencyUnit is the finest step that is told apart, and latencyMax the longest time that is kept; what is longer counts as it.
	latencyUnit = 64 * time.Nanosecond
	latencyMax  = time.Minute
	// latencyDigits bounds the error of a quantile to one part in a thousand. A histogram takes about 170 KiB.
	latencyDigits = 3
)

// Latencies counts durations in a high dynamic range histogram: a quantile is off by at most 0.1 % or 64 ns, whatever the range. It
// belongs to one goroutine.
type Latencies struct{ h *hdrhistogram.Histogram }

// NewLatencies makes an empty one.
func NewLatencies() *Latencies {
	return &Latencies{hdrhistogram.New(int64(latencyUnit), int64(latencyMax), latencyDigits)}
}

// Record counts d. Negative durations count as 0, those over a minute as a minute.
func (l *Latencies) Record(d time.Duration) {
	if err := l.h.RecordValue(int64(min(max(d, 0), latencyMax))); err != nil {
		panic(fmt.Sprintf("bench: record %v: %v", d, err)) // it was made to fit a line above
	}
}

// Merge adds what others counted.
func (l *Latencies) Merge(others ...*Latencies) {
	for _, o := range others {
		if dropped := l.h.Merge(o.h); dropped > 0 {
			panic(fmt.Sprintf("bench: %d values do not fit a histogram of the same bounds", dropped))
		}
	}
}

// Summary is what is reported of latencies, in microseconds.
type Summary struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p99_9_us"`
	Max   float64 `json:"max_us"`
}

// Summary returns nil when nothing was counted.
func (l *Latencies) Summary() *Summary {
	if l.h.TotalCount() == 0 {
		return nil
	}
	at := func(percent float64) float64 { return micros(l.h.ValueAtPercentile(percent)) }
	return &Summary{
		Count: uint64(l.h.TotalCount()), Mean: l.h.Mean() / 1e3,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: micros(l.h.Max()),
	}
}

func micros(nanos int64) float64 { return float64(nanos) / 1e3 }
