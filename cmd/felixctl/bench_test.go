package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/internal/bench"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/rawquic"
)

// benchPeerVariable makes TestRawPeerOfBenchTests the raw peer of another test.
const benchPeerVariable = "FELIX_TEST_RAW_PEER"

func TestRawPeerOfBenchTests(t *testing.T) {
	if os.Getenv(benchPeerVariable) == "" {
		return // it is nobody's peer
	}
	if err := rawquic.Run(context.Background(), os.Stdin, os.Stdout, rawquic.Options{}); err != nil {
		t.Fatal(err)
	}
}

func testPeer() (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestRawPeerOfBenchTests$")
	cmd.Env = append(os.Environ(), benchPeerVariable+"=1")
	return cmd, nil
}

// bench runs a bench command that starts this test program as its raw peer, and checks the exit code.
func (c *cli) bench(want int, args ...string) string {
	c.t.Helper()
	out, err := c.tryBench(args...)
	if code := exitCode(err); code != want {
		c.t.Fatalf("felixctl bench %s: exit code %d, want %d: %v; standard error: %s", strings.Join(args, " "), code, want, err, c.stderr)
	}
	if err != nil {
		return err.Error()
	}
	return out
}

func (c *cli) tryBench(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	a := &app{sys: c.sys}
	root := &cobra.Command{Use: "felixctl", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(c.sys.stdout)
	root.SetErr(c.sys.stderr)
	a.flags.register(root.PersistentFlags())
	root.AddCommand((&benchCommands{app: a, peer: testPeer}).command())
	root.SetArgs(append([]string{"bench"}, args...))
	before := len(c.stdout.String())
	err := root.ExecuteContext(ctx)
	return c.stdout.String()[before:], err
}

// brief are flags of a measurement that says nothing about speed.
func brief(args ...string) []string {
	return append(args, "--rounds", "1", "--duration", "100ms", "--warm-up", "10ms")
}

// measured runs a measurement for as long as this machine needs to get anything done.
func (c *cli) measured(args ...string) string {
	c.t.Helper()
	for _, duration := range []string{"100ms", "300ms", "1s", "2s", "4s", "8s"} {
		out, err := c.tryBench(append(args, "--rounds", "1", "--warm-up", "10ms", "--duration", duration)...)
		var short *bench.ShortError
		if err != nil && !errors.As(err, &short) {
			c.t.Fatalf("felixctl bench %s: %v; standard error: %s", strings.Join(args, " "), err, c.stderr)
		}
		if err == nil && !strings.Contains(out, `"records":0`) {
			return out
		}
	}
	c.t.Fatalf("felixctl bench %s: nothing was done within 8 s", strings.Join(args, " "))
	return ""
}

func study(t *testing.T, text string) bench.Study {
	t.Helper()
	var s bench.Study
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return s
}

func TestEveryMeasurementReportsBothSides(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1")
	seen := map[string]bool{} // kinds of measurements and of loops
	for _, m := range []struct {
		args  []string
		cases []string
		loop  string
	}{
		{[]string{"pub", "wide", "--streams", "4", "--connections", "2", "--batch", "8", "--in-flight", "8"}, []string{"felixd", "raw sink"}, "closed"},
		{[]string{"pub", "orders", "--ack", "none"}, []string{"felixd", "raw sink"}, "closed"},
		{[]string{"pub", "orders", "--encoding", "json", "--batch", "8"}, []string{"felixd", "raw sink"}, "closed"},
		{[]string{"sub", "orders"}, []string{"felixd", "raw relay"}, "closed"},
		{[]string{"fanout", "orders", "--fanout", "3"}, []string{"felixd", "raw relay"}, "closed"},
		{[]string{"relay", "orders"}, []string{"felixd", "raw relay"}, "closed"},
		{[]string{"relay", "orders", "--batch", "1", "--ack", "record", "--rate", "500"}, []string{"felixd", "raw relay"}, "open"},
		{[]string{"latency", "wide", "--rate", "500"}, []string{"felixd", "raw echo"}, "open"},
		{[]string{"cache", "c", "--payload", "64", "--concurrency", "4", "--keys", "4", "--no-redis"}, []string{"felixd put", "felixd hit", "felixd miss", "raw echo"}, "closed"},
		{[]string{"cache", "c", "--payload", "0", "--op", "hit", "--concurrency", "4", "--keys", "4", "--no-raw", "--no-redis"}, []string{"felixd hit"}, "closed"},
		{[]string{"pub", "orders", "--durable", "--in-flight", "8", "--disk", t.TempDir()}, []string{"felixd", "bare write and sync", "raw echo"}, "closed"},
		{[]string{"latency", "orders", "--durable", "--disk", t.TempDir()}, []string{"felixd", "bare write and sync", "raw echo", "raw echo, then bare write and sync"}, "closed"},
	} {
		kind := m.args[0] + " " + m.loop
		if effort.Raced && seen[kind] {
			continue // its code runs the same with other numbers
		}
		seen[kind] = true
		s := study(t, c.measured(m.args...))
		if len(s.Reports) != 1 {
			t.Fatalf("%v: %d reports", m.args, len(s.Reports))
		}
		r := s.Reports[0]
		var cases []string
		for _, one := range r.Cases {
			cases = append(cases, one.Label)
		}
		if strings.Join(cases, ",") != strings.Join(m.cases, ",") || r.Loop != m.loop || len(r.Settings) == 0 {
			t.Errorf("%v: cases %v in a %s loop, settings %v", m.args, cases, r.Loop, r.Settings)
		}
		if (len(r.Ratios) > 0) != (len(m.cases) > 1) {
			t.Errorf("%v: ratios %+v", m.args, r.Ratios)
		}
		if e := s.Environment; e.Machine.GOMAXPROCS == 0 || e.Machine.Go == "" || e.Pinned == "" || e.Broker == "" || e.Version == "" {
			t.Errorf("%v: environment %+v", m.args, e)
		}
	}
}

func TestReportOnATerminalIsText(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1").onTerminal()
	out := c.measured("pub", "orders", "--batch", "4")
	wantContains(t, out, "publish, against a raw sink (closed loop, 1 rounds", "raw sink", "felixd / raw sink = ", "GOMAXPROCS", "pinned: no")
	wantContains(t, c.stderr.String(), "pub: round 1 of 1, raw sink")
}

func TestWhatNobodyCanMeasureIsRefusedBeforeAnythingStarts(t *testing.T) {
	c := newCLI(t) // there is no broker, and none is asked
	for _, m := range []struct {
		args []string
		want string
	}{
		{[]string{"pub", "orders", "--payload", "-1"}, "--payload is -1; use 0 to"},
		{[]string{"pub", "orders", "--batch", "0"}, "--batch is 0; use 1 to"},
		{[]string{"pub", "orders", "--payload", "1000000", "--batch", "100"}, "--payload times --batch is 100000000 bytes"},
		{[]string{"pub", "orders", "--in-flight", "257"}, "--in-flight is 257; use 1 to 256"},
		{[]string{"pub", "orders", "--connections", "2"}, "--connections is 2; use 1 to 1"},
		{[]string{"pub", "orders", "--ack", "maybe"}, `--ack is "maybe"; use none, batch or record`},
		{[]string{"pub", "orders", "--ack", "record"}, "--ack record is for batches of one"},
		{[]string{"pub", "orders", "--encoding", "xml"}, `--encoding is "xml"; use binary or json`},
		{[]string{"pub", "orders", "--generator", "magic"}, `--generator is "magic"; use client or wire`},
		{[]string{"pub", "orders", "--generator", "client", "--encoding", "json"}, "--encoding json needs --generator wire"},
		{[]string{"pub", "orders", "--raw", "--no-raw"}, "--raw and --no-raw are given"},
		{[]string{"pub", "orders", "--rounds", "0"}, "--rounds is 0; use 1 to"},
		{[]string{"pub", "orders", "--duration", "1ms"}, "--duration is 1ms; use 50ms to 1h"},
		{[]string{"pub", "orders", "--warm-up", "-1s"}, "--warm-up is -1s; use 0 to 1h"},
		{[]string{"fanout", "orders", "--fanout", "0"}, "--fanout is 0; use 1 to"},
		{[]string{"relay", "orders", "--payload", "8"}, "--payload is 8; use at least 16"},
		{[]string{"relay", "orders", "--rate", "-5"}, "--rate is -5"},
		{[]string{"latency", "orders", "--rate", "0"}, "--rate is 0; use 1 to"},
		{[]string{"latency", "orders", "--streams", "2", "--connections", "3"}, "--connections is 3; use 1 to 2"},
		{[]string{"pub", "orders", "--durable", "--batch", "2"}, "--batch says nothing with --durable"},
		{[]string{"latency", "orders", "--durable", "--rate", "7"}, "--rate says nothing with --durable"},
		{[]string{"pub", "orders", "--disk", "x"}, "--disk is for --durable"},
		{[]string{"pub", "orders", "--durable", "--disk", "no such folder"}, "--disk: no such folder is no folder here"},
		{[]string{"cache", "c", "--op", "steal"}, `--op is "steal"; use all, put, hit or miss`},
		{[]string{"cache", "c", "--concurrency", "0"}, "--concurrency is 0; use 1 to"},
		{[]string{"cache", "c", "--keys", "0"}, "--keys is 0; use 1 to"},
		{[]string{"cache"}, "no cache is named: give CACHE, --in-memory or --durable"},
		{[]string{"cache", "c", "--payload", "0,-1"}, "--payload is -1; use 0 to"},
		{[]string{"cache", "c", "--disk", "x"}, "--disk is for --durable"},
		{[]string{"cache", "c", "--no-redis", "--redis-connections", "1"}, "--no-redis is given with --redis"},
		{[]string{"cache", "c", "--redis-connections", "-1"}, "--redis-connections is -1; use 0 to"},
		{[]string{"suite", "--no-redis", "--redis", "x"}, "--no-redis is given with --redis"},
		{[]string{"pub", "orders"}, "no felix-data/dev.json here"},
		{[]string{"suite", "--only", "publish,nothing"}, `there is no "nothing" to measure`},
		{[]string{"suite", "--no-raw"}, "--no-raw leaves nothing to compare with"},
		{[]string{"suite", "--into", "missing.md"}, "--into: open missing.md"},
	} {
		if got := c.bench(exitUsage, m.args...); !strings.Contains(got, m.want) {
			t.Errorf("%v: got %q, want %q", m.args, got, m.want)
		}
	}
}

func TestStreamThatIsTooNarrowOrMissingIsAnError(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1")
	wantContains(t, c.bench(exitUsage, brief("pub", "orders", "--streams", "2")...), "--streams: stream default/orders has 1 shards", "at least 2 shards")
	wantContains(t, c.bench(exitNotFound, brief("pub", "missing", "--streams", "2")...), "missing")
	wantContains(t, c.bench(exitNotFound, brief("cache", "missing", "--no-redis")...), "missing")
}

func TestMetricsThatAreNamedHaveToBeThere(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1").onTerminal()
	c.bench(exitUnreachable, brief("pub", "orders", "--metrics-url", "http://127.0.0.1:1/metrics")...)
	out := c.measured("pub", "orders", "--ack", "none") // the context file names some too, in vain
	wantContains(t, c.stderr.String(), "read metrics of the broker at http://127.0.0.1:1/metrics")
	wantContains(t, out, "felixd: whether records were lost is not known")
}

func TestPageWithoutMarksIsRefusedBeforeAnythingStarts(t *testing.T) {
	c := newCLI(t)
	page := filepath.Join(c.sys.workDir, "page.md")
	if err := os.WriteFile(page, []byte("# Page\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantContains(t, c.bench(exitUsage, "suite", "--into", page), "it has no beginning mark")
}

func TestSuiteStartsItsOwnFelixdAndWritesTheTablesIntoThePage(t *testing.T) {
	patientDisk(t)
	felixd, err := buildFelixd()
	if err != nil {
		t.Fatal(err)
	}
	c := newCLI(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	page := filepath.Join(c.sys.workDir, "page.md")
	if err := os.WriteFile(page, []byte("# Page\n"+bench.MarkBegin+"\nold\n"+bench.MarkEnd+"\nend\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct{ only, row string }{
		{"publish", "| fire-and-forget, 256 B x 64, one stream |"}, {"durable-lone", "| a durable record, one producer, 256 B, p50 |"},
		{"delivery", "| delivery to one subscriber, 256 B x 64, rate |"}, {"encoding-256", "| binary against JSON, acknowledged, 256 B x 64 |"},
		{"cache-0", "| cache, 0 B values, 32 callers, in memory hit p50 |"}, {"durable-periodic", "| durable, synced every 250 ms, 4 KiB x 64 |"}, {"latency", "| acknowledgement of single 256 B records at 5000 a second, p50 |"},
	}
	if effort.Raced {
		rows = rows[:2] // each is measured above, too; here it is the tables
	}
	var only []string
	for _, r := range rows {
		only = append(only, r.only)
	}
	c.measured("suite", "--felixd", felixd, "--into", page, "--no-redis", "--only", strings.Join(only, ","))
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	wantContains(t, string(text), "# Page", "end\n", "Records per sync, felixd: 1.0", "its own, default settings", "quic-go v")
	for _, r := range rows {
		wantContains(t, string(text), r.row)
	}
	if !effort.Raced {
		wantContains(t, string(text), "| cache, 0 B values, 32 callers, log-backed put p50 |", "Records per sync, felixd log-backed put: ")
	}
	if bytes.Contains(text, []byte("old")) {
		t.Fatal("the old tables are still there")
	}
	s := study(t, c.measured("suite", "--felixd", felixd, "--only", "publish"))
	felixdSide := s.Reports[0].Cases[0].Rounds[0]
	if felixdSide.Lost == nil || felixdSide.ServerCPU == nil || felixdSide.ServerProcs == nil {
		t.Fatalf("the metrics of its own felixd were not read: %+v", felixdSide)
	}
	left, err := filepath.Glob(filepath.Join(temporary, "felixctl-bench-*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

func TestSuiteSaysThatAFelixdDidNotStart(t *testing.T) {
	c := newCLI(t)
	no := filepath.Join(c.sys.workDir, "felixd")
	if err := os.WriteFile(no, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.bench(exitOther, "suite", "--felixd", no, "--only", "publish")
}

func TestSuiteUsesTheBrokerThatIsNamed(t *testing.T) {
	b := newCLI(t)
	for _, c := range []struct {
		flags globalFlags
		env   map[string]string
		want  bool
	}{
		{globalFlags{}, nil, false}, {globalFlags{addr: "h:1"}, nil, true}, {globalFlags{contextFile: "f"}, nil, true},
		{globalFlags{}, map[string]string{envAddr: "h:1"}, true}, {globalFlags{}, map[string]string{envContextFile: "f"}, true},
	} {
		sys := b.sys
		sys.getenv = func(name string) string { return c.env[name] }
		if got := (&benchCommands{app: &app{sys: sys, flags: c.flags}}).namesBroker(); got != c.want {
			t.Errorf("%+v, %v: %v", c.flags, c.env, got)
		}
	}
}

func TestDurableRowsAreForAFelixdOfTheSuite(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "https://127.0.0.1:1")
	wantContains(t, c.bench(exitUsage, brief("suite", "--only", "durable-64", "--context-file", filepath.Join(c.sys.workDir, filepath.FromSlash(devFile)))...), "durable streams are measured on a felixd that this command starts")
}

func TestRowsOfTheSuiteHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range suiteRows() {
		if seen[r.name] {
			t.Errorf("two rows are called %s", r.name)
		}
		seen[r.name] = true
	}
	chosen, err := chooseRows([]string{"fanout", "publish"})
	if err != nil || len(chosen) != 2 || chosen[0].name != "publish" {
		t.Fatalf("chose %v, %v: want publish and fanout, in the order of the suite", chosen, err)
	}
}
