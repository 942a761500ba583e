package durable

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// A reader replays a long history slowly, with pauses, while records are added, under the policy that drops. All below where it is live arrive
// in order and without a gap; with resumption everything does; without it the end says where to go on, and going on there misses nothing.
//
// field case STR-04; matrix K2, K4
func TestSTR04_AReplayDeliversEverythingBelowTheJoin(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	s.store = rollEvery(256 << 10)
	s.start(vfs.NewMem())
	c := s.connect()
	history := testkit.Size("replayed_records")
	for n := 0; n < history; n += 500 {
		var payloads [][]byte
		for i := range min(500, history-n) {
			payloads = append(payloads, []byte(fmt.Sprintf("%07d-%0100d", n+i, 0)))
		}
		if _, err := c.PublishBatch(t.Context(), namespace, "orders", payloads); err != nil {
			t.Fatal(err)
		}
	}
	large := make([]byte, 2<<10)
	narrow := func(o *client.Options) { o.EventConnRecvWindow, o.EventStreamRecvWindow = 128<<10, 64<<10 }
	for _, resume := range []client.Resume{client.ResumeExact, client.ResumeNever} {
		reader, lags := s.connect(narrow), uint64(0)
		ctx, stop := context.WithCancel(t.Context())
		added := make(chan error, 1)
		var tail atomic.Uint64 // of what was added
		adder := s.connect()
		go func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-tick.C:
				case <-ctx.Done():
					added <- nil
					return
				}
				var payloads [][]byte
				for range 10 {
					payloads = append(payloads, large)
				}
				r, err := adder.PublishBatch(context.WithoutCancel(ctx), namespace, "orders", payloads)
				if err != nil {
					added <- err
					return
				}
				tail.Store(uint64(r.Offset) + 10)
			}
		}()
		next, at := id.Offset(0), client.Earliest()
		var live, end id.Offset // it ends a while after it has caught up, and fallen behind again
		for end == 0 || next < end {
			sub := testkit.Must(reader.Subscribe(t.Context(), namespace, "orders", client.SubscribeOptions{From: at, QueueCapacity: 16, Resume: resume}))(t)
			if live == 0 {
				live, _ = sub.LiveOffset()
				if live < id.Offset(history) {
					t.Fatalf("live from %d of %d", live, history)
				}
			}
			for end == 0 || next < end {
				e, err := sub.Next(t.Context())
				var lagged *client.SubscriptionLaggedError
				if errors.As(err, &lagged) && resume == client.ResumeNever {
					if next < live {
						t.Fatalf("it is called slow at %d, and is live from %d", next, live)
					}
					lags++
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if e.Offset != next {
					t.Fatalf("%d follows %d", e.Offset, next)
				}
				if want := fmt.Sprintf("%07d", next); next < id.Offset(history) && string(e.Payload[:7]) != want {
					t.Fatalf("%.7s at %d", e.Payload, next)
				}
				switch next++; {
				case end == 0 && next > live && uint64(next)+20 >= tail.Load():
					testkit.Eventually(t, "far more is added than a window holds", func() bool { return tail.Load() >= uint64(next)+1000 })
					end = next.Add(3000)
				case next <= live && next%1000 == 0:
					testkit.After(20 * time.Millisecond)
				}
			}
			sub.Close()
			at = client.At(next)
		}
		stop()
		if err := <-added; err != nil {
			t.Fatal(err)
		}
		if resume == client.ResumeExact {
			lags = reader.Stats().Resumes
		}
		if lags == 0 {
			t.Errorf("the reader was never too slow")
		}
	}
}

// swept is a site whose stream is kept short by a janitor that runs all the time.
func swept(t *testing.T, r route.Retention) *site {
	s := newSite(t, stream{name: "orders", retention: r})
	s.store = rollEvery(8 << 10)
	s.disk = func(o *shardactor.DiskOptions) { o.RetentionInterval = 5 * time.Millisecond }
	return s
}

