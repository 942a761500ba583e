package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// shim is what stands between a daemon and its disk.
type shim struct {
	t    testing.TB
	file string
}

// newShimmed is a daemon over a shim that does nothing yet.
func newShimmed(t testing.TB) (*daemon, *shim) {
	t.Helper()
	s := &shim{t: t, file: filepath.Join(t.TempDir(), "faults")}
	s.set("")
	return newDaemon(t, "FELIX_STORAGE_FAULT_FILE="+s.file), s
}

// set puts rules in force, see storage/vfs; the daemon follows within a tenth of a second.
func (s *shim) set(rules string) {
	s.t.Helper()
	if err := os.WriteFile(s.file+".new", []byte(rules), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.file+".new", s.file); err != nil {
		s.t.Fatal(err)
	}
}

// producers publish one record at a time to one stream, over a disk that is told when to sync.
type producers struct {
	w    wideStreams
	disk *shim
}

const (
	producing       = 64
	longRecordBytes = 16_000 // far more than all that a log adds to sixty-four of them
)

func newProducers(t *testing.T) *producers {
	d, disk := newShimmed(t)
	d.CreateStream("shared", 1)
	p := &producers{wideStreams{d: d, client: d.Connect(func(o *client.Options) { o.AckTimeout = 2 * testkit.Patience })}, disk}
	p.w.publishTo("shared", nil)
	return p
}

// begin starts them. Once stop was called, each publishes no more; wait is until all have the answers that they wait for.
func (p *producers) begin() (stop, wait func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range producing {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := p.w.client.Publish(context.Background(), namespace, "shared", make([]byte, longRecordBytes)); err != nil {
					p.w.d.t.Errorf("publish: %v", err)
					return
				}
			}
		})
	}
	return cancel, all.Wait
}

// Publishers that publish one record at a time share the syncs of a slow disk: while one sync runs, all others' records are gathered for the
// next, however many they are.
//
// mission 281
func TestSixtyFourProducersShareTheSyncsOfASlowDisk(t *testing.T) {
	const rounds, tries = 3, 100
	p := newProducers(t)
	caught := 0
	for n := 0; n < tries && caught < rounds; n++ {
		records, syncs := p.heldBack()
		if records > producing {
			continue // the disk was not held yet: some had their answers and went on
		}
		if caught++; syncs > 2 {
			t.Errorf("%v records were in %v syncs: one that ran, and one for all that came meanwhile", records, syncs)
		}
	}
	if caught == 0 {
		t.Errorf("the disk was not held in %d tries", tries)
	}
}

// heldBack has all producers wait for a sync that stands still, and returns what is synced from then on until they have their answers.
func (p *producers) heldBack() (records, syncs float64) {
	d := p.w.d
	d.t.Helper()
	stop, wait := p.begin()
	p.disk.set("sync name=*.log block\n")
	var before string
	testkit.Eventually(d.t, "all are written while one sync runs", func() bool {
		before = d.Metrics()
		return value(before, "felix_storage_unsynced_bytes") >= producing*longRecordBytes
	})
	stop()
	p.disk.set("")
	wait()
	return synced(before, d.Metrics())
}

// With 64 producers that wait for their answers, 32 records or more share a sync of 4 ms, if nothing else takes the processors.
//
// mission 281
func TestHowManyRecordsShareASyncOfFourMilliseconds(t *testing.T) {
	want := testkit.Shared(28)
	p := newProducers(t)
	p.disk.set("sync name=*.log delay=4ms\n")
	testkit.Eventually(t, "the disk is slow", func() bool {
		began := time.Now()
		p.w.publishTo("shared", nil)
		return time.Since(began) >= 4*time.Millisecond
	})
	stop, wait := p.begin()
	records, syncs := p.w.d.whileSyncing(time.Duration(size("shared_sync_millis")) * time.Millisecond)
	stop()
	wait()
	t.Logf("%.0f records in %.0f syncs of 4 ms: %.1f each", records, syncs, records/syncs)
	if records/syncs < want {
		t.Errorf("%.1f records per sync, want %v", records/syncs, want)
	}
}

