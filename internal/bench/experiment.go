package bench

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/felixd/felixd/internal/bench/machine"
)

// Setting is one line of what an experiment was run with.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Case is one side of an experiment.
type Case struct {
	Label string
	Run   func(ctx context.Context, timing Timing) (Result, error)
}

// Comparison divides a figure of one case by that of another, of the same round.
type Comparison struct {
	Label  string
	Figure Figure
	Of, By int // indices of cases
	// With, when not nil, makes of By's figure and that of a third case what Of is divided by.
	With *Joint
	// Target is what the ratio is to reach, or, with AtMost, not to exceed; 0: no target.
	Target float64
	AtMost bool
	// Optional leaves the comparison out when a round lacks the figure.
	Optional bool
}

// Joint is a third case of a comparison.
type Joint struct {
	Case  int
	Label string // of what it makes of the two
	Make  func(by, with float64) float64
}

// Experiment is a set of cases that are measured in turn.
type Experiment struct {
	Name        string
	Title       string
	Loop        string // "closed" or "open": what latencies mean
	Settings    []Setting
	Cases       []Case
	Comparisons []Comparison
	// InFlight is how many payload bytes fit under way, as far as it is known. A stretch that moves less than enoughTimes as much has
	// measured buffers and not a steady state, which is noted. 0 for loads that are not about bulk.
	InFlight float64
	// Notes are what a reader of the report has to know beforehand.
	Notes []string
}

// enoughTimes is how many times what fits in flight a stretch has to move.
const enoughTimes = 4

// CaseReport is what the rounds have found of one case.
type CaseReport struct {
	Label  string            `json:"label"`
	Figure map[Figure]Spread `json:"figures"`
	Rounds []Result          `json:"rounds"`
}

// RatioReport is what the rounds have found of a comparison.
type RatioReport struct {
	Label  string    `json:"label"`
	Figure Figure    `json:"figure"`
	Of     string    `json:"of"`
	By     string    `json:"by"`
	Rounds []float64 `json:"rounds"`
	Spread
	Target float64 `json:"target,omitempty"`
	AtMost bool    `json:"at_most,omitempty"`
	Met    *bool   `json:"met,omitempty"` // by the median; nil without a target
}

// Report is what an experiment has found.
type Report struct {
	Name     string        `json:"name"`
	Title    string        `json:"title"`
	Loop     string        `json:"loop"`
	Rounds   int           `json:"rounds"`
	WarmUp   float64       `json:"warm_up_seconds"`
	Duration float64       `json:"duration_seconds"`
	Settings []Setting     `json:"settings"`
	Cases    []CaseReport  `json:"cases"`
	Ratios   []RatioReport `json:"ratios"`
	Notes    []string      `json:"notes,omitempty"`
}

// Measure runs all cases once per round, in their order, and reports. The first failure ends it: figures of half an experiment mislead.
// said, if not nil, is told what is measured next.
func (e Experiment) Measure(ctx context.Context, rounds int, timing Timing, said func(text string)) (Report, error) {
	r := Report{
		Name: e.Name, Title: e.Title, Loop: e.Loop, Rounds: rounds, Settings: e.Settings, Notes: slices.Clone(e.Notes),
		WarmUp: timing.WarmUp.Seconds(), Duration: timing.Duration.Seconds(), Cases: make([]CaseReport, len(e.Cases)),
	}
	for round := range rounds {
		for i, c := range e.Cases {
			if said != nil {
				said(fmt.Sprintf("%s: round %d of %d, %s", e.Name, round+1, rounds, c.Label))
			}
			result, err := c.Run(ctx, timing)
			if err != nil {
				return Report{}, fmt.Errorf("measure %s, %s, round %d: %w", e.Name, c.Label, round+1, err)
			}
			result.Label = c.Label
			if moved := result.MBPerSecond * 1e6 * result.Seconds; e.InFlight > 0 && moved < enoughTimes*e.InFlight {
				result.Notes = append(result.Notes, fmt.Sprintf("a round moved less than %d times the %.0f MB that fit in flight: measure for longer", enoughTimes, e.InFlight/1e6))
			}
			r.Cases[i].Rounds = append(r.Cases[i].Rounds, result)
		}
	}
	for i, c := range e.Cases {
		r.Cases[i].Label = c.Label
		r.Cases[i].Figure = figuresOf(r.Cases[i].Rounds)
	}
	for _, c := range e.Comparisons {
		ratio, known := c.report(r.Cases)
		if !known && !c.Optional {
			return Report{}, &ShortError{Name: e.Name, Label: c.Label}
		}
		if known {
			r.Ratios = append(r.Ratios, ratio)
		}
	}
	return r, nil
}

// ShortError says that a round is too short to compare anything by.
type ShortError struct{ Name, Label string }

// Error says what to do.
func (e *ShortError) Error() string {
	return fmt.Sprintf("measure %s: %s cannot be compared: nothing was answered in one of the rounds: measure for longer", e.Name, e.Label)
}

// figuresOf are the spreads of the figures that all rounds have.
func figuresOf(rounds []Result) map[Figure]Spread {
	out := make(map[Figure]Spread)
	for _, f := range allFigures() {
		values := make([]float64, len(rounds))
		known := true
		for i, r := range rounds {
			values[i] = f.of(r)
			known = known && !math.IsNaN(values[i])
		}
		if known {
			out[f] = SpreadOf(values)
		}
	}
	return out
}

// report divides round by round; known is false when a round lacks the figure.
func (c Comparison) report(cases []CaseReport) (r RatioReport, known bool) {
	of, by := cases[c.Of], cases[c.By]
	r = RatioReport{Label: c.Label, Figure: c.Figure, Of: of.Label, By: by.Label, Target: c.Target, AtMost: c.AtMost}
	if c.With != nil {
		r.By = c.With.Label
	}
	for i := range of.Rounds {
		beside := c.Figure.of(by.Rounds[i])
		if c.With != nil {
			beside = c.With.Make(beside, c.Figure.of(cases[c.With.Case].Rounds[i]))
		}
		v := c.Figure.of(of.Rounds[i]) / beside
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return r, false
		}
		r.Rounds = append(r.Rounds, v)
	}
	r.Spread = SpreadOf(r.Rounds)
	if c.Target > 0 {
		r.Met = ptr(r.Median >= c.Target)
		if c.AtMost {
			r.Met = ptr(r.Median <= c.Target)
		}
	}
	return r, true
}

// cost reports whether the ratio is one of CPU time, which is shown beside the others.
func (r RatioReport) cost() bool { return r.Figure == ServerCost || r.Figure == GeneratorCost }

// costs compares what the case of costs in CPU time with the case by, on both sides of the connection, where the system tells.
func costs(title string, of, by int) []Comparison {
	var all []Comparison
	for _, f := range []Figure{ServerCost, GeneratorCost} {
		all = append(all, Comparison{Label: title + ": " + string(f), Figure: f, Of: of, By: by, Optional: true})
	}
	return all
}

// Environment is where reports come from.
type Environment struct {
	Machine  machine.Facts    `json:"machine"`
	Pinned   string           `json:"pinned"` // in words
	Version  string           `json:"version"`
	Modules  []machine.Module `json:"modules"`                  // of this program
	Broker   string           `json:"broker"`                   // in words
	BrokerBy []machine.Module `json:"broker_modules,omitempty"` // when its program is at hand
}

// Study is several reports of one environment.
type Study struct {
	Environment Environment `json:"environment"`
	Reports     []Report    `json:"reports"`
}