// Starts below, at and above everything that is kept, while retention runs: what cannot be served is refused by type with the offset that can,
// and nothing is served from elsewhere.
//
// field case STR-07; matrix F4, K6; mission 287
func TestSTR07_StartsOutsideTheLogAreNamedErrors(t *testing.T) {
	s := swept(t, route.Retention{Bytes: 24 << 10})
	s.start(vfs.NewMem())
	c := s.connect()
	n := 0
	more := func(k int) {
		for range k {
			publish(t, c, "orders", value("v", n))
			n++
		}
	}
	more(200)
	testkit.Eventually(t, "retention has begun", func() bool { oldest, _ := bounds(t, c, "orders"); return oldest > 1 })
	subscribe := func(at id.Offset) (*client.Subscription, error) {
		return c.Subscribe(t.Context(), namespace, "orders", client.SubscribeOptions{From: client.At(at), Resume: client.ResumeNever})
	}
	for round := range 5 {
		oldest, next := bounds(t, c, "orders")
		for _, at := range []id.Offset{oldest - 1, 0} {
			sub, err := subscribe(at)
			var cursor *client.CursorError
			if !errors.Is(err, client.ErrTooOld) || !errors.As(err, &cursor) || cursor.Requested != at || cursor.Available < oldest {
				t.Fatalf("round %d: from %d, the oldest is %d: %v, %v", round, at, oldest, sub, err)
			}
			if _, err := c.Read(t.Context(), namespace, "orders", client.ReadOptions{From: at}); !errors.Is(err, client.ErrTooOld) {
				t.Fatalf("round %d: a read from %d: %v", round, at, err)
			}
		}
		for _, at := range []id.Offset{next + 1, next + 1000} {
			_, err := subscribe(at)
			var cursor *client.CursorError
			if !errors.Is(err, client.ErrInFuture) || !errors.As(err, &cursor) || cursor.Available != next {
				t.Fatalf("round %d: from %d, the end is %d: %v", round, at, next, err)
			}
		}
		sub, err := subscribe(oldest)
		if err == nil {
			e, err := sub.Next(t.Context())
			if err == nil && (e.Offset != oldest || string(e.Payload) != value("v", int(oldest))) {
				t.Fatalf("round %d: from %d begins with %d", round, oldest, e.Offset)
			}
			sub.Close()
		} else if !errors.Is(err, client.ErrTooOld) {
			t.Fatal(err)
		}
		waiting := testkit.Must(subscribe(next))(t)
		more(40)
		ctx, cancel := testkit.Within()
		e, err := waiting.Next(ctx)
		cancel()
		if err != nil || e.Offset != next {
			t.Fatalf("round %d: at the end, %d: %d, %v", round, next, e.Offset, err)
		}
		waiting.Close()
	}
}

// Readers save their positions and ask for the oldest and the newest offset in a loop, over appends, retention, and starts after power cuts:
// nothing ever goes back, and zero is said of an empty log only. A subscription that lives over all that misses nothing and repeats nothing,
// but for what retention took.
//
// field case STR-08 (one broker); matrix K7; mission 282
func TestSTR08_OffsetsNeverJumpBack(t *testing.T) {
	readers, progress := 10, 200
	if testkit.Raced { // all of them read all the time
		readers, progress = 3, 50
	}
	s := swept(t, route.Retention{Bytes: 64 << 10})
	b := s.start(vfs.NewMem())
	ctx, stop := context.WithCancel(t.Context())
	l := newLedger()
	l.publish("p", "orders", s.connect(impatient), s.connect(impatient))
	failed := make(chan error, 20)
	finished := make(chan struct{}, 20)
	for range readers {
		c := s.connect()
		go func() {
			defer func() { finished <- struct{}{} }()
			var oldest, newest, saved id.Offset
			for ctx.Err() == nil {
				o, n, err := c.Bounds(ctx, namespace, "orders", 0)
				if err != nil {
					continue // its broker is down
				}
				if o < oldest || n < newest || o == 0 && oldest > 0 { // they are of two moments
					failed <- fmt.Errorf("%d to %d follows %d to %d", o, n, oldest, newest)
					return
				}
				oldest, newest = o, n
				for r, err := range c.ReadRange(ctx, namespace, "orders", client.ReadOptions{From: max(saved, oldest), End: newest}) {
					if err != nil {
						break // retention, or the broker is down
					}
					if r.Offset < saved {
						failed <- fmt.Errorf("%d was read again", r.Offset)
						return
					}
					saved = r.Offset + 1
				}
			}
		}()
	}
	sub := testkit.Must(s.connect().Subscribe(ctx, namespace, "orders", client.SubscribeOptions{From: client.Earliest()}))(t)
	go func() {
		defer func() { finished <- struct{}{} }()
		last := id.Offset(0)
		for e, err := range sub.Events(ctx) {
			if err != nil {
				if !errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrTooOld) {
					failed <- err
				}
				return
			}
			if last > 0 && e.Offset != last+1 {
				failed <- fmt.Errorf("event %d follows %d", e.Offset, last)
				return
			}
			last = e.Offset
		}
	}()
	for cut := range 4 {
		before := l.acknowledged()
		testkit.Eventually(t, "there is progress", func() bool { return l.acknowledged() > before+progress })
		b = s.start(b.powerCut(leaves(uint64(cut))))
	}
	stop()
	l.end()
	sub.Close()
	for range readers + 1 {
		<-finished
	}
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	c := s.connect()
	testkit.Eventually(t, "retention takes something", func() bool { oldest, next := bounds(t, c, "orders"); return 0 < oldest && oldest < next })
}

