package shardactor

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func texts(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprint("record ", i))
	}
	return list
}

func TestWhatIsAcknowledgedIsThereAfterAPowerCut(t *testing.T) {
	mem := vfs.NewMem()
	first := newDiskWorld(t, mem)
	a := durableStream("orders", 7, 2)
	first.desire(a)
	for shard := range uint32(2) {
		written(t, first.shard(a.Name, shard, nil), 0, texts(0, 50)...)
	}
	a.Logs = logsOf(first, a)
	again := newDiskWorld(t, mem.CrashHard())
	again.desire(a)
	for shard := range uint32(2) {
		h := again.shard(a.Name, shard, nil)
		if got := stored(t, h); !slices.Equal(got, texts(0, 50)) {
			t.Fatalf("shard %d holds %q", shard, got)
		}
		if !h.Durable || h.State == nil || !h.Serving() {
			t.Fatalf("handle %+v", h)
		}
		written(t, h, 50, texts(50, 60)...)
	}
	select {
	case log := <-again.logs:
		t.Fatalf("log %s was reported although the assignment named it", log)
	default:
	}
}

// logsOf is what the control plane knows once every log was reported.
func logsOf(d *diskWorld, a route.Assignment) string {
	d.t.Helper()
	logs := make([]byte, 16*a.Shards)
	for range a.Shards {
		select {
		case <-d.logs:
		case <-time.After(patience):
			d.t.Fatal("a log was not reported")
		}
	}
	for _, f := range d.listed(int(a.Shards)) {
		log := f.file.ID()
		copy(logs[16*f.spec.Shard:], log[:])
	}
	return string(logs)
}

func TestADrainedBrokerComesBackWithEverything(t *testing.T) {
	mem := vfs.NewMem()
	first := newDiskWorld(t, mem)
	a := durableStream("orders", 7, 1)
	first.desire(a)
	written(t, first.shard(a.Name, 0, nil), 0, texts(0, 20)...)
	first.drain()
	if n := mem.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open after the end", n)
	}
	again := newDiskWorld(t, mem)
	again.desire(a)
	if got := stored(t, again.shard(a.Name, 0, nil)); !slices.Equal(got, texts(0, 20)) {
		t.Fatalf("holds %q", got)
	}
}

func TestAFullDiskRefusesByTypeAndServiceResumesWithRoom(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h := d.shard(a.Name, 0, nil)
	written(t, h, 0, "one")
	full := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Err: syscall.ENOSPC})
	for range 3 {
		if a := send(t, h, message("two")); a.Refusal == nil || a.Refusal.Code != wire.CodeStorage || a.Refusal.Retry == wire.RetryOutcomeUnknown {
			t.Fatalf("with a full disk: %+v", a)
		} else if strings.Contains(a.Refusal.Message, "/") || !strings.Contains(a.Refusal.Message, "no space left on device") {
			t.Fatalf("clients are told where the files are: %s", a.Refusal.Message)
		}
	}
	if n := d.events.count("log_write_failed"); n != 1 {
		t.Fatalf("of a disk that stays full the log tells %d times", n)
	}
	full.Remove()
	written(t, h, 1, "two")
	if got := stored(t, h); !slices.Equal(got, []string{"one", "two"}) {
		t.Fatalf("holds %q", got)
	}
	if n := d.store.Counters().Full.Load(); n < 3 {
		t.Fatalf("%d writes were counted as refused for want of room", n)
	}
}

