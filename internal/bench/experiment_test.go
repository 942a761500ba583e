package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/bench/machine"
)

// scripted is a case whose rounds are given.
func scripted(label string, order *[]string, rounds ...Result) Case {
	n := 0
	return Case{Label: label, Run: func(context.Context, Timing) (Result, error) {
		*order = append(*order, label)
		n++
		return rounds[n-1], nil
	}}
}

func perSecond(rate, p50 float64) Result {
	return Result{Seconds: 1, Records: uint64(rate), RecordsPerSecond: rate, MBPerSecond: rate / 1e3, Lost: ptr(uint64(0)), Latency: &Summary{Count: 1, P50: p50, P99: 2 * p50}}
}

func scriptedExperiment(order *[]string) Experiment {
	return Experiment{
		Name: "x", Title: "the experiment", Loop: "closed", Settings: []Setting{{"payload", "256 B"}},
		Cases: []Case{
			scripted("felixd", order, perSecond(60, 100), perSecond(90, 300), perSecond(50, 200)),
			scripted("raw", order, perSecond(100, 50), perSecond(90, 100), perSecond(200, 400)),
		},
		Comparisons: []Comparison{
			{Label: "rate", Figure: Rate, Of: 0, By: 1, Target: 0.55},
			{Label: "latency", Figure: P50, Of: 0, By: 1, Target: 1.6, AtMost: true},
			{Label: "tail", Figure: P99, Of: 0, By: 1},
		},
	}
}

func TestCasesTakeTurnsAndRatiosAreThoseOfARound(t *testing.T) {
	var order, said []string
	r, err := scriptedExperiment(&order).Measure(t.Context(), 3, brief(), func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"felixd", "raw", "felixd", "raw", "felixd", "raw"}; !slices.Equal(order, want) {
		t.Fatalf("measured %v", order)
	}
	if said[1] != "x: round 1 of 3, raw" || len(said) != 6 {
		t.Fatalf("said %q", said)
	}
	rate, latency, tail := r.Ratios[0], r.Ratios[1], r.Ratios[2]
	if !slices.Equal(rate.Rounds, []float64{0.6, 1, 0.25}) || rate.Spread != (Spread{0.6, 0.25, 1}) || rate.Met == nil || !*rate.Met {
		t.Errorf("rate: %+v", rate)
	}
	if !slices.Equal(latency.Rounds, []float64{2, 3, 0.5}) || latency.Met == nil || *latency.Met {
		t.Errorf("latency: %+v", latency)
	}
	if tail.Met != nil {
		t.Errorf("a ratio without a target is judged: %+v", tail)
	}
	if got := r.Cases[0].Figure[Rate]; got != (Spread{60, 50, 90}) {
		t.Errorf("rate of felixd: %+v", got)
	}
}