// Records age out within a moment; the broker starts anew again and again. Nobody gets another error than too old, new records are readable,
// and offsets go on. The segment that is written to stays, so what is left are its records.
//
// field case STR-12
func TestSTR12_StartsWithVeryShortRetentionLeaveAReadableLog(t *testing.T) {
	t.Parallel() // it mostly waits
	s := swept(t, route.Retention{Age: 20 * time.Millisecond})
	mem := vfs.NewMem()
	saved, n, cycles := id.Offset(0), 0, 20
	if testkit.Raced {
		cycles = 6
	}
	var oldestBefore id.Offset
	for cycle := range cycles {
		b := s.start(mem)
		c := s.connect(impatient)
		oldest, next := bounds(t, c, "orders")
		if oldest < oldestBefore || next != id.Offset(n) {
			t.Fatalf("cycle %d: the log is %d to %d, want %d or more to %d", cycle, oldest, next, oldestBefore, n)
		}
		oldestBefore = oldest
		if got := read(t, c, "orders", 0, oldest); id.Offset(len(got)) > next-oldest {
			t.Fatalf("cycle %d: %d records from %d to %d", cycle, len(got), oldest, next)
		}
		_, err := c.Read(t.Context(), namespace, "orders", client.ReadOptions{From: saved})
		if err != nil && !(errors.Is(err, client.ErrTooOld) && saved < next) {
			t.Fatalf("cycle %d: from a saved position: %v", cycle, err)
		}
		newest := testkit.Must(c.Subscribe(t.Context(), namespace, "orders", client.SubscribeOptions{}))(t)
		for range 40 {
			publish(t, c, "orders", value("v", n))
			n++
		}
		ctx, cancel := testkit.Within()
		e, err := newest.Next(ctx)
		cancel()
		if err != nil || e.Offset != next {
			t.Fatalf("cycle %d: the newest is %d, %v, want %d", cycle, e.Offset, err, next)
		}
		newest.Close()
		saved = next
		testkit.Eventually(t, "what is old is gone", func() bool { oldest, next := bounds(t, c, "orders"); return next-oldest < 16 })
		if cycle%2 == 0 {
			b.stop()
		} else {
			mem = b.powerCut(hard)
		}
	}
}

// A commit is there whole or not at all, event and state alike, whenever the power goes.
//
// matrix J11
func TestJ11_ACommitIsThereWholeOrNotAtAll(t *testing.T) {
	s := newSite(t)
	mem := vfs.NewMem()
	next := 0
	for life := range 6 {
		b := s.start(mem)
		c := s.connect(impatient)
		done := make(chan int, 1)
		ctx, stop := context.WithCancel(t.Context())
		go func(n int) {
			for ; ctx.Err() == nil; n++ {
				if _, err := c.Commit(ctx, namespace, "orders", []byte("e"), []byte(fmt.Sprint(n)), client.Put("n", []byte(fmt.Sprint(n)))); err != nil {
					break
				}
			}
			done <- n // everything before it is acknowledged
		}(next)
		testkit.Eventually(t, "there is progress", func() bool { _, n := bounds(t, s.connect(), "orders"); return n > id.Offset(30*(life+1)) })
		mem = b.powerCut(leaves(uint64(life)))
		stop()
		acknowledged := <-done
		b = s.start(mem)
		c = s.connect()
		got := read(t, c, "orders", 0, 0)
		if len(got) < acknowledged || len(got) > acknowledged+1 {
			t.Fatalf("life %d: %d events, %d were acknowledged", life, len(got), acknowledged)
		}
		state, err := c.StateGet(t.Context(), namespace, "orders", []byte("e"), "n")
		last := string(got[len(got)-1].Payload)
		if err != nil || string(state.Value) != last || state.Version != got[len(got)-1].Offset {
			t.Fatalf("life %d: the last event is %s, the state %+v, %v", life, last, state, err)
		}
		next = len(got)
		mem = b.powerCut((*vfs.Mem).Clone)
	}
}

