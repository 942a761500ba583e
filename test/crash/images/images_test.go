// Package images looks at what kills and power cuts leave of a log.
package images

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/disklog/crashtest"
)

// Logs are driven through histories, on disks that fail in every third of them, and looked at as a kill and power cuts would leave them
// at each operation. Each image is another one; all that was acknowledged is there in each, at its offset, byte by byte, with no gap; a second
// opening changes nothing, and the next append goes to the end.
//
// matrix A1, A2, A3, A5, A6, A15, A16, A19, A22, A28, B1, B2, B3, B5, B20, B23, B25, M3, M6, M10, E3, E9, F1, F11, F13, J3, L4, L8, L9
func TestNoCrashImageHasLostWhatWasAcknowledged(t *testing.T) {
	want, seen := testkit.Size("crash_images"), map[uint64]bool{}
	kinds := map[string]int{}
	var sum crashtest.Result
	for seed := uint64(1000); sum.Distinct < want; seed++ {
		o := crashtest.Options{Seed: seed, Steps: 100, Cuts: 2, Stride: 3 + int(seed%5), Disrupt: true, Faults: seed%3 == 2, Seen: seen}
		if seed%10 == 9 {
			o.Fsync = []disklog.FsyncMode{disklog.Periodic, disklog.None}[seed/10%2]
		}
		r, err := crashtest.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		sum.Images, sum.Distinct, sum.Truncated, sum.Acked = sum.Images+r.Images, sum.Distinct+r.Distinct, sum.Truncated+r.Truncated, sum.Acked+r.Acked
		sum.Refused, sum.Poisoned, sum.Restarts, sum.Rolls = sum.Refused+r.Refused, sum.Poisoned+r.Poisoned, sum.Restarts+r.Restarts, sum.Rolls+r.Rolls
		for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
			kinds[kind] += r.Kinds[kind]
		}
	}
	steps, calls := map[string]int{}, map[string]int{}
	var table strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		step, call, _ := strings.Cut(kind, "/")
		steps[step], calls[call] = steps[step]+kinds[kind], calls[call]+kinds[kind]
		fmt.Fprintf(&table, "%6d %s\n", kinds[kind], kind)
	}
	t.Logf("%d images, %d distinct, %d of them with a tail to cut; %d batches acknowledged, %d rolls, %d restarts, %d refused, %d poisoned\n%s",
		sum.Images, sum.Distinct, sum.Truncated, sum.Acked, sum.Rolls, sum.Restarts, sum.Refused, sum.Poisoned, &table)
	if want < 1000 {
		return // too few for all kinds to have come
	}
	for _, step := range []string{"create", "append", "step", "run", "save a generation", "truncate", "reset", "retain", "compress", "rest", "snapshot", "streamed snapshot", "retain to", "restart"} {
		if steps[step] == 0 && step != "append" { // an append only queues
			t.Errorf("no image comes from %s", step)
		}
	}
	for _, call := range []string{"create", "mkdir", "write", "truncate", "sync", "rename", "remove", "syncdir"} {
		if calls[call] == 0 {
			t.Errorf("no image comes from a %s", call)
		}
	}
}

// The campaign is worth something: it finds a log that acknowledges before its data are synced, and one that once passes over the sync of
// a directory. Where another sync of that directory follows before anything is acknowledged, there is nothing to find.
func TestTheCrashCampaignFindsALogThatForgetsASync(t *testing.T) {
	for seed := range uint64(4) {
		if _, err := crashtest.Run(crashtest.Options{Seed: seed, Steps: 60, Cuts: 1, Defect: crashtest.Defect{NoSync: true}}); err == nil {
			t.Errorf("seed %d: a log without syncs was not found out", seed)
		}
	}
	found, runs, enough := 0, 0, 6
	if testing.Short() {
		enough = 2 // the race detector makes each ten times slower
	}
	for seed := uint64(1); seed <= 3; seed++ {
		for n := 1; n <= 12 && found < enough; n++ {
			runs++
			_, err := crashtest.Run(crashtest.Options{Seed: seed, Steps: 25, Disrupt: true, Defect: crashtest.Defect{NoSyncDir: n}})
			if err != nil {
				found++
				t.Logf("seed %d, without the %dth: %.160s", seed, n, err)
			}
		}
	}
	if found < enough {
		t.Errorf("of %d logs that passed over the sync of a directory %d were found out", runs, found)
	}
}
