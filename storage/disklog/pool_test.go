package disklog

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// waiter hears of completions and lets a test wait for them.
type waiter struct {
	told
	news chan struct{}
}

func newWaiter() *waiter { return &waiter{news: make(chan struct{}, 1)} }

func (w *waiter) Persisted(seq uint64) {
	w.mu.Lock()
	w.persisted = seq
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *waiter) wait(t *testing.T, seq uint64) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		if p, _ := w.get(); p >= seq {
			return
		}
		select {
		case <-w.news:
		case <-late:
			t.Fatalf("seq %d was not reported: %v", seq, w.failed)
		}
	}
}

// realStore is a store in a directory of the machine, over a real pool.
func realStore(t *testing.T, edit func(*Options)) *Store {
	t.Helper()
	fs, err := vfs.NewOS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pool := diskpool.New(diskpool.Options{})
	t.Cleanup(func() { pool.Close() })
	o := Options{Exec: pool, Slots: diskpool.NewReadSlots(4), SegmentBytes: 64 << 10, Preallocate: true}
	if edit != nil {
		edit(&o)
	}
	s, err := OpenStore(fs, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	done := make(chan error, 1)
	l.Close(func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestLogsAreWrittenReadAndTrimmedAtOnce(t *testing.T) {
	s := realStore(t, nil)
	var group sync.WaitGroup
	for shard := range 3 {
		spec := testSpec
		spec.Shard, spec.Compress = uint32(shard), true
		w := newWaiter()
		l, err := s.Open(spec, w, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.SetRetention(Retention{Bytes: 300 << 10})
		stop := make(chan struct{})
		group.Go(func() { readAll(t, l, stop) })
		group.Go(func() { lookAfter(t, l, stop) })
		group.Go(func() {
			defer close(stop)
			write(t, l, w, 1500)
		})
	}
	group.Wait()
	for _, l := range s.opened() {
		closeLog(t, l)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) opened() (list []*Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.logs {
		list = append(list, l)
	}
	return list
}

// write appends as fast as it may: 32 are under way.
func write(t *testing.T, l *Log, w *waiter, n int) {
	next := id.Offset(0)
	for seq := uint64(1); seq <= uint64(n); seq++ {
		b := batchAt(next, 1+int(seq%3), 200)
		l.Append(seq, []*batch.Batch{b})
		next = b.End()
		if seq > 32 {
			w.wait(t, seq-32)
		}
		if _, durable, _ := l.Bounds(); seq > 64 && durable == 0 {
			t.Error("nothing is durable")
		}
	}
	w.wait(t, uint64(n))
}

func readAll(t *testing.T, l *Log, stop chan struct{}) {
	from := id.Offset(0)
	for {
		_, durable, _ := l.Bounds()
		page, err := l.Read(context.Background(), from, durable, 50, 20_000, nil)
		switch {
		case is[*TrimmedError](err):
			from, _, _ = l.Bounds()
		case err != nil:
			t.Error(err)
			return
		case len(page) > 0:
			from = page[len(page)-1].End()
		}
		select {
		case <-stop:
			return
		default:
			runtime.Gosched()
		}
	}
}

func lookAfter(t *testing.T, l *Log, stop chan struct{}) {
	for {
		_, durable, _ := l.Bounds()
		if _, _, err := l.Retain(0, durable, 128<<10); err != nil {
			t.Error(err)
		}
		if _, err := l.CompressSealed(context.Background(), 64<<10); err != nil {
			t.Error(err)
		}
		if base, durable, _ := l.Bounds(); durable >= base {
			l.SaveSnapshot("producers", durable, []byte("state")) // the log may have been trimmed past it
		}
		streamBeside(t, l)
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// streamBeside saves a streamed snapshot as of the very end of a log that is written to, and reads it.
func streamBeside(t *testing.T, l *Log) {
	_, _, tail := l.Bounds()
	if _, _, err := l.RetainTo(tail/2, tail, 64<<10); err != nil {
		t.Error(err)
	}
	body := fmt.Appendf(nil, "as of %d", tail)
	if err := save(l, "cache", tail, body); err != nil {
		t.Error(err)
		return
	}
	if _, durable, _ := l.Bounds(); durable < tail {
		t.Errorf("a snapshot as of %d was kept of a log that is durable up to %d", tail, durable)
	}
	if at, r, ok := l.OpenSnapshot("cache"); ok {
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || at != tail || string(got) != string(body) {
			t.Errorf("%q as of %d: %v", got, at, err)
		}
	} else if base, _, _ := l.Bounds(); base <= tail {
		t.Errorf("the snapshot as of %d is not there", tail)
	}
	if l.Size() <= 0 {
		t.Error("the log has no size")
	}
}

func TestIdleLogsOpenQuicklyAndCostLittle(t *testing.T) {
	const logs = 500
	mem := vfs.NewMem()
	r := newRig(t, mem, nil)
	spec := func(i int) Spec {
		s := testSpec
		s.Name = fmt.Sprint("stream-", i)
		return s
	}
	for i := range logs {
		l, _ := r.open(spec(i))
		l.Append(1, []*batch.Batch{batchAt(0, 1, 100)})
		r.exec.Run()
		l.Close(func(error) {})
		r.exec.Run()
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRig(t, mem, nil)
	heap := heapInUse()
	start := time.Now()
	n := &told{}
	for i := range logs {
		if _, err := r.store.Open(spec(i), n, nil); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(start)
	if each := (int64(heapInUse()) - int64(heap)) / logs; each > 1024 {
		t.Errorf("an idle log costs %d bytes", each)
	} else {
		t.Logf("%d bytes per log, opened in %s", each, took)
	}
	if mem.OpenFiles() != 1 || r.exec.Timers() != 0 { // the lock
		t.Fatal(mem.OpenFiles(), r.exec.Timers())
	}
	most := time.Minute
	if effort.Full() {
		most = 5 * time.Second
	}
	if took > most {
		t.Errorf("opening took %s", took)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAnAppendAllocatesNextToNothing(t *testing.T) {
	exec := &inline{}
	s := realStore(t, func(o *Options) { o.SegmentBytes, o.Exec = 1<<30, exec })
	l, err := s.Open(testSpec, &waiter{news: make(chan struct{}, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	seq := 0
	for _, each := range []int{1, 64} { // alone, and many in one write
		const runs = 50
		prepared := make([][]*batch.Batch, 0, (runs+2)*each)
		_, _, next := l.Bounds()
		for ; len(prepared) < cap(prepared); next++ {
			b := batchAt(next, 1, 100)
			b.Summarize()
			prepared = append(prepared, []*batch.Batch{b})
		}
		perRun := testing.AllocsPerRun(runs, func() {
			for range each {
				seq++
				l.Append(uint64(seq), prepared[0])
				prepared = prepared[1:]
			}
			exec.run()
		})
		t.Logf("%.2f allocations per append, %d at a time", perRun/float64(each), each)
		if perRun/float64(each) > 2 {
			t.Fail()
		}
	}
}

// inline is an executor that runs jobs when it is told to, and allocates nothing for them.
type inline struct{ jobs []diskpool.Job }

func (x *inline) Go(j diskpool.Job)                              { x.jobs = append(x.jobs, j) }
func (x *inline) After(time.Duration, func()) (stop func() bool) { return func() bool { return true } }
func (x *inline) Now() time.Time                                 { return time.Unix(1_800_000_000, 0) }

func (x *inline) run() {
	for len(x.jobs) > 0 {
		j := x.jobs[0]
		x.jobs = x.jobs[:copy(x.jobs, x.jobs[1:])]
		j.Run()
	}
}

// mission 281, and decision 25: a lone append pays for no second trip through a queue.
func TestALoneAppendIsWrittenAndSyncedByOneJob(t *testing.T) {
	exec := &inline{}
	s := realStore(t, func(o *Options) { o.Exec = exec })
	n := &told{}
	l, err := s.Open(testSpec, n, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Append(1, []*batch.Batch{batchAt(0, 1, 10)})
	if len(exec.jobs) != 1 || exec.jobs[0].Kind != diskpool.Write {
		t.Fatalf("%d jobs", len(exec.jobs))
	}
	job := exec.jobs[0]
	exec.jobs = nil
	job.Run()
	if n.persisted != 1 || len(exec.jobs) != 0 {
		t.Fatalf("persisted %d, %d more jobs", n.persisted, len(exec.jobs))
	}
}

func TestWritesGoOnBesideASyncThatHangs(t *testing.T) {
	dir, err := vfs.NewOS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fault := vfs.NewFault(dir, nil)
	pool := diskpool.New(diskpool.Options{})
	s, err := OpenStore(fault, Options{Exec: pool})
	if err != nil {
		t.Fatal(err)
	}
	w := newWaiter()
	l, err := s.Open(testSpec, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	hang := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Block: true})
	l.Append(1, []*batch.Batch{batchAt(0, 1, 10)})
	<-hang.Reached()
	for seq := uint64(2); seq < 6; seq++ {
		l.Append(seq, []*batch.Batch{batchAt(id.Offset(seq-1), 1, 10)})
	}
	for late := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		if _, durable, tail := l.Bounds(); tail == 5 {
			if p, _ := w.get(); p != 0 || durable != 0 {
				t.Fatal("acknowledged before its sync", p, durable)
			}
			break
		}
		if time.Now().After(late) {
			t.Fatal("writes wait for the sync")
		}
	}
	hang.Release()
	w.wait(t, 5)
	closeLog(t, l)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-pool.Close()
}
