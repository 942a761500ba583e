package pages

import (
	"regexp"
	"strings"
	"testing"
)

// linked are the pages that a page links to.
func linked(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		out[m[1]] = true
	}
	return out
}

// That links lead somewhere is TestEveryLinkBetweenPagesLeadsSomewhere.
//
// mission 400
func TestTheIndexLeadsToEveryPage(t *testing.T) {
	all := pages(t)
	index := linked(all["index.md"])
	for name := range all {
		if name != "index.md" && name != "README.md" && !index[name] {
			t.Errorf("index.md does not lead to %s", name)
		}
	}
	for _, name := range []string{"benchmarks.md", "kafka-compatibility.md", "graceful-shutdown.md", "durable-storage.md", "protocol.md",
		"projections.md"} {
		if all[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if !linked(all["README.md"])["docs/index.md"] {
		t.Error("the README does not lead to the index")
	}
}

// mission 384
func TestTheSecurityPageSaysWhatIsProtectedAndWhatIsNot(t *testing.T) {
	page := pages(t)["security.md"]
	for heading, parts := range map[string][]string{
		"## What is encrypted": {"TLS 1.3 on every listener", "plain HTTP"},
		"## Who is who":        {"Ed25519", "A tenant is a wall"},
		"## Who may do what": {
			"`stream.publish`", "`stream.subscribe`", "`cache.read`", "`cache.write`", "`group.consume`", "`group.manage`", "before it looks whether what is asked for exists",
		},
		"## What lies on the disk": {"They are not encrypted"},
		"## What is not there": {
			"No audit log", "No encryption at rest and none from end to end", "No revocation", "No client certificates",
		},
	} {
		text := section(t, page, heading)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not say %q", heading, part)
			}
		}
	}
}

// mission 399
func TestEachCapabilityHasWhatItIsForAndWhatNot(t *testing.T) {
	page := pages(t)["what-felixd-is-for.md"]
	if !strings.Contains(page, "\n| capability | for | not for |\n") {
		t.Fatal("there is no table")
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]*) \| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(page, -1) {
		rows[m[1]] = true
		if strings.TrimSpace(m[2]) == "" || strings.TrimSpace(m[3]) == "" {
			t.Errorf("%s: for %q, not for %q", m[1], m[2], m[3])
		}
	}
	for _, name := range []string{
		"ephemeral streams", "durable streams", "subscribing", "work queues", "caches in a log", "caches in memory", "counters", "commits",
		"conditional and idempotent publishes", "one connection with TLS", "Python and Go clients", "`felixd dev`",
	} {
		if !rows[name] {
			t.Errorf("%s has no row", name)
		}
	}
}

// What each measurement of a cache was beside an echo without felixd is on record, and how to take it again.
//
// mission 241, mission 242, mission 243
func TestTheBenchmarksHaveEachLatencyOfACacheBesideAnEcho(t *testing.T) {
	page := pages(t)["benchmarks.md"]
	for _, bytes := range []string{"0", "256", "4096"} {
		_, table, ok := strings.Cut(page, "\n#### cache, "+bytes+" B values, 32 callers\n")
		table, _, _ = strings.Cut(table, "\n#### ")
		if !ok || !strings.Contains(table, "| p50 us |") || !strings.Contains(table, "concurrency 32;") {
			t.Errorf("there is no table for %s B", bytes)
		}
		for _, row := range []string{"felixd put", "felixd hit", "felixd miss", "raw echo"} {
			if !strings.Contains(table, "\n| "+row+" | ") {
				t.Errorf("%s B: there is no row %s", bytes, row)
			}
		}
	}
}
