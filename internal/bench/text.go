package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/felixd/felixd/internal/bench/machine"
)

// WriteText writes a report for people.
func (r Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s (%s loop, %d rounds of %s after %s of warm-up)\n", r.Title, r.Loop, r.Rounds, seconds(r.Duration), seconds(r.WarmUp))
	for _, s := range r.Settings {
		fmt.Fprintf(w, "  %s: %s\n", s.Name, s.Value)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nround\tcase\trecords/s\tMB/s\tp50 us\tp90\tp99\tp99.9\tmax\trefused\tlost\tgen CPU\tserver CPU\t")
	for i := range r.Rounds {
		for _, c := range r.Cases {
			fmt.Fprintf(table, "%d\t%s\t%s\t\n", i+1, c.Label, c.Rounds[i].cells())
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, c := range r.Cases {
		fmt.Fprintf(w, "%s: %s\n", c.Label, c.summary())
	}
	for _, ratio := range r.Ratios {
		fmt.Fprintln(w, ratio.text())
	}
	return r.writeNotes(w)
}

// cells are those of one round.
func (r Result) cells() string {
	latency := "-\t-\t-\t-\t-"
	if l := r.Latency; l != nil {
		latency = strings.Join([]string{number(l.P50, 1), number(l.P90, 1), number(l.P99, 1), number(l.P999, 1), number(l.Max, 1)}, "\t")
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s", number(r.RecordsPerSecond, 0), number(r.MBPerSecond, 1), latency,
		r.Refused, orUnknown(r.Lost, "%d"), orUnknown(r.GeneratorCPU, "%.2f"), orUnknown(r.ServerCPU, "%.2f"))
}

func orUnknown[T any](v *T, format string) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf(format, *v)
}

// summary is the medians of a case.
func (c CaseReport) summary() string {
	parts := []string{"median " + c.Figure[Rate].text(0) + " per second"}
	if p, ok := c.Figure[P50]; ok {
		parts = append(parts, "p50 "+p.text(1)+" us")
	}
	if p, ok := c.Figure[P99]; ok {
		parts = append(parts, "p99 "+p.text(1)+" us")
	}
	for _, f := range []Figure{ServerCost, GeneratorCost, PerSync} {
		if p, ok := c.Figure[f]; ok {
			parts = append(parts, string(f)+" "+p.text(2))
		}
	}
	return strings.Join(parts, ", ")
}

func (r RatioReport) text() string {
	return fmt.Sprintf("%s: %s / %s = %s%s", r.Label, r.Of, r.By, r.Spread.text(2), r.verdict())
}

// verdict compares with the target.
func (r RatioReport) verdict() string {
	if r.Met == nil {
		return ""
	}
	relation := "at least"
	if r.AtMost {
		relation = "at most"
	}
	word := "met"
	if !*r.Met {
		word = "MISSED"
	}
	return fmt.Sprintf(" (target: %s %.2f, %s)", relation, r.Target, word)
}

// writeNotes writes what a reader must not miss: losses, refusals, and remarks.
func (r Report) writeNotes(w io.Writer) error {
	for _, n := range r.AllNotes() {
		if _, err := fmt.Fprintf(w, "note: %s\n", n); err != nil {
			return err
		}
	}
	return nil
}

// AllNotes are the remarks of the report and of its rounds, each once.
func (r Report) AllNotes() []string {
	notes := append([]string(nil), r.Notes...)
	add := func(n string) {
		for _, have := range notes {
			if have == n {
				return
			}
		}
		notes = append(notes, n)
	}
	for _, c := range r.Cases {
		var lost, refused, repeated uint64
		first, unknown := "", false
		for _, round := range c.Rounds {
			refused += round.Refused
			repeated += round.Repeated
			if unknown = unknown || round.Lost == nil; round.Lost != nil {
				lost += *round.Lost
			}
			if first == "" {
				first = round.FirstRefusal
			}
			for _, n := range round.Notes {
				add(c.Label + ": " + n)
			}
		}
		if lost > 0 {
			add(fmt.Sprintf("%s: %d records were LOST", c.Label, lost))
		}
		if unknown {
			add(c.Label + ": whether records were lost is not known: no metrics of the broker were read (--metrics-url)")
		}
		if repeated > 0 {
			add(fmt.Sprintf("%s: %d records came twice or out of order", c.Label, repeated))
		}
		if refused > 0 {
			add(fmt.Sprintf("%s: %d requests were refused, the first with: %s", c.Label, refused, first))
		}
	}
	return notes
}

func seconds(s float64) string { return time.Duration(s * float64(time.Second)).String() }

// WriteText writes where figures come from.
func (e Environment) WriteText(w io.Writer) error {
	for _, line := range e.lines() {
		if _, err := fmt.Fprintf(w, "%s: %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}

// lines are the facts in the order in which they are read.
func (e Environment) lines() [][2]string {
	cpu := e.Machine.CPU
	if cpu == "" {
		cpu = "unknown CPU"
	}
	lines := [][2]string{
		{"machine", fmt.Sprintf("%d x %s, %s", e.Machine.CPUs, cpu, e.Machine.System)},
		{"generator", fmt.Sprintf("felixctl %s, %s, GOMAXPROCS %d, %s", e.Version, e.Machine.Go, e.Machine.GOMAXPROCS, modulesText(e.Modules))},
		{"broker", e.Broker},
	}
	if len(e.BrokerBy) > 0 {
		lines = append(lines, [2]string{"broker modules", modulesText(e.BrokerBy)})
	}
	return append(lines, [2]string{"pinned", e.Pinned})
}

func modulesText(all []machine.Module) string {
	parts := make([]string, len(all))
	for i, m := range all {
		parts[i] = m.Path[strings.Index(m.Path, "/")+1:] + " " + m.Version
	}
	return strings.Join(parts, ", ")
}
