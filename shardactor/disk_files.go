package shardactor

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/wire/id"
)

// diskFiles are the files of one log of a durable shard, from the open to the end. The shard asks for the open; the host ends them, once, after
// the shard has terminated, also while the open is still under way.
//
//  1. file is set when the open has succeeded, and never again; the shard reads it only after it was told;
//  2. from then on it is in the list for the janitor, until end;
//  3. over is called, once, when an open that was overtaken by end is done.
type diskFiles struct {
	diskOptions
	news     news
	commit   atomic.Uint64            // end of what is committed: retention does not go beyond it
	compress atomic.Bool              // sealed segments are to be compressed
	dirty    atomic.Bool              // enough was appended for a new snapshot
	busy     atomic.Bool              // the janitor has a run of this log under way
	ahead    atomic.Pointer[snapshot] // one that waits for a sync
	saving   atomic.Bool              // a snapshot is being saved

	stalled bool // as the shard knows it

	mu      sync.Mutex
	opening bool
	file    *disklog.Log
	made    *openedLog // what the open has made, to be closed with the files
	over    func()
	hangs   int // jobs of this log that take too long
	ended   bool
}

// startOpen opens the log in a job of the disk pool; one that has to be made is made at generation g.
func (f *diskFiles) startOpen(g id.Generation) {
	f.mu.Lock()
	f.opening = true
	f.spec.Generation = g
	spec := f.spec
	f.mu.Unlock()
	f.job(openJob{f}, func() { f.openLog(spec, f.finishOpen) })
}

// isBegun reports whether the files are open, or are being opened.
func (f *diskFiles) isBegun() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opening || f.file != nil
}

func (f *diskFiles) isOpening() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opening
}

// job runs something of this log in the disk pool. How long it waits there says nothing about the disk: at the start of a node all logs
// are opened, some at a time.
func (f *diskFiles) job(owner any, run func()) {
	f.disks.opts.Exec.Go(diskpool.Job{Device: f.disks.opts.Store.Device(), Kind: diskpool.Work, Owner: owner, Run: run})
}

// Owners of jobs: each kind has at most one job per log.
type (
	openJob struct{ *diskFiles }
	saveJob struct{ *diskFiles }
	endJob  struct{ *diskFiles }
)

func (f *diskFiles) finishOpen(o *openedLog, err error) {
	f.mu.Lock()
	f.opening = false
	if err == nil {
		f.file, f.made = o.file, o
		f.file.SetRetention(f.spec.Retention) // it may have changed meanwhile
	}
	over := f.over
	f.mu.Unlock()
	switch {
	case over != nil:
		over()
	case err != nil:
		f.news.tell(func(t *told) { t.openErr = err })
	default:
		f.news.tell(func(t *told) { t.opened = o })
		f.mu.Lock()
		if !f.ended {
			f.disks.add(f) // now the janitor may have news of it too
		}
		f.mu.Unlock()
	}
}

// endFiles writes what is queued, calls last in a job if it is not nil, and closes the files; then done is called, from another goroutine or
// at once. The shard has terminated.
func (f *diskFiles) endFiles(last func(), done func(error)) {
	f.mu.Lock()
	f.ended = true
	if f.hangs > 0 {
		f.metrics.stalled(false)
	}
	opening := f.opening
	if opening {
		f.over = func() { f.close(last, done) }
	}
	f.mu.Unlock()
	f.disks.remove(f)
	if !opening {
		f.close(last, done)
	}
}

func (f *diskFiles) close(last func(), done func(error)) {
	f.mu.Lock()
	file, made := f.file, f.made
	f.mu.Unlock()
	if file == nil {
		done(nil) // it was never opened
		return
	}
	end := func() {
		file.Close(done) // from here on no snapshot is kept: one that is being written must not be of keys that are given back
		made.close()
	}
	if last == nil {
		end()
		return
	}
	f.job(endJob{f}, func() {
		last()
		end()
	})
}

// filesAside takes the closed files out of the way, for good. done is called like that of endFiles.
func (f *diskFiles) filesAside(done func(error)) {
	if f.file == nil {
		done(nil) // it was never opened: nothing of it is known
		return
	}
	f.file.SetAside(done)
}

// startSave saves a snapshot in a job, unless one is being saved.
func (f *diskFiles) startSave(save func()) bool {
	if !f.saving.CompareAndSwap(false, true) {
		return false
	}
	f.job(saveJob{f}, func() {
		save()
		f.saving.Store(false)
	})
	return true
}

// saveSnapshot writes a snapshot of producers. Where appends are acknowledged before they are synced it may be ahead of what is on the device: then it waits for
// the janitor's next run. It only spares the next open some reading, so that a failure is counted and no more.
func (f *diskFiles) saveSnapshot(s snapshot) {
	if _, durable, _ := f.file.Bounds(); s.asOf > durable {
		f.ahead.Store(&s)
		f.file.Sync()
		return
	}
	if err := f.file.SaveSnapshot(producersSnapshot, s.asOf, s.body); err != nil {
		f.metrics.SnapshotsFailed.Inc()
	}
}

// producersSnapshot is the name of the snapshot of producers.
const producersSnapshot = "producers"

// keepFiles changes what the log keeps, and how, now or when it is opened.
func (f *diskFiles) keepFiles(r disklog.Retention, compress bool) {
	f.compress.Store(compress)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spec.Retention = r
	if f.file != nil {
		f.file.SetRetention(r)
	}
}

// Persisted implements disklog.Notify.
func (f *diskFiles) Persisted(seq uint64) { f.news.tell(func(t *told) { t.persisted(seq) }) }

// WriteFailed implements disklog.Notify.
func (f *diskFiles) WriteFailed(seq uint64, err error) {
	f.news.tell(func(t *told) { t.writeFailed(seq, err) })
}

// SealFailed implements disklog.Notify.
func (f *diskFiles) SealFailed(_ uint64, err error) {
	f.news.tell(func(t *told) { t.unsealed = err })
}

// Poisoned implements disklog.Notify.
func (f *diskFiles) Poisoned(err error) {
	f.metrics.Poisoned.Inc()
	f.news.tell(func(t *told) { t.poisoned = err })
}

// Stalled implements disklog.Notify.
func (f *diskFiles) Stalled() { f.hang(1) }

// Back implements disklog.Notify.
func (f *diskFiles) Back() { f.hang(-1) }

// hang counts the jobs of this log that take too long; the shard stalls while there is one.
func (f *diskFiles) hang(d int) {
	f.mu.Lock()
	was := f.hangs > 0
	f.hangs += d
	is, ended := f.hangs > 0, f.ended
	f.mu.Unlock()
	if was == is || ended {
		return
	}
	f.metrics.stalled(is)
	f.events.Emit(diskStalled{shard: f.number, name: f.name, back: !is})
	f.news.tell(func(t *told) { // as it is now: the calls of two jobs may cross
		f.mu.Lock()
		defer f.mu.Unlock()
		t.stalled = f.hangs > 0
	})
}

func (f *diskFiles) say(x report)  { f.report(x) }
func (f *diskFiles) label() string { return f.name }

// joined returns a function that calls done when it was called n times, with all errors.
func joined(n int, done func(error)) func(error) {
	var mu sync.Mutex
	var all []error
	return func(err error) {
		mu.Lock()
		all = append(all, err)
		last := len(all) == n
		mu.Unlock()
		if last {
			done(errors.Join(all...))
		}
	}
}
