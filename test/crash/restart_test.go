package crash

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// A start after a kill is quick, torn tails or not.
//
// mission 277, matrix A3
func TestAStartAfterAKillTakesLessThanThreeSeconds(t *testing.T) {
	const shards = 10
	d := newDaemon(t)
	d.CreateStream("full", shards)
	l := newLedger()
	c := d.Connect()
	for shard, key := range keysOf(t, c, "full", shards) {
		for left := size("records_at_restart"); left > 0; left -= 500 {
			ctx, cancel := testkit.Within()
			first, payloads := l.take(min(500, left))
			r, err := c.PublishBatch(ctx, namespace, "full", payloads, client.WithKey(key))
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			l.heard(first, len(payloads), uint32(shard), r, err)
		}
	}
	_ = c.Close(context.Background())
	var took []time.Duration
	for range size("timed_restarts") {
		d.Kill()
		tear(t, d.Dir, 3)
		took = append(took, d.Start())
	}
	slices.Sort(took)
	worst := took[(len(took)*99+99)/100-1]
	t.Logf("%d starts with %d records in each of %d shards, 3 of them torn: p50 %v, p99 %v", len(took), size("records_at_restart"), shards, took[len(took)/2], worst)
	if worst > testkit.Figure(3*time.Second) {
		t.Errorf("p99 of the start is %v", worst)
	}
	l.check(t, d, "full", shards)
}

// tear leaves half a batch at the end of the newest segments of n logs, as a kill in the middle of a write does.
func tear(t testing.TB, dir string, n int) {
	t.Helper()
	newest := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".log") {
			newest[filepath.Dir(path)] = max(newest[filepath.Dir(path)], path)
		}
		return err
	})
	if err != nil || len(newest) < n {
		t.Fatalf("%d logs: %v", len(newest), err)
	}
	var logs []string
	for _, path := range newest {
		logs = append(logs, path)
	}
	slices.Sort(logs)
	for _, path := range logs[:n] {
		whole := must(os.ReadFile(path))(t)
		f := must(os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0))(t)
		if _, err := f.Write(whole[segmentHeader : segmentHeader+100]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// segmentHeader is how long the header of a segment is, in bytes.
const segmentHeader = 64
