package main

import (
	"bytes"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/effort"
)

// durableSeeds is how many durable worlds a campaign plays.
func durableSeeds() uint64 {
	if effort.Raced {
		return racedSeeds()
	}
	return uint64(effort.Size("durable_sim_seeds"))
}

// firstSeed is where the search for a defect begins: at the world that found it when that was written down, or one soon after it where the product
// has changed since; in full at the first world.
func firstSeed(first, found uint64) uint64 {
	if effort.Full() {
		return first
	}
	return found
}

const (
	durableMarksFrom = 300 // seeds from which on every mark must have been reached
	durableMarksMin  = 5   // that often
)

// Whatever becomes of the node, its disk and its power: what was acknowledged, delivered or read stays, each record is there once, and
// every subscription goes on where it was.
func TestEveryDurableWorldKeepsWhatItAcknowledged(t *testing.T) {
	n, workers := durableSeeds(), max(2, runtime.GOMAXPROCS(0))
	first, second := DurableCampaign(1, n, workers, nil), DurableCampaign(1, twice(n), workers, nil)
	hashes := map[uint64]bool{}
	var marks DurableMarks
	answered := 0
	for i, r := range first {
		if r.Err != nil {
			t.Errorf("%v\n\tsee it:  go run ./sim -durable -seed %d -trace\n\tkeep it: go run ./sim -durable -seed %d -keep \"why\"", r.Err, r.Seed, r.Seed)
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
	if n >= durableMarksFrom {
		for _, m := range marks.Below(durableMarksMin) {
			t.Errorf("reached too seldom to prove anything: %s", m)
		}
	}
	t.Logf("%d seeds, %d answers\n%s", n, answered, marks.String())
}

// A checker that finds nothing in a product that is broken on purpose proves nothing in one that is not. A segment without its last records
// looks whole, so there what the product finds by itself does not count; a file that is missing it may find when it opens the log.
func TestTheCheckersFindADurableNodeThatForgetsToSync(t *testing.T) {
	for _, c := range []struct {
		name   string
		defect Defect
		itself bool   // the product may find it by itself
		seed   uint64 // that found it
	}{{"syncs of segments", AckBeforeSync, false, 3}, {"syncs of directories", DirSyncSkipped, true, 1}} {
		t.Run(c.name, func(t *testing.T) {
			const together, most = 2, 100
			for from := firstSeed(1, c.seed); from <= most; from += together {
				for _, r := range DurableCampaign(from, from+together-1, together, func(p *DurablePlan) { p.Defect = c.defect }) {
					if r.Err != nil && (c.itself || !strings.Contains(r.Err.Error(), "damaged")) {
						t.Logf("found by seed %d: %.300v", r.Seed, r.Err)
						return
					}
				}
			}
			t.Fatalf("%d worlds whose node forgets its %s, and no checker has noticed", most, c.name)
		})
	}
}

// The same of caches: each of these is a mistake that it would be easy to make.
func TestTheCheckersFindACacheThatIsBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		defect Defect
		large  bool   // only in worlds whose logs are compacted
		seed   uint64 // that found it
	}{
		{"syncs of its logs are forgotten", CacheSyncSkipped, false, 10}, {"puts are answered before they are durable", AnsweredBeforeDurable, false, 10},
		{"puts are seen before they are durable", SeenBeforeDurable, false, 7}, {"the end of a value removes any version", ExpiresAnyVersion, false, 7},
		{"compactions copy what was replaced", CopiesStale, true, 61}, {"conditions are not looked at", ConditionIgnored, false, 7},
		{"counters are added to twice", AddsTwice, false, 7}, {"watches that resume skip a change", WatchSkips, false, 13},
	} {
		t.Run(c.name, func(t *testing.T) {
			most := uint64(400)
			for seed := firstSeed(1, c.seed); seed <= most; seed += cacheWorlds {
				plan := NewDurablePlan(seed)
				if plan.Defect = c.defect; plan.weak() || plan.Cache.Large != c.large {
					continue
				}
				if r := RunDurable(plan, nil); r.Err != nil && !strings.Contains(r.Err.Error(), "damaged") {
					t.Logf("found by seed %d: %.300v", r.Seed, r.Err)
					return
				}
			}
			t.Fatalf("the worlds up to %d have such caches, and no checker has noticed", most)
		})
	}
}

func TestKeptDurableSeedsStayGreen(t *testing.T) {
	list, err := kept("testdata/durable")
	if err != nil || len(list) == 0 {
		t.Fatalf("%d kept seeds, %v", len(list), err)
	}
	for _, k := range list {
		if r := RunDurable(NewDurablePlan(k.Seed), nil); r.Err != nil {
			t.Errorf("%v\n\tkept because: %s", r.Err, k.Note)
		}
	}
}

func TestADurableTraceTellsTheStoryAndChangesNothing(t *testing.T) {
	var told, errs bytes.Buffer
	if code := command([]string{"-durable", "-seed", "3", "-trace"}, &told, &errs); code != 0 {
		t.Fatalf("exit %d: %s%s", code, errs.String(), told.String())
	}
	for _, want := range []string{"turn    n1/shards", "/disk write", "/disk sync", "shardactor.diskNews", "chaos", "is answered", "durable seed 3: hash "} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("the trace does not say %q", want)
		}
	}
	if quiet := RunDurable(NewDurablePlan(3), nil).String(); !strings.HasSuffix(strings.TrimSpace(told.String()), quiet) {
		t.Errorf("watching changes what happens: without, it is %s", quiet)
	}
}

// The same of groups.
func TestTheCheckersFindAGroupThatIsBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		defect Defect
		found  string // what is to be found of it
		seed   uint64 // that found it
	}{
		{"syncs of its logs are forgotten", GroupSyncSkipped, "settlement was acknowledged|no dead letter any more|is known to be noted", 143}, {"claims end early", ClaimsEndEarly, "stands until", 14},
		{"a late nack counts", AnyNackCounts, "did not stand any more", 422}, {"a redrive forgets the record", RedriveForgets, "nobody did that", 32},
		{"a settlement finishes the next record, too", SettlesTheNextToo, "finished", 17}, {"one attempt more than the limit", OneAttemptMore, "are the most", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			most, found := uint64(2000), regexp.MustCompile(c.found)
			for seed := firstSeed(2, c.seed); seed <= most; seed += groupWorlds {
				plan := NewDurablePlan(seed)
				if plan.Defect, plan.Faults = c.defect, 10; plan.weak() || plan.Group.Long {
					continue
				}
				if r := RunDurable(plan, nil); r.Err != nil && found.MatchString(r.Err.Error()) {
					t.Logf("found by seed %d: %.300v", r.Seed, r.Err)
					return
				}
			}
			t.Fatalf("the worlds up to %d have such groups, and no checker has noticed", most)
		})
	}
}