func TestAFailedSyncPoisonsTheShardUntilANewProcess(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, func(x *diskSetup) {
		x.host.Wrap = func(_ route.Name, _ uint32, a actors.Actor) actors.Actor {
			return &faulty{Actor: a, armed: new(atomic.Bool)}
		}
	})
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.desire(a, other)
	h := d.shard(a.Name, 0, nil)
	written(t, h, 0, "one")
	d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*.log", Times: 1, Err: syscall.EIO})
	if a := send(t, h, message("two")); a.Refusal == nil || a.Refusal.Code != wire.CodeStorage {
		t.Fatalf("a publish whose sync failed: %+v", a)
	}
	poisoned := func(x Target) bool { return x.State == route.Refused && x.Reason == ReasonPoisoned }
	d.target(a.Name, 0, poisoned)
	if a := send(t, h, message("three")); a.Refusal == nil {
		t.Fatal("a poisoned shard acknowledges")
	}
	if h.Serving() || d.events.count("shard_poisoned") != 1 || testutil.ToFloat64(d.metrics.Disk.Poisoned) != 1 {
		t.Fatalf("serving %v, %d events", h.Serving(), d.events.count("shard_poisoned"))
	}
	if got := stored(t, h); !slices.Equal(got, []string{"one"}) {
		t.Fatalf("readers see %q", got)
	}
	written(t, d.shard(other.Name, 0, nil), 0, "another log goes on")
	// A new incarnation finds the log poisoned, and does not try for ever.
	if err := h.Ref.TrySend(&panicNow{}, 1); err != nil {
		t.Fatal(err)
	}
	d.await("the shard is opened again, in vain", func() bool { return testutil.ToFloat64(d.metrics.Disk.OpenFailures) == 1 })
	d.target(a.Name, 0, poisoned)
	for range 10 {
		d.clock.Advance(time.Minute)
	}
	if n := testutil.ToFloat64(d.metrics.Disk.OpenFailures); n != 1 {
		t.Fatalf("%v opens of a poisoned log", n)
	}
	again := newDiskWorld(t, mem.CrashHard())
	again.desire(a)
	if got := stored(t, again.shard(a.Name, 0, nil)); got[0] != "one" {
		t.Fatalf("a new process finds %q", got)
	}
}

// matrix E8
func TestAShardWaitsForADiskThatHangsAndGoesOn(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.stalls = true })
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.desire(a, other)
	h := d.shard(a.Name, 0, nil)
	written(t, h, 0, "one")
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*.log", Block: true})
	r := newReplies()
	m := message("two")
	m.To(r, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	<-hang.Reached()
	d.stall()
	d.await("the right is given up", func() bool { return !h.Serving() })
	if !h.Showing() {
		t.Error("what is committed is not shown")
	}
	if d.events.count("disk_stalled") != 1 || d.metrics.Disk.hanging.Load() != 1 {
		t.Fatalf("%d events, %d logs", d.events.count("disk_stalled"), d.metrics.Disk.hanging.Load())
	}
	written(t, d.shard(other.Name, 0, nil), 0, "another log goes on")
	hang.Release()
	hang.Remove()
	if a := r.wait(t, 1); a.Refusal != nil || a.Offset != 1 {
		t.Fatalf("the publish that waited: %+v", a)
	}
	d.await("the right comes back", h.Serving)
	written(t, h, 2, "three")
	if d.events.count("disk_back") != 1 || d.metrics.Disk.hanging.Load() != 0 {
		t.Fatalf("%d events, %d logs", d.events.count("disk_back"), d.metrics.Disk.hanging.Load())
	}
}

// flip changes one byte in the middle of a file whose name ends so.
func flip(t *testing.T, mem *vfs.Mem, dir, suffix string) {
	t.Helper()
	entries, err := mem.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name, suffix) {
			continue
		}
		f, err := mem.Open(dir+"/"+e.Name, true)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, e.Size/2); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{^b[0]}, e.Size/2); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no %s in %s", suffix, dir)
}