// whileSyncing counts the records made durable, and the syncs for it, in a stretch of time that begins in the midst of publishing, and is longer
// where it had hardly any of them.
func (d *daemon) whileSyncing(stretch time.Duration) (records, syncs float64) {
	d.t.Helper()
	testkit.After(stretch / 10)
	before := d.Metrics()
	testkit.After(stretch)
	testkit.Eventually(d.t, "there were so many syncs that their share says something", func() bool {
		records, syncs = synced(before, d.Metrics())
		return syncs >= testkit.SyncsJudged
	})
	return records, syncs
}

// synced is what was made durable between two pages of metrics.
func synced(before, after string) (records, syncs float64) {
	const name = "felix_storage_sync_batch_appends"
	return value(after, name+"_sum") - value(before, name+"_sum"), value(after, name+"_count") - value(before, name+"_count")
}

// A disk that is full now and then, also in the midst of a write, costs refusals and no restart: what was acknowledged is there, and what was
// refused is not.
//
// field case DUR-15
//
// field case OPS-01
func TestWhatWasAcknowledgedIsThereAfterADiskWasFull(t *testing.T) {
	t.Parallel()
	const shards = 2
	d, disk := newShimmed(t)
	d.CreateStream("ledger", shards)
	l := newLedger()
	p := l.publish(t, d, "ledger", 4, 50, keysOf(t, d.Connect(), "ledger", shards))
	for round := range size("full_disk_rounds") {
		l.goesOn(t)
		full := value(d.Metrics(), "felix_storage_full_total")
		disk.set([]string{"write name=*.log error=ENOSPC\n", "write name=*.log from=2 short error=ENOSPC\n"}[round%2])
		testkit.Eventually(t, "the disk is full", func() bool { return value(d.Metrics(), "felix_storage_full_total") > full })
		disk.set("")
	}
	l.goesOn(t)
	p.stop()
	l.check(t, d, "ledger", shards)
	if len(l.refused) == 0 {
		t.Error("nothing was refused: the full disk met nothing")
	}
}

// goesOn waits until more is acknowledged.
func (l *ledger) goesOn(t testing.TB) {
	t.Helper()
	before := l.acknowledged()
	if !testkit.Eventually(t, "something is acknowledged", func() bool { return l.acknowledged() > before+100 }) {
		t.FailNow()
	}
}

// After a sync that failed nothing is acknowledged on the word of a later one, and after a restart everything is there that was
// acknowledged before.
//
// field case DUR-08
//
// matrix E1
func TestWhatWasAcknowledgedIsThereAfterASyncHasFailed(t *testing.T) {
	t.Parallel()
	const shards = 2
	d, disk := newShimmed(t)
	d.CreateStream("ledger", shards)
	l := newLedger()
	p := l.publish(t, d, "ledger", 4, 50, keysOf(t, d.Connect(), "ledger", shards))
	for round := range size("failed_sync_rounds") {
		l.goesOn(t)
		disk.set("sync name=*.log times=2 error=EIO\n")
		testkit.Eventually(t, "the logs have ended", func() bool { return value(d.Metrics(), "felix_storage_logs_poisoned_total") == shards })
		disk.set("")
		ended := l.acknowledged()
		testkit.After(200 * time.Millisecond)
		if more := l.acknowledged() - ended; more > 4*50 { // what was on its way to the publishers
			t.Errorf("round %d: %d records were acknowledged after the failed syncs", round, more)
		}
		if round%2 == 0 {
			d.Kill()
		} else {
			d.Stop()
		}
		d.Start()
	}
	l.goesOn(t)
	p.stop()
	l.check(t, d, "ledger", shards)
}

