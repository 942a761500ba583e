package shardactor

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Each settlement is a record in the logs of groups, and almost none of them counts any more a moment later.
func TestTheLogsOfGroupsStayBoundedHoweverLongAGroupWorks(t *testing.T) {
	const records, compactions, rounds = 8, 4, 4000
	mem := vfs.NewMem()
	var segment int64
	d := newDiskWorld(t, mem, func(x *diskSetup) { segment = int64(x.store.SegmentBytes) })
	h := d.streamShard("jobs")
	for i := range records {
		send(t, h, message(fmt.Sprint(i)))
	}
	w := newWorker(t, h, "workers", 1)
	w.waits = func() { d.clock.Advance(time.Second) } // compactions that have nothing to do pause
	done := func(in groupcore.Input) {
		t.Helper()
		if a := w.do(in); a.Refusal != nil {
			t.Fatalf("%T: %v", in, a.Refusal)
		}
	}
	var begun, most int64
	for i := 0; testutil.ToFloat64(d.metrics.Disk.Compactions) < compactions; i++ {
		if i == rounds {
			t.Fatalf("%d settlements, and %v compactions of logs that have %d bytes", rounds*records, testutil.ToFloat64(d.metrics.Disk.Compactions), mem.Used()-begun)
		}
		got, _ := w.ask(&groupcore.Poll{Conn: w.conn, Max: records, Visibility: 12 * time.Hour}).([]groupcore.Handed)
		if len(got) != records {
			t.Fatalf("round %d: %d records", i, len(got))
		}
		for _, r := range got[1:] {
			w.ack(r.Offset)
		}
		done(groupcore.GiveUp{Offset: got[0].Offset})
		done(groupcore.Discard{Offset: got[0].Offset})
		done(groupcore.Seek{Start: wire.Start{Kind: wire.StartEarliest}})
		if i == 0 {
			begun = mem.Used()
		}
		most = max(most, mem.Used())
	}
	// One log is compacted when it has the floor, by a quarter more each time that the end was not reached; what comes meanwhile goes to a
	// segment of its own, and the other log is at most as long.
	if bound := begun + 2*(keyed.CounterPolicy().Floor*5/4+2*segment); most > bound {
		t.Errorf("the files have up to %d bytes, want at most %d", most, bound)
	}

	w.waits = nil
	w.poll(records)
	w.ack(3)
	n := newDiskWorld(t, mem.Clone())
	w = newWorker(t, n.streamShard("jobs"), "workers", 1)
	left := map[id.Offset]bool{}
	for len(left) < records-1 {
		for _, r := range w.poll(records) {
			left[r.Offset] = true
		}
	}
	if a := w.do(groupcore.Describe{}); left[3] || a.Info.Cursor != 0 || a.Info.Dead != 0 {
		t.Errorf("after a kill %v are handed out, %+v", left, a.Info)
	}
}
