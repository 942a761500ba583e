package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAreOffByAThousandthAtMost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := NewLatencies()
	var exact []time.Duration
	for range 200_000 { // from 100 ns to 30 s, every magnitude as often
		d := time.Duration(math.Exp(random.Float64()*math.Log(3e8)) * 100)
		exact = append(exact, d)
		l.Record(d)
	}
	slices.Sort(exact)
	s := l.Summary()
	if s.Count != uint64(len(exact)) {
		t.Fatalf("counted %d of %d", s.Count, len(exact))
	}
	for _, q := range []struct {
		percent, got float64
	}{{50, s.P50}, {90, s.P90}, {99, s.P99}, {99.9, s.P999}, {100, s.Max}} {
		rank := max(0, int(math.Ceil(q.percent/100*float64(len(exact))))-1)
		want := float64(exact[rank]) / 1e3
		if off := math.Abs(q.got - want); off > want/1000+0.064 {
			t.Errorf("p%v is %v us, want %v us", q.percent, q.got, want)
		}
	}
}

func TestLatenciesOutOfRangeCountAtItsEnds(t *testing.T) {
	l := NewLatencies()
	l.Record(-time.Second)
	l.Record(time.Hour)
	s := l.Summary()
	if s.Count != 2 || s.P50 > 0.1 || math.Abs(s.Max/60e6-1) > 0.001 {
		t.Fatalf("got %+v", s)
	}
}

func TestMergedLatenciesAreThoseOfAll(t *testing.T) {
	all, a, b := NewLatencies(), NewLatencies(), NewLatencies()
	for i := range 1000 {
		d := time.Duration(i*i) * time.Microsecond
		all.Record(d)
		[]*Latencies{a, b}[i%2].Record(d)
	}
	a.Merge(b)
	if *a.Summary() != *all.Summary() {
		t.Fatalf("merged %+v, want %+v", *a.Summary(), *all.Summary())
	}
}

func TestNothingCountedHasNoSummary(t *testing.T) {
	if s := NewLatencies().Summary(); s != nil {
		t.Fatalf("got %+v", s)
	}
}
