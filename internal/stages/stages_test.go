package stages

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// clock stands still until it is moved.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newTimings(every int) (*Timings, *clock, *prometheus.Registry) {
	c, reg := &clock{at: time.Unix(1_700_000_000, 0)}, prometheus.NewRegistry()
	return New(reg, c.now, every), c, reg
}

// histogram finds what was seen of one stage; nil if there is no such series.
func histogram(t *testing.T, reg *prometheus.Registry, path, stage string) *dto.Histogram {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if l := m.GetLabel(); l[0].GetValue() == path && l[1].GetValue() == stage {
			return m.GetHistogram()
		}
	}
	return nil
}

func TestTimesAreNotedUnderTheirPathAndStage(t *testing.T) {
	x, c, reg := newTimings(1)
	at := x.Now()
	c.at = c.at.Add(3 * time.Second)
	x.Took(Publish, Queue, x.Since(at))
	x.Took(Publish, Queue, -time.Second) // a clock that went back
	x.Took(Cache, Wire, time.Millisecond)
	for _, want := range []struct {
		path, stage string
		count       uint64
		sum         float64
	}{{"publish", "queue", 2, 3}, {"cache", "wire", 1, 0.001}, {"deliver", "transport", 0, 0}} {
		h := histogram(t, reg, want.path, want.stage)
		if h == nil || h.GetSampleCount() != want.count || h.GetSampleSum() != want.sum {
			t.Errorf("%s %s: %v, want %d with the sum %v", want.path, want.stage, h, want.count, want.sum)
		}
	}
	if h := histogram(t, reg, "deliver", "queue"); h != nil {
		t.Error("there is a queue of deliveries, and nobody notes it")
	}
}

func TestOneInSoManyIsMeasuredWhateverTheOwnerSees(t *testing.T) {
	x, _, _ := newTimings(64)
	taken := 0
	one := x.Sampler()
	for range 64 * 10 {
		if one.Take(x) {
			taken++
		}
	}
	if taken != 10 {
		t.Errorf("%d of 640 of one owner were measured, want 10", taken)
	}
	taken = 0
	for range 64 * 10 { // owners that see a single request each
		s := x.Sampler()
		if s.Take(x) {
			taken++
		}
	}
	if taken != 10 {
		t.Errorf("%d of 640 owners were measured, want 10", taken)
	}
}

func TestTimingsThatAreOffMeasureNothing(t *testing.T) {
	var off *Timings
	s := off.Sampler()
	for range 200 {
		if s.Take(off) {
			t.Fatal("something was measured")
		}
	}
	off.Took(Publish, Wire, time.Second)
	if off.Now() != 0 || off.At(time.Unix(1, 0)) != 0 || off.Since(5) != 0 {
		t.Error("time passes for timings that are off")
	}
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	x, _, _ := newTimings(1)
	s := x.Sampler()
	if n := testing.AllocsPerRun(100, func() {
		if s.Take(x) {
			x.Took(Publish, Wire, x.Since(x.Now()))
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLabelsAreNamed(t *testing.T) {
	for p := range pathEnd + 1 {
		if (p.String() == "unknown") != (p == pathEnd) {
			t.Errorf("path %d is called %s", p, p)
		}
	}
	for s := range stageEnd + 1 {
		if (s.String() == "unknown") != (s == stageEnd) {
			t.Errorf("stage %d is called %s", s, s)
		}
	}
}

func TestARateThatCannotBeIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("one in 0 was accepted")
		}
	}()
	newTimings(0)
}