// field case DUR-03
func TestDamageIsReportedOrQuarantinedAndTheRestGoesOn(t *testing.T) {
	mem := vfs.NewMem()
	first := newDiskWorld(t, mem)
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	first.desire(a, other)
	written(t, first.shard(a.Name, 0, nil), 0, texts(0, 1000)...)
	dir := first.listed(2)[0].file.Dir()
	first.drain()
	flip(t, mem, dir, ".log") // in the first segment, which is sealed
	for _, quarantine := range []bool{false, true} {
		d := newDiskWorld(t, mem.Clone(), func(x *diskSetup) { x.disk.Quarantine = quarantine })
		d.desire(a, other)
		d.target(a.Name, 0, func(x Target) bool { return x.State == route.Refused && x.Reason == ReasonDamaged })
		written(t, d.shard(other.Name, 0, nil), 0, "another log goes on")
		<-d.ready
		if d.events.count("shard_damaged") != 1 {
			t.Errorf("quarantine %v: %d events", quarantine, d.events.count("shard_damaged"))
		}
		select {
		case err := <-d.bad:
			if quarantine || !strings.Contains(err.Error(), "orders") {
				t.Errorf("quarantine %v: damage was reported: %v", quarantine, err)
			}
		default:
			if !quarantine {
				t.Error("damage was not reported")
			}
		}
	}
}

// field case DUR-13
func TestALogThatIsGoneIsNeverBegunAnew(t *testing.T) { // decision 13
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.disk.Quarantine = true })
	a := durableStream("orders", 7, 1)
	missing := id.LogID{1, 2, 3}
	a.Logs = string(missing[:])
	d.desire(a)
	d.target(a.Name, 0, func(x Target) bool { return x.Reason == ReasonDamaged })
}

func TestADeletedStreamsNameWorksAgainAtOnceAndShowsNoOldRecords(t *testing.T) { // decision 13
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	for i := range id.Incarnation(5) {
		a := durableStream("orders", i+1, 1)
		d.desire(a)
		h := d.target(a.Name, 0, func(x Target) bool { return x.State == route.Local }).Shard
		if got := stored(t, h); len(got) != 0 {
			t.Fatalf("incarnation %d shows %q", i+1, got)
		}
		written(t, h, 0, texts(0, 10)...)
	}
	d.desire()
	d.await("the files of all are set aside", func() bool {
		deleted, err := mem.ReadDir("deleted")
		return err == nil && len(deleted) == 5
	})
	d.clock.Advance(25 * time.Hour)
	d.await("the janitor removes them", func() bool {
		d.clock.Advance(time.Minute)
		deleted, err := mem.ReadDir("deleted")
		return err == nil && len(deleted) == 0
	})
}

func TestAStreamOfAnotherShapeKeepsItsFiles(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h := d.shard(a.Name, 0, nil)
	written(t, h, 0, texts(0, 10)...)
	a.Generation = 2
	d.desire(a)
	next := d.shard(a.Name, 0, h)
	if got := stored(t, next); !slices.Equal(got, texts(0, 10)) {
		t.Fatalf("holds %q", got)
	}
	written(t, next, 10, "more")
}

func TestAPanicOfADurableShardLosesNothingThatWasAcknowledged(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) {
		x.host.Wrap = func(_ route.Name, _ uint32, a actors.Actor) actors.Actor {
			return &faulty{Actor: a, armed: new(atomic.Bool)}
		}
	})
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h := d.shard(a.Name, 0, nil)
	acked := map[string]bool{}
	for round := range 5 {
		r := newReplies()
		sent := 0
		for i := range 20 {
			if i == 10 {
				_ = h.Ref.TrySend(&panicNow{}, 1)
			}
			m := message(fmt.Sprintf("%d/%d", round, i))
			m.To(r, shardcore.Token(i))
			if h.Ref.TrySend(m, Size(m)) == nil {
				sent = i + 1
			}
		}
		for i := range sent {
			if a := r.wait(t, shardcore.Token(i)); a.Refusal == nil {
				acked[fmt.Sprintf("%d/%d", round, i)] = true
			}
		}
		h = d.shard(a.Name, 0, h)
		d.clock.Advance(time.Minute) // never three failures in one minute
	}
	got := stored(t, h)
	for text := range acked {
		if !slices.Contains(got, text) {
			t.Errorf("%q was acknowledged and is lost", text)
		}
	}
	slices.Sort(got)
	if n := len(got); len(slices.Compact(got)) != n {
		t.Error("a record is there twice")
	}
	if testutil.ToFloat64(d.metrics.Lost) != 0 || testutil.ToFloat64(d.metrics.Restarts) != 5 {
		t.Errorf("%v contents lost, %v restarts", testutil.ToFloat64(d.metrics.Lost), testutil.ToFloat64(d.metrics.Restarts))
	}
}