// fsyncs of a store are what disklog counts.
func syncs(b *broker) uint64 { return b.store.Counters().Syncs.Load() }

// Three hundred shards that nobody writes to: no flush, no write, no name that changes, and no file open.
//
// field case OPS-11 (durable shards of one broker)
func TestOPS11_IdleShardsCostNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, stream{name: "a", shards: 100}, stream{name: "b", shards: 100}, stream{name: "c", shards: 100})
	s.store = func(o *disklog.Options) { o.IdleAfter = 50 * time.Millisecond }
	s.disk = func(o *shardactor.DiskOptions) { o.RetentionInterval = 10 * time.Millisecond }
	mem := vfs.NewMem()
	b := s.start(mem)
	c := s.connect()
	for n := range 300 {
		ctx, cancel := testkit.Within()
		if _, err := c.Publish(ctx, namespace, string("abc"[n%3]), []byte("x"), client.WithKey([]byte(fmt.Sprint(n)))); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	testkit.Eventually(t, "all are at rest", func() bool { return b.metric("felix_storage_awake_logs") == 0 })
	testkit.Eventually(t, "no file is open but the lock", func() bool { return mem.OpenFiles() <= 1 })
	before, syncsBefore, calls := mem.Hash(), syncs(b), make(chan vfs.Op, 1)
	mem.OnOp(func(op vfs.Op) {
		select {
		case calls <- op:
		default:
		}
	})
	testkit.After(time.Duration(testkit.Size("idle_seconds")) * time.Second)
	mem.OnOp(nil)
	select {
	case op := <-calls:
		t.Errorf("an idle broker does %s on %s", op.Call, op.Name)
	default:
	}
	if mem.Hash() != before || syncs(b) != syncsBefore {
		t.Error("the disk changed")
	}
}

// The janitor comes by every millisecond, and what it does takes fifty: one run for each log, the others are skipped and counted, publishing
// goes on, and the broker stops in order in the middle of it.
//
// field case OPS-14 (one broker)
func TestOPS14_RunsOfTheJanitorDoNotPileUp(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, stream{name: "a", retention: route.Retention{Bytes: 16 << 10}}, stream{name: "b", retention: route.Retention{Age: time.Millisecond}, compress: true})
	s.store = rollEvery(8 << 10)
	s.disk = func(o *shardactor.DiskOptions) { o.RetentionInterval = time.Millisecond }
	b := s.start(vfs.NewMem())
	rule := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRemove}, Delay: 50 * time.Millisecond})
	c := s.connect()
	for n := range 300 {
		publish(t, c, "a", value("v", n))
		publish(t, c, "b", value("v", n))
	}
	testkit.Eventually(t, "runs are skipped and others are made", func() bool {
		return b.metric("felix_storage_retention_runs_skipped_total") > 0 && b.metric("felix_storage_retention_segments_total") > 2
	})
	if rule.Hits() == 0 {
		t.Error("nothing was slow")
	}
	b.stop()
	s.start(b.mem)
	c = s.connect()
	if oldest, next := bounds(t, c, "a"); next != 300 || oldest == 0 {
		t.Errorf("the log is %d to %d", oldest, next)
	}
}

