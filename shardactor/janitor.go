package shardactor

import (
	"context"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/wire/id"
)

const (
	janitorName = "janitor"
	// janitorRuns is how many logs are looked after at a time: one that hangs does not hold up the next, and most of the pool's workers
	// stay free for opens and rolls.
	janitorRuns = 2
	// janitorBytes is how much one run of a log may remove or rewrite; the log comes again after all others have.
	janitorBytes = 256 << 20
	// janitorPage is how many logs the janitor takes from the list at a time.
	janitorPage = 256
)

// janitorMessage is everything the janitor gets.
//
//sumtype:decl
type janitorMessage interface{ janitorMessage() }

// runDone says that a run of a log is over; more, that there is more to do. of is nil for the sweep of deleted logs.
type runDone struct {
	of   *diskFiles
	more bool
}

func (*runDone) janitorMessage() {}

// Janitor does what logs need from time to time: it removes what retention does not keep, compresses, has snapshots saved, and removes the
// files of deleted streams. It decides when; the work is done in jobs of the disk pool.
//
//	path     shards/janitor, child of Host          lanes    control
//	blocks   never                                  failure  stop; Host brings a new one up at the next run
//
//	in               from             then
//	runDone          the disk pool    the next log's run
type Janitor struct {
	disks   *Disks
	metrics *DiskMetrics
	ref     actors.Ref[janitorMessage]
	after   turn         // of the logs of this round, those up to here were taken
	taking  bool         // there may be more of them
	queue   []*diskFiles // to be looked after next; each is busy
	running int
	sweeps  bool // deleted logs are being removed
}

// Receive is one turn.
func (j *Janitor) Receive(t *actors.Turn) {
	switch t.Lifecycle() {
	case actors.Started:
		j.ref = actors.RefOf[janitorMessage](t)
		t.ArmWake(t.Now().Add(j.disks.opts.RetentionInterval))
	case actors.Stopping, actors.Stopped:
		for _, f := range j.queue {
			f.busy.Store(false)
		}
		j.queue = nil
		return
	}
	for _, m := range t.Messages() {
		if done, ok := m.(*runDone); ok {
			j.done(done)
		}
	}
	if t.Wake() {
		j.begin()
		t.ArmWake(t.Now().Add(j.disks.opts.RetentionInterval))
	}
	j.next(t.Now())
}

// begin begins a round. Logs that the round before has not come to are counted as skipped, and it goes on from there.
func (j *Janitor) begin() {
	if !j.taking {
		j.after, j.taking = turn{}, true
	}
	if !j.sweeps {
		j.sweeps = true
		j.disks.begin()
		j.disks.opts.Exec.Go(diskpool.Job{Device: j.disks.opts.Store.Device(), Kind: diskpool.Work, Owner: sweepJob{j}, Run: j.sweep})
	}
}

// Owners of the janitor's jobs.
type (
	sweepJob struct{ *Janitor }
	runJob   struct{ *diskFiles }
)

func (j *Janitor) sweep() {
	if err := j.disks.opts.Store.SweepDeleted(j.disks.opts.Exec.Now(), j.disks.opts.KeepDeleted); err != nil {
		j.metrics.JanitorFailures.Inc()
	}
	j.disks.ended()
	_ = j.ref.Complete(&runDone{})
}

func (j *Janitor) done(d *runDone) {
	if d.of == nil {
		j.sweeps = false
		return
	}
	j.running--
	if d.more {
		j.queue = append(j.queue, d.of)
		return
	}
	d.of.busy.Store(false)
}

// next starts runs while there are places and logs.
func (j *Janitor) next(now time.Time) {
	for j.running < janitorRuns {
		if len(j.queue) == 0 && !j.fill() {
			return
		}
		f := j.queue[0]
		j.queue = j.queue[1:]
		j.running++
		micros := uint64(now.UnixMicro())
		j.disks.begin()
		f.job(runJob{f}, func() {
			more := f.lookAfter(micros, j.metrics)
			j.disks.ended()
			_ = j.ref.Complete(&runDone{of: f, more: more})
		})
	}
}

// fill takes the next logs of the round. One whose last run is not over is skipped.
func (j *Janitor) fill() bool {
	for j.taking && len(j.queue) == 0 {
		page := j.disks.after(j.after, janitorPage)
		if len(page) < janitorPage {
			j.taking = false
		}
		for _, f := range page {
			j.after = f.turn()
			if !f.wanted() {
				continue
			}
			if !f.busy.CompareAndSwap(false, true) {
				j.metrics.Skipped.Inc()
				continue
			}
			j.queue = append(j.queue, f)
		}
	}
	return len(j.queue) > 0
}

// wanted reports whether there may be anything to do for a log.
func (f *diskFiles) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.spec.Retention
	return r.Bytes > 0 || r.Age > 0 || f.compress.Load() || f.dirty.Load() || f.ahead.Load() != nil
}

// lookAfter is one run. It reports whether there is more to do.
func (f *diskFiles) lookAfter(micros uint64, m *DiskMetrics) (more bool) {
	if s := f.ahead.Swap(nil); s != nil {
		f.saveSnapshot(*s)
	}
	if f.dirty.Load() {
		f.news.tell(func(t *told) { t.snapshot = true })
	}
	removed, more, err := f.file.Retain(micros, id.Offset(f.commit.Load()), janitorBytes)
	if removed.Segments > 0 {
		m.RemovedSegments.Add(float64(removed.Segments))
		m.RemovedBytes.Add(float64(removed.Bytes))
		base, _, _ := f.file.Bounds()
		f.news.tell(func(t *told) { t.trimmed = base })
	}
	if err == nil && !more && f.compress.Load() {
		_, err = f.file.CompressSealed(context.Background(), janitorBytes)
	}
	if err != nil {
		m.JanitorFailures.Inc()
		return false
	}
	return more
}
