package bench

import (
	"fmt"
	"math"
	"slices"
)

// Spread is what the rounds of an experiment have found of one figure.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf is the median of the values, that of an even number being the mean of the middle two, with the smallest and the
// largest. It panics on no values: there is always a round.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		panic("bench: no values to summarize")
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// text writes the spread with digits behind the point: "1.25 [1.10..1.31]".
func (s Spread) text(digits int) string {
	return fmt.Sprintf("%s [%s..%s]", number(s.Median, digits), number(s.Min, digits), number(s.Max, digits))
}

// number writes v with digits behind the point, and thousands in groups of three.
func number(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	text := fmt.Sprintf("%.*f", digits, v)
	end := len(text)
	if digits > 0 {
		end -= digits + 1
	}
	first := 0
	if text[0] == '-' {
		first = 1
	}
	for i := end - 3; i > first; i -= 3 {
		text = text[:i] + "\u202f" + text[i:] // a narrow space that does not break
	}
	return text
}
