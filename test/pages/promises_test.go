package pages

import (
	"regexp"
	"strings"
	"testing"
)

// measured are figures as `felixctl bench` writes them: quantiles, and a median with the least and the greatest.
var measured = regexp.MustCompile(`\bp(50|9\d(\.\d+)?)\b|\d \[[\d .]*\.\.[\d .]*\]`)

// What is measured is out of date sooner or later, and then on one page only.
//
// mission 351
func TestMeasuredFiguresAreOnOnePage(t *testing.T) {
	all := pages(t)
	if !measured.MatchString(all["benchmarks.md"]) {
		t.Error("benchmarks.md has no figures")
	}
	for name, text := range all {
		if name == "benchmarks.md" {
			continue
		}
		for _, line := range strings.Split(text, "\n") {
			if found := measured.FindString(line); found != "" {
				t.Errorf("%s has a measured figure (%s): %s", name, found, line)
			}
		}
	}
	for line, want := range map[string]bool{
		"p50 in us": true, "at p99.9": true, "| 361 [361..573] |": true, "1.60 [1.10..2.05]": true, "up to 256 KiB": false, "p2p 5000": false, "offsets [0..3]": false,
	} {
		if measured.MatchString(line) != want {
			t.Errorf("%q is taken for a figure: %v", line, !want)
		}
	}
}

// section is what a page has below a heading, up to the next one of its kind.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	kind, _, _ := strings.Cut(heading, " ")
	_, text, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n"+kind+" ")
	return strings.Join(strings.Fields(text), " ")
}

// mission 372
func TestTheGuaranteesDenyExactlyOnceAndSayWhatToDo(t *testing.T) {
	all := pages(t)
	for name, want := range map[string][]string{
		"guarantees.md": {"Nothing is delivered exactly once", "drop", "offset"},
		"queues.md":     {"Not exactly once", "Do the work under a key, such as shard and offset"},
	} {
		text := strings.Join(strings.Fields(all[name]), " ")
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not say %q", name, part)
			}
		}
	}
	for name, text := range all {
		for _, found := range regexp.MustCompile(`(?i)[^.|]*exactly[ -]once[^.|]*`).FindAllString(text, -1) {
			if !regexp.MustCompile(`(?i)\b(not|nothing|no|never)\b`).MatchString(found) {
				t.Errorf("%s promises it: %s", name, found)
			}
		}
	}
}

// mission 215
func TestTheGuideSaysThatExecutorsBeyondBusyShardsOnlyContend(t *testing.T) {
	text := section(t, pages(t)["performance-tuning.md"], "## CPU")
	for _, part := range []string{
		"executors beyond the number of busy shards only add contention", "with one busy stream of one shard use 1 or 2", "`FELIX_BROKER_PUB_WORKERS_PER_CONN`, 4;",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q", part)
		}
	}
}
