package streams

import (
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// contest compares how fast something goes alone and beside something else, in pairs of neighbouring windows, so that what the
// machine does meanwhile meets both alike.
type contest struct {
	rounds        int // pairs of windows in one try; 0: pairs()
	alone, beside []float64
}

// length is how long a window of a measurement is.
func length() time.Duration {
	switch {
	case effort.Full():
		return time.Second
	case testkit.Raced:
		return 120 * time.Millisecond
	}
	return 80 * time.Millisecond
}

// pairs is how many pairs of windows one try has.
func pairs() int {
	if effort.Full() {
		return 15
	}
	return 5
}

// again says whether what looks bad is to be measured some more: the machine may have been busy with something else. Since all that was measured
// counts, what is true comes out in the end, on a busy machine later.
func again() (more func() bool) {
	const least, enough = 3, time.Minute
	began, tries := time.Now(), 0
	return func() bool { tries++; return tries < least || time.Since(began) < enough }
}

// hold measures pairs of windows, each time in another order, until most of what was measured beside is at least so much of what was measured
// alone just before or after, and what is also to be true of it is. All that was measured counts. It fails the test when that does not come true.
func (c *contest) hold(t testing.TB, what string, least float64, alone, beside func() float64, also ...func() bool) {
	t.Helper()
	rounds := c.rounds
	if rounds == 0 {
		rounds = pairs()
	}
	good := func() bool {
		return c.ratio() >= least && !slices.ContainsFunc(also, func(holds func() bool) bool { return !holds() })
	}
	for more := again(); ; {
		for i := range rounds {
			if i%2 == 0 {
				c.alone = append(c.alone, alone())
				c.beside = append(c.beside, beside())
			} else {
				c.beside = append(c.beside, beside())
				c.alone = append(c.alone, alone())
			}
		}
		if good() || !more() {
			break
		}
	}
	t.Logf("%s: %.0f/s alone, %.0f/s beside, median ratio of %d pairs %.2f", what, middle(c.alone), middle(c.beside), len(c.alone), c.ratio())
	if c.ratio() < least {
		t.Errorf("%s: %.2f of the rate is left, at least %.2f is due", what, c.ratio(), least)
	}
}

// ratio is the median of what the pairs say.
func (c *contest) ratio() float64 {
	var all []float64
	for i := range c.alone {
		all = append(all, c.beside[i]/c.alone[i])
	}
	return middle(all)
}

func middle(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}
