package crash

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

const (
	// idleShardBytes is what a durable shard that nobody uses may take of heap and stacks, all that the daemon keeps about it included.
	idleShardBytes = 8 << 10
	// sharedBytes is what is left of serving them whatever their number: stacks, pools, buffers. With ten thousand it needs no mention.
	sharedBytes = 2 << 20
	// fewGoroutines come and go in a daemon whatever it does: connections that are being served and ended.
	fewGoroutines = 10
	// widest is how many shards a stream of these tests has at most.
	widest = 1000
)

// A durable shard that was used and is not any more holds little memory, and no file and no goroutine; thousands of them hold up neither a
// start after an orderly stop nor one after a kill.
//
// mission 209
//
// field case OPS-11
func TestIdleDurableShardsCostLittleAndOpenQuickly(t *testing.T) {
	t.Parallel()
	shards := size("idle_durable_shards")
	d := newDaemon(t, testkit.CollectOften) // so that little of what is measured is garbage
	before := d.Footprint()
	wide := wideStreams{d: d, client: d.Connect()}
	wide.create(shards)
	d.awaitLogs(shards)
	wide.each()
	wide.close()
	d.awaitRest(before)
	after := d.Footprint()
	each := (after.Memory - before.Memory) / float64(shards)
	t.Logf("%d idle shards: %.0f bytes of heap and stack each, %v goroutines before and %v after", shards, each, before.Goroutines, after.Goroutines)
	limit, few := float64(idleShardBytes), float64(fewGoroutines)
	if !effort.Full() {
		limit += sharedBytes / float64(shards)
		few += diskWorkers
	}
	if each > limit {
		t.Errorf("an idle durable shard takes %.0f bytes, at most %.0f are allowed", each, limit)
	}
	if after.Goroutines > before.Goroutines+few {
		t.Errorf("%v goroutines more for %d idle shards", after.Goroutines-before.Goroutines, shards)
	}
	if open := d.logFiles(); len(open) > 0 {
		t.Errorf("%d files are open, %q among them", len(open), open[0])
	}
	wide.reopen(shards)
}

// reopen times a start after an orderly stop, and one after a kill in the middle of publishes.
func (w *wideStreams) reopen(shards int) {
	d, t := w.d, w.d.t
	w.close()
	d.Stop()
	d.Env = nil
	stopped := d.Start()
	w.client = d.Connect()
	w.each()
	w.close()
	d.Kill()
	killed := d.Start()
	t.Logf("%d durable shards: ready %v after an orderly stop, %v after a kill", shards, stopped, killed)
	if n := int(value(d.Metrics(), "felix_storage_open_logs")); n != shards+logsAtFirst {
		t.Errorf("ready with %d logs open", n)
	}
	if stopped > testkit.Figure(5*time.Second) || killed > testkit.Figure(20*time.Second) {
		t.Errorf("ready %v after a stop and %v after a kill; at most 5 s and 20 s are allowed", stopped, killed)
	}
}

// logsAtFirst are those of the cache that a fresh daemon begins with.
const logsAtFirst = 2

// awaitLogs waits until so many logs are open, beside those of the beginning; fresh ones take a few syncs each.
func (d *daemon) awaitLogs(n int) {
	d.t.Helper()
	n += logsAtFirst
	for left := 10; left > 0 && int(value(d.Metrics(), "felix_storage_open_logs")) < n; left-- {
		was := value(d.Metrics(), "felix_storage_open_logs")
		testkit.Eventually(d.t, "more logs are open", func() bool { return value(d.Metrics(), "felix_storage_open_logs") >= min(float64(n), was+float64(n)/5) })
	}
	if got := value(d.Metrics(), "felix_storage_open_logs"); int(got) != n {
		d.t.Fatalf("%v logs are open, want %d", got, n)
	}
}

// awaitRest waits until no log has files open, which takes twice 10 s at most, and, when there is time, until the disk's workers have gone
// as well, 10 s later: they are a few whatever the number of shards.
func (d *daemon) awaitRest(before testkit.Footprint) {
	d.t.Helper()
	testkit.Eventually(d.t, "all logs rest", func() bool { return value(d.Metrics(), "felix_storage_awake_logs") == 0 })
	if effort.Full() {
		testkit.Eventually(d.t, "the workers are gone", func() bool { return value(d.Metrics(), "go_goroutines") <= before.Goroutines+fewGoroutines })
	}
}

// wideStreams are durable streams of many shards, with one client.
type wideStreams struct {
	d      *daemon
	client *client.Client
	names  []string
	shards []int
}

// create makes streams of so many shards together.
func (w *wideStreams) create(shards int) {
	w.d.t.Helper()
	for shards > 0 {
		n := min(widest, shards)
		shards -= n
		w.names, w.shards = append(w.names, fmt.Sprint("wide", len(w.names))), append(w.shards, n)
		w.d.CreateStream(w.names[len(w.names)-1], n)
	}
}

// each publishes a record to every shard.
func (w *wideStreams) each() {
	w.d.t.Helper()
	for i, name := range w.names {
		w.publish(name, w.shards[i])
	}
}

// publish publishes a record to every shard of a stream, many at a time.
func (w *wideStreams) publish(name string, shards int) {
	w.d.t.Helper()
	work := make(chan []byte)
	var done sync.WaitGroup
	for range 32 {
		done.Go(func() {
			for key := range work {
				w.publishTo(name, key)
			}
		})
	}
	for _, key := range keysOf(w.d.t, w.client, name, shards) {
		work <- key
	}
	close(work)
	done.Wait()
}

// publishTo publishes one record. A shard that was made a moment ago may not serve yet.
func (w *wideStreams) publishTo(name string, key []byte) {
	ctx, cancel := testkit.Within()
	defer cancel()
	for {
		_, err := w.client.Publish(ctx, namespace, name, []byte("one record"), client.WithKey(key))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			w.d.t.Errorf("publish: %v", err)
			return
		}
		testkit.After(5 * time.Millisecond)
	}
}

func (w *wideStreams) close() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	_ = w.client.Close(ctx)
}
