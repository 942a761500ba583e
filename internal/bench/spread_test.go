package bench

import (
	"math"
	"testing"
)

func TestSpreadIsMedianAndEnds(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{7}, Spread{7, 7, 7}},
		{[]float64{3, 1, 2}, Spread{2, 1, 3}},
		{[]float64{4, 1, 3, 2}, Spread{2.5, 1, 4}},
		{[]float64{5, 1, 100, 2, 3}, Spread{3, 1, 100}},
	} {
		before := append([]float64(nil), c.values...)
		if got := SpreadOf(c.values); got != c.want {
			t.Errorf("spread of %v is %+v, want %+v", c.values, got, c.want)
		}
		for i := range before {
			if before[i] != c.values[i] {
				t.Errorf("the values were reordered: %v", c.values)
			}
		}
	}
}

func TestNumbersAreGroupedInThrees(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1\u202f000"}, {1234567.891, 2, "1\u202f234\u202f567.89"}, {-1234, 1, "-1\u202f234.0"},
		{math.NaN(), 1, "-"}, {math.Inf(1), 0, "-"}, {0.4567, 2, "0.46"}, {-123, 0, "-123"},
	} {
		if got := number(c.v, c.digits); got != c.want {
			t.Errorf("number(%v, %d) is %q, want %q", c.v, c.digits, got, c.want)
		}
	}
}