// Retention of a large stream is tightened to a hundredth, by size and then by age, and lifted again, while it is read and written: the room
// comes back, publishing stays as quick as it was, readers are told the oldest offset, and a power cut in the middle leaves a log that opens.
//
// field case OPS-15 (one broker); matrix F1, F5; mission 284, mission 285, mission 289
func TestOPS15_TighteningRetentionOnALargeStreamIsSafe(t *testing.T) {
	s := swept(t, route.Retention{})
	s.store = rollEvery(64 << 10)
	mem := vfs.NewMem()
	b := s.start(mem)
	c := s.connect()
	large := make([]byte, 16<<10)
	for range testkit.Size("tightened_mib") * 64 {
		publish(t, c, "orders", string(large))
	}
	latency := func() time.Duration {
		var all []time.Duration
		for range 200 {
			begun := time.Now()
			publish(t, c, "orders", "small")
			all = append(all, time.Since(begun))
		}
		return testkit.Percentile(all, 99)
	}
	before := latency()
	slow := testkit.Must(s.connect().Subscribe(t.Context(), namespace, "orders", client.SubscribeOptions{From: client.Earliest(), Resume: client.ResumeNever}))(t)
	defer slow.Close()
	first, err := slow.Next(t.Context())
	if err != nil || first.Offset != 0 {
		t.Fatal(first.Offset, err)
	}
	used := mem.Used()
	removal := b.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRemove}, Block: true})
	s.streams[0].retention = route.Retention{Bytes: 1 << 20}
	b.apply()
	<-removal.Reached()
	held := latency() // nobody waits for a removal
	removal.Remove()
	during := latency()
	testkit.Eventually(t, "the room is given back", func() bool { return mem.Used() < 2<<20 })
	if limit := 2*before + 20*time.Millisecond; effort.Full() && max(held, during) > limit {
		t.Errorf("p99 of a publish was %v, %v while a removal stood still, and %v meanwhile", before, held, during)
	}
	oldest, _ := bounds(t, c, "orders")
	ctx, cancel := testkit.Within()
	defer cancel()
	for next := id.Offset(1); ; next++ { // what it has got already, and then the truth
		e, err := slow.Next(ctx)
		if err != nil {
			t.Logf("the slow reader got %d records and then %v", next, err)
			break
		}
		if e.Offset != next {
			t.Fatalf("event %d follows %d without a word", e.Offset, next-1)
		}
		if next > oldest {
			break // it was quicker
		}
	}
	s.streams[0].retention = route.Retention{Age: 10 * time.Millisecond}
	b.apply()
	image := b.powerCut(hard)
	b = s.start(image)
	c = s.connect()
	testkit.Eventually(t, "all but the newest segment is gone", func() bool { return segments(t, image, ".") == 1 })
	s.streams[0].retention = route.Retention{}
	b.apply()
	oldest, next := bounds(t, c, "orders")
	for range 200 {
		publish(t, c, "orders", string(large))
	}
	got := read(t, c, "orders", 0, oldest)
	if again, _ := bounds(t, c, "orders"); again != oldest || got[0].Offset != oldest || len(got) != int(next-oldest)+200 {
		t.Errorf("without a bound the log begins at %d, was %d, and holds %d records", again, oldest, len(got))
	}
	t.Logf("%d MiB before, p99 %v, meanwhile %v", used>>20, before, during)
}

// segments is how many of them lie in a folder of a disk, and in those below.
func segments(t testing.TB, m *vfs.Mem, folder string) (n int) {
	t.Helper()
	for _, e := range testkit.Must(m.ReadDir(folder))(t) {
		switch {
		case e.Kind == vfs.Directory:
			n += segments(t, m, path.Join(folder, e.Name))
		case strings.HasSuffix(e.Name, ".log"):
			n++
		}
	}
	return n
}

// Ten thousand and fifty empty records: a page ends at its bound of records, however many bytes it may have, and the next one goes on. A start
// after a power cut reads them once.
//
// matrix A25
func TestA25_EmptyRecordsArePagedByTheirNumber(t *testing.T) {
	s := newSite(t)
	b := s.start(vfs.NewMem())
	c := s.connect()
	const records = 10_050
	for range records / 50 {
		if _, err := c.PublishBatch(t.Context(), namespace, "orders", make([][]byte, 50)); err != nil {
			t.Fatal(err)
		}
	}
	s.start(b.powerCut(hard))
	c = s.connect()
	next := id.Offset(0)
	for _, want := range []int{10_000, 50} {
		page, err := c.Read(t.Context(), namespace, "orders", client.ReadOptions{From: next, MaxBytes: 1 << 40, MaxRecords: 1 << 30})
		if err != nil || len(page.Records) != want || page.Next != next.Add(uint64(want)) {
			t.Fatalf("from %d: %d records, to %d, %v; want %d", next, len(page.Records), page.Next, err, want)
		}
		next = page.Next
	}
}