func numbered(producer, sequence uint64, text string) *Publish {
	m := message(text)
	m.Batch.ProducerID, m.Batch.Sequence = producer, sequence
	return m
}

func TestANumberedPublishThatIsSentAgainAfterARestartIsNotAppendedAgain(t *testing.T) {
	for _, how := range []string{"from a snapshot", "from the headers"} {
		t.Run(how, func(t *testing.T) {
			mem := vfs.NewMem()
			first := newDiskWorld(t, mem)
			a := durableStream("orders", 7, 1)
			first.desire(a)
			h := first.shard(a.Name, 0, nil)
			for i := range uint64(5) {
				if x := send(t, h, numbered(99, i, fmt.Sprint(i))); x.Refusal != nil || x.Offset != id.Offset(i) {
					t.Fatalf("publish %d: %+v", i, x)
				}
			}
			disk := mem.CrashHard()
			if how == "from a snapshot" {
				first.drain()
				disk = mem
				dir, err := mem.ReadDir(durableDir(t, mem))
				if err != nil || !slices.ContainsFunc(dir, func(e vfs.Entry) bool { return strings.HasPrefix(e.Name, producersSnapshot) }) {
					t.Fatalf("no snapshot was saved: %v, %v", dir, err)
				}
			}
			again := newDiskWorld(t, disk)
			again.desire(a)
			h = again.shard(a.Name, 0, nil)
			for i := range uint64(5) {
				if x := send(t, h, numbered(99, i, fmt.Sprint(i))); x.Refusal != nil || x.Refused != nil || x.Offset != id.Offset(i) {
					t.Fatalf("publish %d, again: %+v", i, x)
				}
			}
			if x := send(t, h, numbered(99, 3, "another")); x.Refused == nil || x.Refused.Kind != wire.RefusedSequenceReused {
				t.Fatalf("a number used for something else: %+v", x)
			}
			if x := send(t, h, numbered(99, 5, "5")); x.Offset != 5 {
				t.Fatalf("the next one: %+v", x)
			}
			if got := stored(t, h); len(got) != 6 {
				t.Fatalf("holds %q", got)
			}
		})
	}
}

// durableDir is the directory of the only log.
func durableDir(t *testing.T, mem *vfs.Mem) string {
	t.Helper()
	entries, err := mem.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name, "t1_") {
			return e.Name
		}
	}
	t.Fatal("no log")
	return ""
}

func commit(entity, key, value string) *Publish {
	event := "changed " + key
	c := reading.AppendCommit(nil, []byte(event), []byte(entity), []reading.Change{{Key: []byte(key), Value: []byte(value)}})
	return &Publish{Batch: batch.Batch{Count: 1, Kind: batch.Commit, Body: c, PayloadBytes: len(event)}}
}

