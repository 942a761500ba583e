package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/actors/simrt"
	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// racedSeeds are the worlds of a campaign under the race detector, which makes each ten times slower and has little to find: a world is one
// goroutine. Three of them have one of each kind. The whole numbers are played without it.
func racedSeeds() uint64 {
	if effort.Full() {
		return 60
	}
	return 3
}

// seeds is how many worlds a campaign plays.
func seeds() uint64 {
	if effort.Raced {
		return racedSeeds()
	}
	return uint64(effort.Size("sim_seeds"))
}

// twice is how many of n worlds are played a second time: at a landing a third, which is as many of each kind.
func twice(n uint64) uint64 {
	if effort.Full() {
		return n
	}
	return (n + 2) / 3
}

// The same seed, the same run, and every checker silent in all of them.
func TestEveryWorldKeepsItsPromisesAndPlaysTheSameTwice(t *testing.T) {
	n, workers := seeds(), max(2, runtime.GOMAXPROCS(0))
	first, second := Campaign(1, n, workers), Campaign(1, twice(n), workers)
	hashes := map[uint64]bool{}
	var marks Marks
	answered := 0
	for i, r := range first {
		if r.Err != nil {
			t.Errorf("%v\n\tsee it:  go run ./sim -seed %d -trace\n\tkeep it: go run ./sim -seed %d -keep \"why\"", r.Err, r.Seed, r.Seed)
		}
		if i < len(second) && (second[i].Hash != r.Hash || second[i].Steps != r.Steps) {
			t.Errorf("seed %d: hash %016x after %d steps, and %016x after %d the second time", r.Seed, r.Hash, r.Steps, second[i].Hash, second[i].Steps)
		}
		hashes[r.Hash] = true
		marks.Add(&r.Marks)
		answered += r.Answered
	}
	if different := uint64(len(hashes)); different*100 < n*99 {
		t.Errorf("%d seeds gave only %d different hashes", n, different)
	}
	if n >= marksFrom {
		for _, m := range marks.Below(marksLeast) {
			t.Errorf("reached too seldom to prove anything: %s", m)
		}
	}
	t.Logf("%d seeds, %d answers\n%s", n, answered, marks.String())
}

const (
	marksFrom  = 300 // seeds from which on every mark must have been reached
	marksLeast = 30  // that often
)

func TestSwappingTwoPublishesChangesTheHash(t *testing.T) {
	tried, want := 0, 5
	if effort.Raced {
		want = 1
	}
	for seed := uint64(1); seed <= 20 && tried < want; seed++ {
		plan := NewPlan(seed)
		as := Run(plan, nil)
		plan.Swap = true
		swapped := Run(plan, nil)
		if as.Err != nil || swapped.Err != nil {
			t.Fatalf("%v, %v", as.Err, swapped.Err)
		}
		if !swapped.Swapped {
			continue
		}
		if as.Hash == swapped.Hash {
			t.Errorf("seed %d: two publishes changed places, and the hash is the same", seed)
		}
		tried++
	}
	if tried < want {
		t.Fatalf("only %d of 20 seeds sent two publishes to exchange", tried)
	}
}

func TestKeptSeedsStayGreen(t *testing.T) {
	list, err := kept("testdata/seeds")
	if err != nil || len(list) == 0 {
		t.Fatalf("%d kept seeds, %v", len(list), err)
	}
	for _, k := range list {
		if r := Run(NewPlan(k.Seed), nil); r.Err != nil {
			t.Errorf("%v\n\tkept because: %s", r.Err, k.Note)
		}
	}
}

func TestATraceTellsTheStoryAndEndsWithTheHash(t *testing.T) {
	var one, two, errs bytes.Buffer
	if code := command([]string{"-seed", "3", "-trace"}, &one, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	command([]string{"-seed", "3", "-trace"}, &two, &errs)
	if one.String() != two.String() {
		t.Error("two traces of one seed differ")
	}
	text := one.String()
	for _, want := range []string{
		"turn    n1/shards", "*shardactor.Publish", "pump    n1/sessions/1#", "is answered publish_ok", "bytes arrive", "chaos", "event actor_stopped", "seed 3: hash ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the trace does not say %q", want)
		}
	}
	if lines := strings.Count(text, "\n"); lines < 500 {
		t.Errorf("a trace of %d lines", lines)
	}
}

func TestTheTraceDoesNotChangeTheRun(t *testing.T) {
	quiet := Run(NewPlan(5), nil)
	told := Run(NewPlan(5), func(simrt.Line) {})
	if quiet.Hash != told.Hash {
		t.Error("watching changes what happens")
	}
}

func TestTheCommandRefusesWhatMakesNoSense(t *testing.T) {
	for _, args := range [][]string{{"-seeds", "5"}, {"-seeds", "5..4"}, {"-seeds", "a..b"}, {"-seeds", "1..b"}, {"-seeds", "1..2", "-workers", "0"}, {"-nonsense"}} {
		var out, errs bytes.Buffer
		if code := command(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit %d, %q", args, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := command([]string{"-seeds", "1..2"}, &out, &errs); code != 0 || !strings.Contains(out.String(), "2 seeds, 0 failed") {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}

func TestAKeptSeedIsReadAsItWasWritten(t *testing.T) {
	folder := t.TempDir()
	var out, errs bytes.Buffer
	if code := command([]string{"-seed", "2", "-keep", "because", "-into", folder}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	list, err := kept(folder)
	if err != nil || len(list) != 1 || list[0] != (Regression{2, "because"}) {
		t.Errorf("%v, %v", list, err)
	}
	if code := command([]string{"-seed", "2", "-keep", "because", "-into", folder + "/missing"}, &out, &errs); code != 1 {
		t.Errorf("exit %d without a folder", code)
	}
	if _, err := keep(folder, Regression{9, " "}); err != nil {
		t.Fatal(err)
	}
	if _, err := kept(folder); err == nil {
		t.Error("a seed without a note was read")
	}
}
