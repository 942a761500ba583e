package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// few are flags of a cache measurement that says nothing about speed.
func few(args ...string) []string {
	return append([]string{"cache", "--concurrency", "4", "--keys", "4"}, args...)
}

func TestCachesOfBothKindsAreMeasuredSideBySideForEachSize(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1")
	s := study(t, c.measured(few("--in-memory", "c", "--durable", "c", "--payload", "0,64", "--op", "put", "--no-redis")...))
	if len(s.Reports) != 2 || s.Reports[0].Name != "cache-0" || s.Reports[1].Name != "cache-64" {
		t.Fatalf("%d reports", len(s.Reports))
	}
	for _, r := range s.Reports {
		var cases []string
		for _, one := range r.Cases {
			cases = append(cases, one.Label)
		}
		if got := strings.Join(cases, ","); got != "felixd in memory put,felixd log-backed put,raw echo" {
			t.Errorf("%s: cases %s", r.Name, got)
		}
	}
}

// program writes one for PATH, which then has nothing else.
func program(t *testing.T, name, text string) string {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAReportWithoutRedisSaysSo(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1")
	file := program(t, "another-server", "")
	notes := func(args ...string) string {
		s := study(t, c.measured(few(append(args, "c", "--op", "hit", "--payload", "0", "--no-raw")...)...))
		return strings.Join(s.Reports[0].Notes, "\n")
	}
	wantText(t, notes(), "there is no redis-server in PATH, so that none stands beside; name one with --redis")
	wantText(t, notes("--no-redis"), "")
	wantContains(t, c.bench(exitUsage, brief(few("c", "--redis", filepath.Join(filepath.Dir(file), "nothing"))...)...), "--redis: ")

	broken := program(t, redisProgram, "#!/bin/sh\necho it has no TLS\nexit 1\n")
	wantContains(t, notes(), "the redis-server in PATH did not start, so that none stands beside", "it ended at once: it has no TLS")
	wantContains(t, c.bench(exitOther, brief(few("c", "--redis", broken)...)...), "it ended at once: it has no TLS") // it was asked for
}