// A disk that hangs under a thousand shards takes a bounded number of goroutines along, and so of threads, is named, and leaves streams in
// memory alone. When it answers, all of its shards go on in the same process. (That other disks go on beside it is shown in
// storage/diskpool, since a daemon has one.)
//
// mission 210, field case DUR-15
//
// matrix E8
func TestADiskThatHangsUnderAThousandShardsHoldsUpNothingElseAndIsForgiven(t *testing.T) {
	t.Parallel()
	const shards = 1000
	d, disk := newShimmed(t)
	w := wideStreams{d: d, client: d.Connect(func(o *client.Options) { o.RetryDeadline = time.Second })}
	w.create(shards)
	d.awaitLogs(shards)
	w.each()
	before := d.Metrics()
	w.hang(disk)
	elsewhere := w.publishInMemory()
	answered := w.publishIntoTheHang()
	testkit.Eventually(t, "every log is known to hang", func() bool { return value(d.Metrics(), "felix_storage_stalled_logs") == shards+1 })
	t.Logf("%v logs are known to hang", value(d.Metrics(), "felix_storage_stalled_logs"))
	if more := value(d.Metrics(), "go_goroutines") - value(before, "go_goroutines"); more > diskWorkers+fewGoroutines {
		t.Errorf("%v goroutines more while the disk hangs; its workers are %d", more, diskWorkers)
	}
	if more := value(d.Metrics(), "go_threads") - value(before, "go_threads"); more > diskWorkers+fewGoroutines {
		t.Errorf("%v threads more while the disk hangs; its workers are %d", more, diskWorkers)
	}
	if !strings.Contains(d.Said(), "disk_stalled") {
		t.Errorf("no event names it: %s", d.Said())
	}
	if ok := answered(); ok > 0 {
		t.Errorf("%d records were acknowledged by a disk that hangs", ok)
	}
	slowest := elsewhere()
	t.Logf("the slowest publish to a stream in memory took %v", slowest)
	if slowest > testkit.Figure(time.Second) {
		t.Errorf("a publish to a stream in memory took %v", slowest)
	}
	disk.set("")
	testkit.Eventually(t, "the disk is back", func() bool { return value(d.Metrics(), "felix_storage_stalled_logs") == 0 })
	w.each()
}

// diskWorkers is how many goroutines one disk can take: 16 that write, 16 that sync, and 8 for the rest.
const diskWorkers = 16 + 16 + 8

// hang makes every sync hang, and returns when one does.
func (w *wideStreams) hang(disk *shim) {
	d := w.d
	d.CreateStream("canary", 1)
	w.publishTo("canary", nil)
	disk.set("sync name=*.log block\n")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			_, _ = w.client.Publish(ctx, namespace, "canary", fmt.Append(nil, n))
			cancel()
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	testkit.Eventually(d.t, "a sync hangs", func() bool { return value(d.Metrics(), "felix_storage_oldest_job_seconds") > 0.2 })
	close(stop)
	<-stopped
}

// publishIntoTheHang publishes to every shard at once. The function it returns waits for the answers and says how many were good.
func (w *wideStreams) publishIntoTheHang() (answered func() int64) {
	w.d.t.Helper()
	var all sync.WaitGroup
	var good atomic.Int64
	for i, name := range w.names {
		for _, key := range keysOf(w.d.t, w.client, name, w.shards[i]) {
			all.Go(func() {
				ctx, cancel := testkit.Within()
				defer cancel()
				_, err := w.client.Publish(ctx, namespace, name, []byte("into the hang"), client.WithKey(key))
				var refused *client.BrokerError
				switch {
				case err == nil:
					good.Add(1)
				case !errors.As(err, &refused) && !errors.Is(err, client.ErrOutcomeUnknown):
					w.d.t.Errorf("publish: %v", err)
				}
			})
		}
	}
	return func() int64 { all.Wait(); return good.Load() }
}

// publishInMemory publishes to a stream in memory until the function it returns is called, which says how long the slowest publish took.
func (w *wideStreams) publishInMemory() (slowest func() time.Duration) {
	c := w.d.Connect()
	ctx, cancel := context.WithCancel(context.Background())
	var worst time.Duration
	done := make(chan error, 1)
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			began := time.Now()
			if _, err := c.Publish(context.Background(), namespace, "orders", fmt.Append(nil, n)); err != nil {
				done <- err
				return
			}
			worst = max(worst, time.Since(began))
		}
		done <- nil
	}()
	return func() time.Duration {
		cancel()
		if err := <-done; err != nil {
			w.d.t.Errorf("publish to a stream in memory: %v", err)
		}
		return worst
	}
}
