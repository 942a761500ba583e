package crash

import (
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// A record that comes alone waits for nobody: its sync is issued as soon as it is written, and it costs hardly more than a plain write and
// fdatasync of as many bytes.
//
// mission 281
func TestALoneRecordIsSyncedAtOnceAndCostsLittleMoreThanABareWrite(t *testing.T) {
	gapMost, ratioMost, judged := 50*time.Microsecond, 1.2, 50
	if !effort.Full() {
		// Beside the other tests of a landing most records wait for a processor, and a few do not: if nothing else is waited for, those are as
		// quick as ever.
		gapMost, ratioMost, judged = 2*gapMost, 2*ratioMost, 1
	}
	if testkit.Raced {
		gapMost, ratioMost = 2*gapMost, 2*ratioMost
	}
	watched := &watchedFS{FS: must(vfs.NewOS(t.TempDir()))(t)}
	l, done := loneLog(t, watched)
	bare := must(watched.FS.Create("bare"))(t)
	defer func() { _ = bare.Close() }()
	var gaps, plain, ours []time.Duration
	stored := make([]byte, 72+recordBytes)
	for n := range uint64(size("lone_records")) {
		began := time.Now()
		_, err := bare.WriteAt(stored, int64(n)*int64(len(stored)))
		if err == nil {
			err = bare.Sync()
		}
		if err != nil {
			t.Fatal(err)
		}
		plain = append(plain, time.Since(began))
		began = time.Now()
		l.Append(n+1, []*batch.Batch{{Base: id.Offset(n), Count: 1, Generation: 1, Kind: batch.Records, AppendMicros: 1, Body: record(n), PayloadBytes: recordBytes - 4}})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		ours = append(ours, time.Since(began))
		gaps = append(gaps, watched.gap)
	}
	gap, ratio := testkit.Percentile(gaps, judged), float64(testkit.Percentile(ours, judged))/float64(testkit.Percentile(plain, judged))
	t.Logf("from write to sync p50 %v, p99 %v; until it is durable p50 %v, a bare write and sync %v; at p%d %v and %.2f times", testkit.Median(gaps), testkit.Percentile(gaps, 99), testkit.Median(ours), testkit.Median(plain), judged, gap, ratio)
	if gap > gapMost {
		t.Errorf("the sync of a lone record is issued %v after its write", gap)
	}
	if ratio > ratioMost {
		t.Errorf("a lone record takes %.2f times what a bare write and sync take", ratio)
	}
}

// loneLog is a log on a disk; done gets an answer for each append.
func loneLog(t testing.TB, fs vfs.FS) (l *disklog.Log, done chan error) {
	t.Helper()
	pool := diskpool.New(diskpool.Options{})
	store := must(disklog.OpenStore(fs, disklog.Options{Exec: pool, Preallocate: true}))(t)
	done = make(chan error, 1)
	l = must(store.Open(disklog.Spec{Kind: disklog.Stream, Tenant: "t", Namespace: "n", Name: "lone", Incarnation: 1, Generation: 1}, loneNotify(done), nil))(t)
	t.Cleanup(func() {
		closed := make(chan error, 1)
		l.Close(func(err error) { closed <- err })
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		<-pool.Close()
	})
	return l, done
}

// loneNotify hands on what becomes of one append at a time.
type loneNotify chan error

func (n loneNotify) Persisted(uint64)                { n <- nil }
func (n loneNotify) WriteFailed(_ uint64, err error) { n <- err }
func (n loneNotify) SealFailed(_ uint64, err error)  { n <- err }
func (n loneNotify) Poisoned(err error)              { n <- err }
func (n loneNotify) Stalled()                        {}
func (n loneNotify) Back()                           {}

// watchedFS notes the time from the end of the last write to a segment until its sync is issued. One append is under way at a time, and
// whoever looks at gap was told that it is over.
type watchedFS struct {
	vfs.FS
	gap time.Duration
}

func (f *watchedFS) Create(name string) (vfs.File, error) { return f.watch(name, f.FS.Create) }

func (f *watchedFS) Open(name string, write bool) (vfs.File, error) {
	return f.watch(name, func(name string) (vfs.File, error) { return f.FS.Open(name, write) })
}

func (f *watchedFS) watch(name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	file, err := open(name)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return file, err
	}
	return &watchedFile{File: file, fs: f}, nil
}

type watchedFile struct {
	vfs.File
	fs      *watchedFS
	written time.Time
}

func (f *watchedFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	f.written = time.Now()
	return n, err
}

func (f *watchedFile) Sync() error {
	f.fs.gap = time.Since(f.written)
	return f.File.Sync()
}
