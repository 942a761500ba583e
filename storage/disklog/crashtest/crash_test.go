package crashtest

import (
	"testing"

	"github.com/felixd/felixd/storage/disklog"
)

func TestNoAcknowledgedBatchIsLostAtAnyOperation(t *testing.T) {
	for seed := range uint64(2) {
		r, err := Run(Options{Seed: seed, Steps: 60, Cuts: 2, Stride: 4, Disrupt: seed%2 == 1})
		t.Logf("seed %d: %+v", seed, r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Truncated == 0 || r.Acked == 0 {
			t.Fatalf("it proves little: %+v", r)
		}
	}
}

func TestWhatIsWrittenSurvivesAKillInEveryMode(t *testing.T) {
	for _, mode := range []disklog.FsyncMode{disklog.Periodic, disklog.None} {
		r, err := Run(Options{Seed: 11, Steps: 60, Cuts: 1, Stride: stride(6), Fsync: mode, Disrupt: true})
		t.Logf("%s: %+v", mode, r)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoAcknowledgedBatchIsLostOnADiskThatFails(t *testing.T) {
	var refused, poisoned int
	for seed := range uint64(4) {
		r, err := Run(Options{Seed: 40 + seed, Steps: 120, Cuts: 1, Stride: stride(11), Disrupt: true, Faults: true})
		t.Logf("seed %d: %+v", seed, r)
		if err != nil {
			t.Fatal(err)
		}
		refused, poisoned = refused+r.Refused, poisoned+r.Poisoned
	}
	if refused < 5 || poisoned < 2 {
		t.Fatalf("it proves little: %d refused, %d poisoned", refused, poisoned)
	}
}

func TestAStreamedSnapshotThatWasKeptSurvivesInEveryMode(t *testing.T) {
	var sum Result
	for seed := range uint64(15) {
		mode := []disklog.FsyncMode{disklog.OnCommit, disklog.Periodic, disklog.None}[seed%3]
		r, err := Run(Options{Seed: 200 + seed, Steps: 100, Cuts: 1, Stride: stride(17), Fsync: mode, Disrupt: true, Faults: seed%2 == 1})
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		sum.Streamed, sum.Stale, sum.Distinct = sum.Streamed+r.Streamed, sum.Stale+r.Stale, sum.Distinct+r.Distinct
	}
	t.Logf("%+v", sum)
	if sum.Streamed < 10 || sum.Stale < 1 {
		t.Fatalf("it proves little: %+v", sum)
	}
}

// stride is how many operations lie between two crashes. With -short there are fewer: that is for the race detector, which has little to find
// where one goroutine does it all.
func stride(n int) int {
	if testing.Short() {
		return 3 * n
	}
	return n
}
