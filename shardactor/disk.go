package shardactor

import (
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/durable"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// disk is the log of a durable shard, for the shard's turns. What happens outside of them is behind news, and the life of the files, which
// outlasts the shard's, in diskFiles.
type disk struct {
	diskFiles
	tail  storage.MemLogOptions
	log   *durable.Log   // nil until it is open
	state *reading.State // the same
	room  func()

	reported bool // the host knows that the shard may be used
	numbered bool // the log holds numbered publishes
	since    int64
	retries  int
	reopen   time.Time
	last     *snapshot

	timed   uint64 // the append that is being timed, zero for none
	timedAt time.Time
}

// snapshot is what is kept of the producers, so that the next open need not read all headers.
type snapshot struct {
	asOf id.Offset
	body []byte
}

// diskOptions is what the log of a durable shard is opened with.
type diskOptions struct {
	disks   *Disks
	spec    disklog.Spec
	number  id.ShardID
	name    string
	events  actors.EventSink
	metrics *DiskMetrics
	report  func(report)
}

var (
	_ backend        = (*disk)(nil)
	_ disklog.Notify = (*diskFiles)(nil)
)

func newDisk(o diskOptions, tail storage.MemLogOptions) *disk {
	return &disk{diskFiles: diskFiles{diskOptions: o}, tail: tail}
}

func (d *disk) begin(room, look func()) {
	d.room = room
	d.news.begin(look)
}

func (d *disk) open(g id.Generation) shardcore.Input {
	d.reopen = time.Time{}
	d.startOpen(g)
	return nil
}

func (d *disk) save(e shardcore.Save) bool {
	d.file.SaveGeneration(e.Seq, e.Generation)
	return false
}

func (d *disk) append(e shardcore.Append) bool {
	if len(e.Batches) == 0 {
		return false // voided before it left: nobody waits for it
	}
	for _, b := range e.Batches {
		d.since += int64(b.Size())
		d.numbered = d.numbered || b.ProducerID != 0
	}
	if d.numbered && d.since >= snapshotEvery {
		d.dirty.Store(true)
	}
	if d.timed == 0 {
		d.timed, d.timedAt = e.Seq, d.disks.opts.Exec.Now()
	}
	d.log.Append(e.Batches)
	d.file.Append(e.Seq, e.Batches)
	return false
}

func (d *disk) fold(commits []*batch.Batch) {
	for _, b := range commits {
		if err := d.state.Apply(b); err != nil {
			panic("shardactor: a commit of our own making: " + err.Error())
		}
	}
}

// admit refuses a commit for whose changes there is no memory.
func (d *disk) admit(b *batch.Batch) *wire.Refusal {
	c, err := reading.DecodeCommit(b.Body)
	if err != nil {
		panic("shardactor: a commit of our own making: " + err.Error())
	}
	if d.state == nil { // it waits for the log anyway, or is refused
		return nil
	}
	if err := d.state.Admit(c); err != nil {
		f := wire.Refuse(wire.CodeLimitExceeded, err.Error())
		return &f
	}
	return nil
}

func (d *disk) readable(end id.Offset) {
	d.commit.Store(uint64(end))
	d.log.SetReadable(end)
}

func (d *disk) released() id.Offset {
	if d.log == nil {
		return 0
	}
	return d.log.Released()
}

// serving tells the host, the first time, that the shard can be used.
func (d *disk) serving(on bool) {
	if on && !d.reported {
		d.reported = true
		d.report(report{what: shardServes, log: d.log, state: d.state, id: d.file.ID()})
	}
}

func (d *disk) reopenAt() time.Time { return d.reopen }

// take steps the core through what the disk has told. Lengths and positions are right after each step.
func (d *disk) take(core *shardcore.Core, at shardcore.At) {
	n := d.news.take()
	switch {
	case n.opened != nil:
		d.opened(n.opened)
		core.Step(at, n.opened.recovered)
	case n.openErr != nil:
		core.Step(at, d.openFailed(n.openErr, at.Wall))
	}
	if n.stalled != d.stalled {
		if d.stalled = n.stalled; n.stalled {
			core.Step(at, shardcore.DiskStalled{})
		} else {
			core.Step(at, shardcore.DiskBack{})
		}
	}
	if d.timed > 0 && (n.before >= d.timed || n.failed != nil) {
		d.metrics.appends.Observe(d.disks.opts.Exec.Now().Sub(d.timedAt).Seconds())
		d.timed = 0
	}
	if n.before > 0 {
		core.Step(at, shardcore.PersistedTo{Seq: n.before})
	}
	if f := n.failed; f != nil {
		core.Step(at, writeFailed(f))
		d.log.Discard(core.Tail())
	}
	if n.after > 0 {
		core.Step(at, shardcore.PersistedTo{Seq: n.after})
	}
	if n.trimmed > 0 {
		d.state.Trim(n.trimmed)
		core.Step(at, shardcore.Trimmed{Base: n.trimmed})
	}
	if n.poisoned != nil {
		core.Step(at, shardcore.Poisoned{Reason: n.poisoned.Error()})
		d.report(report{what: shardPoisoned, err: n.poisoned})
	}
	if n.snapshot {
		d.saveProducers(core)
	}
}

func (d *disk) opened(o *openedLog) {
	d.retries = 0
	d.log = durable.New(d.file, d.tail)
	d.log.OnRoom(d.room)
	d.state, d.numbered = o.state, o.recovered.Producers.Len() > 0
	d.commit.Store(uint64(o.recovered.Tails[shardcore.LogMain]))
}

// saveProducers saves what the shard remembers of producers: the janitor asks for it when much was appended since it was saved last.
func (d *disk) saveProducers(core *shardcore.Core) {
	if asOf, body := core.ProducersSnapshot(); d.startSave(snapshot{asOf, body}) {
		d.since = 0
		d.dirty.Store(false)
	}
}

// snapshotEvery is how much is appended between two snapshots of the producers, in bytes: what an open has to look through, in headers
// alone, beyond the newest one.
const snapshotEvery = 64 << 20

// finish keeps what the shard remembers of producers for the moment when its files are closed.
func (d *disk) finish(core *shardcore.Core) {
	if d.log == nil || !d.numbered || d.since == 0 {
		return
	}
	asOf, body := core.ProducersSnapshot()
	d.last = &snapshot{asOf, body}
}