func TestHalfAnExperimentIsNoReport(t *testing.T) {
	var order []string
	e := scriptedExperiment(&order)
	broken := errors.New("connection lost")
	e.Cases[1].Run = func(context.Context, Timing) (Result, error) { return Result{}, broken }
	r, err := e.Measure(t.Context(), 3, brief(), nil)
	if !errors.Is(err, broken) || r.Cases != nil || !strings.Contains(err.Error(), "measure x, raw, round 1") {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestRoundWithoutAnswersCannotBeCompared(t *testing.T) {
	for name, empty := range map[string]Result{"no rate": {Seconds: 1, Latency: &Summary{}}, "no latency": {Seconds: 1, RecordsPerSecond: 5}} {
		var order []string
		e := scriptedExperiment(&order)
		e.Cases[1] = scripted("raw", &order, empty)
		var short *ShortError
		if _, err := e.Measure(t.Context(), 1, brief(), nil); !errors.As(err, &short) || !strings.Contains(err.Error(), "measure for longer") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCostIsComparedWhereTheSystemTellsIt(t *testing.T) {
	var order []string
	e := scriptedExperiment(&order)
	e.Comparisons = costs("x", 0, 1)
	with := func(cpus float64, rate float64) Result {
		r := perSecond(rate, 1)
		r.ServerCPU = &cpus
		return r
	}
	e.Cases = []Case{scripted("felixd", &order, with(0.6, 100_000)), scripted("raw", &order, with(0.9, 300_000))}
	r, err := e.Measure(t.Context(), 1, brief(), nil)
	if err != nil || len(r.Ratios) != 1 || r.Ratios[0].Figure != ServerCost {
		t.Fatalf("got %+v, %v; the generator's cost is not known", r.Ratios, err)
	}
	if got := r.Ratios[0].Median; got < 1.999 || got > 2.001 {
		t.Fatalf("6 us against 3 us per record is %v times as much", got)
	}
}

func TestStretchThatOnlyFilledBuffersIsNoted(t *testing.T) {
	var order []string
	e := scriptedExperiment(&order)
	e.InFlight = 20e3 // the slowest round moved 50 kB
	r, err := e.Measure(t.Context(), 3, brief(), nil)
	if err != nil {
		t.Fatal(err)
	}
	noted := 0
	for _, c := range r.Cases[0].Rounds {
		noted += len(c.Notes)
	}
	if noted != 2 { // 60 and 50 kB are less than four times 20 kB
		t.Fatalf("%d rounds are noted, want 2", noted)
	}
}

func aStudy(t *testing.T) Study {
	t.Helper()
	var order []string
	e := scriptedExperiment(&order)
	r, err := e.Measure(t.Context(), 3, brief(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Cases[0].Rounds[1].Lost, r.Cases[0].Rounds[2].Refused, r.Cases[0].Rounds[2].FirstRefusal = ptr(uint64(7)), 3, "overloaded"
	r.Cases[1].Rounds[0].Lost, r.Cases[1].Rounds[0].Notes = nil, []string{"it rained"}
	r.Cases[1].Rounds[2].Repeated = 2
	return Study{
		Environment: Environment{
			Machine: machine.Facts{Go: "go1.26", System: "linux/amd64", CPU: "Model", CPUs: 2, GOMAXPROCS: 1}, Pinned: "no", Version: "1.2.3",
			Modules: []machine.Module{{Path: "example.org/quic", Version: "v1"}}, Broker: "127.0.0.1:5000", BrokerBy: []machine.Module{{Path: "example.org/x", Version: "v2"}},
		},
		Reports: []Report{r},
	}
}

func TestTextSaysEverythingThatAReaderMustKnow(t *testing.T) {
	s := aStudy(t)
	var b bytes.Buffer
	if err := s.Environment.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if err := s.Reports[0].WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"2 x Model, linux/amd64", "felixctl 1.2.3, go1.26, GOMAXPROCS 1, quic v1", "x v2", "pinned: no",
		"the experiment (closed loop, 3 rounds of 100ms after 20ms of warm-up)", "payload: 256 B",
		"felixd: median 60 [50..90] per second, p50 200.0 [100.0..300.0] us",
		"rate: felixd / raw = 0.60 [0.25..1.00] (target: at least 0.55, met)",
		"latency: felixd / raw = 2.00 [0.50..3.00] (target: at most 1.60, MISSED)",
		"tail: felixd / raw = 2.00 [0.50..3.00]\n",
		"note: felixd: 7 records were LOST", "note: felixd: 3 requests were refused, the first with: overloaded",
		"note: raw: whether records were lost is not known", "note: raw: it rained", "note: raw: 2 records came twice",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in\n%s", part, b.String())
		}
	}
}

func TestMarkdownHasATableOfRatiosAndOneOfEachExperiment(t *testing.T) {
	var b bytes.Buffer
	if err := aStudy(t).WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"- pinned: no\n", "| rate | 0.60 [0.25..1.00] | >= 0.55 | met |", "| latency | 2.00 [0.50..3.00] | <= 1.60 | **missed** |", "| tail | 2.00 [0.50..3.00] | - |  |",
		"#### the experiment", "| felixd | 60 [50..90] | 0.1 [0.1..0.1] | 200 [100..300] |", "| 3 | 7 | - | - |", "| 0 | unknown | - | - |", "Note: felixd: 7 records were LOST.",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in\n%s", part, b.String())
		}
	}
	columns := -1
	for line := range strings.SplitSeq(b.String(), "\n") { // each table is one
		if n := strings.Count(line, "|"); strings.HasPrefix(line, "|") {
			if columns >= 0 && n != columns {
				t.Errorf("a row has %d bars among rows of %d: %s", n, columns, line)
			}
			columns = n
		} else {
			columns = -1
		}
	}
}

func TestMarkdownShowsCostsBesideTheirExperiment(t *testing.T) {
	s := aStudy(t)
	s.Reports[0].Ratios = append(s.Reports[0].Ratios,
		RatioReport{Label: "a", Figure: ServerCost, Of: "felixd", By: "raw", Spread: Spread{1.5, 1, 2}},
		RatioReport{Label: "b", Figure: GeneratorCost, Of: "felixd", By: "raw", Spread: Spread{2.5, 2, 3}},
		RatioReport{Label: "c", Figure: ServerCost, Of: "other", By: "raw", Spread: Spread{4, 4, 4}})
	var b bytes.Buffer
	if err := s.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	want := "\nCPU per record, felixd / raw: server 1.50 [1.00..2.00], generator 2.50 [2.00..3.00].\n\nCPU per record, other / raw: server 4.00 [4.00..4.00].\n"
	if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "| a |") {
		t.Fatalf("want %q and no row of the table for it in\n%s", want, b.String())
	}
}

func TestStudyIsJSON(t *testing.T) {
	s := aStudy(t)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Study
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || !bytes.Equal(text, again) {
		t.Fatalf("%v: %s became %s", err, text, again)
	}
	for _, part := range []string{`"lost":null`, `"lost":7`, `"median":0.6`, `"met":true`, `"p99_9_us":`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is missing in %s", part, text)
		}
	}
}

func TestSpliceReplacesWhatStandsBetweenTheMarks(t *testing.T) {
	page := fmt.Sprintf("# Title\n\n%s\n\nold\n\n%s\nafter\n", MarkBegin, MarkEnd)
	want := fmt.Sprintf("# Title\n\n%s\n\nnew\n\n%s\nafter\n", MarkBegin, MarkEnd)
	got, err := Splice([]byte(page), []byte("\nnew\n\n"))
	if err != nil || string(got) != want {
		t.Fatalf("got %q, %v", got, err)
	}
	if again, err := Splice(got, []byte("new")); err != nil || !bytes.Equal(again, got) {
		t.Fatalf("doing it again changed the page: %q, %v", again, err)
	}
	var marks *MarksError
	for _, bad := range []string{"no marks", MarkBegin, MarkEnd + MarkBegin} {
		if _, err := Splice([]byte(bad), nil); !errors.As(err, &marks) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}