func TestStateFollowsCommitsAndIsThereAfterARestart(t *testing.T) {
	mem := vfs.NewMem()
	first := newDiskWorld(t, mem, func(x *diskSetup) { x.disk.StateBytes = 4096 })
	a := durableStream("orders", 7, 1)
	first.desire(a)
	h := first.shard(a.Name, 0, nil)
	written(t, h, 0, "before")
	for i, value := range []string{"one", "two"} {
		if x := send(t, h, commit("cart", "total", value)); x.Refusal != nil || x.Offset != id.Offset(i+1) {
			t.Fatalf("commit: %+v", x)
		}
		// Visible before its answer.
		if v := h.State.Get([]byte("cart"), "total"); !v.Found || string(v.Value) != value || v.Version != id.Offset(i+1) || v.AsOf != v.Version {
			t.Fatalf("state: %+v", v)
		}
	}
	conditional := commit("cart", "total", "three")
	conditional.HasExpected, conditional.Expected = true, 2
	if x := send(t, h, conditional); x.Refused == nil || x.Refused.Kind != wire.RefusedOffsetMismatch || x.Refused.Tail != 3 {
		t.Fatalf("a commit on another offset: %+v", x)
	}
	if x := send(t, h, commit("cart", "large", strings.Repeat("x", 8192))); x.Refusal == nil || x.Refusal.Code != wire.CodeLimitExceeded {
		t.Fatalf("a commit beyond the budget: %+v", x)
	}
	again := newDiskWorld(t, mem.CrashHard())
	again.desire(a)
	h = again.shard(a.Name, 0, nil)
	if v := h.State.Get([]byte("cart"), "total"); !v.Found || string(v.Value) != "two" || v.Version != 2 {
		t.Fatalf("state after a restart: %+v", v)
	}
	if got := stored(t, h); !slices.Equal(got, []string{"before", "changed total", "changed total"}) {
		t.Fatalf("readers see %q", got)
	}
}

func TestAnEphemeralStreamNeedsNoDiskAndADurableOneIsRefusedWithoutOne(t *testing.T) {
	w := newWorld(t, nil)
	a, e := durableStream("orders", 7, 1), stream("ticks", 1, 1)
	w.desire(a, e)
	if x, _ := w.table.Get(a.Name).Shard(0); x.State != route.Refused || x.Reason != ReasonNoStorage {
		t.Fatalf("resolves to %+v", x)
	}
	if h := w.shard(e.Name, 0, nil); h.Durable || h.History != nil || h.State != nil {
		t.Fatalf("handle %+v", h)
	}
}

func TestAnOpenThatFailsForNowIsTriedAgain(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallCreate}, Name: "*.log", Times: 1, Err: syscall.ENOSPC})
	a := durableStream("orders", 7, 1)
	d.version++
	d.host.Signal(actors.Cell{Kind: DesiredCell, Value: route.Desired{Version: d.version, Assignments: []route.Assignment{a}}})
	d.await("the open fails", func() bool { return testutil.ToFloat64(d.metrics.Disk.OpenFailures) == 1 })
	select {
	case <-d.ready:
		t.Fatal("ready without its log")
	default:
	}
	var h *Handle
	d.await("it is tried again", func() bool {
		d.clock.Advance(100 * time.Millisecond)
		if e := d.table.Get(a.Name); e != nil {
			x, _ := e.Shard(0)
			h = x.Shard
		}
		return h != nil
	})
	written(t, h, 0, "one")
	<-d.ready
	if v := <-d.applied; v != d.version {
		t.Fatalf("version %d is applied", v)
	}
}

func TestALogWhoseGenerationCannotBeSavedIsPoisonedBeforeItServes(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/replica*", Err: syscall.EIO})
	a := durableStream("orders", 7, 1)
	d.desire(a)
	d.target(a.Name, 0, func(x Target) bool { return x.State == route.Refused && x.Reason == ReasonPoisoned })
	<-d.ready
	d.drain()
}

func TestATornAppendIsCutOffAndReported(t *testing.T) {
	mem := vfs.NewMem()
	first := newDiskWorld(t, mem)
	a := durableStream("orders", 7, 1)
	first.desire(a)
	written(t, first.shard(a.Name, 0, nil), 0, texts(0, 5)...)
	torn := mem.CrashHard()
	dir := durableDir(t, torn)
	entries, err := torn.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name, ".log") {
			f, err := torn.Open(dir+"/"+e.Name, true)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("the beginning of a batch"), e.Size); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := newDiskWorld(t, torn)
	again.desire(a)
	if got := stored(t, again.shard(a.Name, 0, nil)); !slices.Equal(got, texts(0, 5)) {
		t.Fatalf("holds %q", got)
	}
	if again.events.count("log_recovered") != 1 || again.store.Counters().TruncatedBytes.Load() == 0 {
		t.Fatal("the cut was not reported")
	}
}
