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
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// logFile is one log of a durable shard, for the shard's turns. What happens outside of them is behind news, and the life of the files, which
// outlasts the shard's, in diskFiles.
type logFile struct {
	diskFiles
	which shardcore.Log
	since int64 // bytes appended since the last snapshot

	refusing bool // the last append that is known of has failed

	timed   uint64 // the append that is being timed, zero for none
	timedAt time.Time
}

// disk is the log of a durable stream's shard.
type disk struct {
	logFile
	tail  storage.MemLogOptions
	log   *durable.Log   // nil until it is open
	state *reading.State // the same
	room  func()
	// groups are those of the stream's consumers; nil until there is one.
	groups *groupLogs
	lost   lostEnds
	look   func()

	reported bool // the host knows that the shard may be used
	numbered bool // the log holds numbered publishes
	again    reopening
	last     *snapshot
}

// snapshot is what is kept of the producers, so that the next open need not read all headers.
type snapshot struct {
	asOf id.Offset
	body []byte
}

// diskOptions is what a log of a durable shard is opened with.
type diskOptions struct {
	disks   *Disks
	spec    disklog.Spec
	number  id.ShardID
	name    string
	events  actors.EventSink
	metrics *DiskMetrics
	report  func(report)
	// fold makes of a log what is kept of it in memory.
	fold func(f *diskFiles, file *disklog.Log) (*openedLog, error)
}

var (
	_ files          = (*disk)(nil)
	_ disklog.Notify = (*diskFiles)(nil)
)

func newDisk(o diskOptions, tail storage.MemLogOptions) *disk {
	o.fold = foldStream
	return &disk{logFile: logFile{diskFiles: diskFiles{diskOptions: o}}, tail: tail}
}

func (d *disk) begin(room, look func()) {
	d.room, d.look = room, look
	d.news.begin(look)
}

func (d *disk) open(g id.Generation) shardcore.Input {
	d.again.at = time.Time{}
	d.startOpen(g)
	return nil
}

func (d *disk) save(e shardcore.Save) bool {
	d.file.SaveBeginning(e.Seq, e.Generation, lostToKeep(d.lost.list))
	return false
}

func (d *disk) append(e shardcore.Append) bool {
	if len(e.Batches) == 0 {
		return false // voided before it left: nobody waits for it
	}
	if e.Log != shardcore.LogMain {
		d.groups.append(e)
		return false
	}
	for _, b := range e.Batches {
		d.numbered = d.numbered || b.ProducerID != 0
	}
	d.log.Append(e.Batches)
	d.give(e)
	if d.numbered && d.since >= snapshotEvery {
		d.dirty.Store(true)
	}
	return false
}

// give has batches written.
func (f *logFile) give(e shardcore.Append) {
	for _, b := range e.Batches {
		f.since += int64(b.Size())
	}
	if f.timed == 0 {
		f.timed, f.timedAt = e.Seq, f.disks.opts.Exec.Now()
	}
	f.file.Append(e.Seq, e.Batches)
}

func (d *disk) fold(_ shardcore.At, log shardcore.Log, commits []*batch.Batch) {
	if log != shardcore.LogMain {
		d.groups.fold(log, commits)
		return
	}
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

func (d *disk) readable(log shardcore.Log, end id.Offset) {
	if log != shardcore.LogMain {
		d.groups.readable(log, end)
		return
	}
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
		d.report(report{what: shardServes, handle: Handle{Log: d.log, History: d.log, State: d.state}, id: d.file.ID()})
	}
}

func (d *disk) reopenAt() time.Time { return d.again.at }

// work: a stream's log needs nothing that its janitor does not do, those of its groups are compacted.
func (d *disk) work(core *shardcore.Core, at shardcore.At) time.Time {
	if !core.Serving() {
		return time.Time{}
	}
	if d.groups == nil {
		return time.Time{}
	}
	return d.groups.work(core, at)
}

// take steps the core through what the disk has told. Lengths and positions are right after each step.
func (d *disk) take(core *shardcore.Core, at shardcore.At) {
	n := d.news.take()
	switch {
	case n.opened != nil:
		d.opened(n.opened)
	case n.openErr != nil:
		core.Step(at, d.openFailed(&d.again, n.openErr, at.Wall))
	}
	d.stall(core, at, n.stalled)
	if d.groups != nil {
		d.groups.take(core, at)
	}
	d.goOn(core, at, &n)
	d.complete(core, at, &n, func() { d.log.Discard(core.Tail(shardcore.LogMain)) })
	if n.trimmed > 0 {
		d.state.Trim(n.trimmed)
		if o := d.lost.found; o != nil {
			o.base = max(o.base, n.trimmed)
		}
		core.Step(at, shardcore.Trimmed{Base: n.trimmed})
	}
	d.poison(core, at, n.poisoned)
	if n.snapshot && d.lost.found == nil {
		d.saveProducers(core)
	}
}

// stall tells the core whether the disk answers, if that has changed.
func (f *logFile) stall(core *shardcore.Core, at shardcore.At, stalled bool) {
	if stalled == f.stalled {
		return
	}
	if f.stalled = stalled; stalled {
		core.Step(at, shardcore.DiskStalled{})
	} else {
		core.Step(at, shardcore.DiskBack{})
	}
}

// complete tells the core what became of appends; discard is called when a failure has taken back claims.
func (f *logFile) complete(core *shardcore.Core, at shardcore.At, n *told, discard func()) {
	if f.timed > 0 && (n.before >= f.timed || n.failed != nil) {
		f.metrics.appends.Observe(f.disks.opts.Exec.Now().Sub(f.timedAt).Seconds())
		f.timed = 0
	}
	if n.before > 0 {
		f.refusing = false
		core.Step(at, shardcore.PersistedTo{Log: f.which, Seq: n.before})
	}
	if n.failed != nil {
		if !f.refusing { // of a disk that is full it is told once
			f.events.Emit(logWriteFailed{shard: f.number, name: f.name, kind: f.spec.Kind, err: n.failed.err})
		}
		f.refusing = true
		core.Step(at, writeFailed(f.which, n.failed))
		discard()
	}
	if n.after > 0 {
		f.refusing = false
		core.Step(at, shardcore.PersistedTo{Log: f.which, Seq: n.after})
	}
}

// poison ends the shard if its log did.
func (f *logFile) poison(core *shardcore.Core, at shardcore.At, err error) {
	if err != nil {
		core.Step(at, shardcore.Poisoned{Reason: vfs.WithoutFolders(err)})
		f.report(report{what: shardPoisoned, err: err})
	}
}

func (d *disk) opened(o *openedLog) {
	d.again.retries = 0
	d.log = durable.New(d.file, d.tail)
	d.log.OnRoom(d.room)
	d.state, d.numbered = o.state, o.producers.Len() > 0
	d.commit.Store(uint64(o.tail))
	d.lost = lostEnds{found: o, end: o.tail, list: lostThatIsKept(d.file.Lost())}
	if o.grouped {
		d.needGroups().start(d.spec.Generation)
	}
}

// needGroups returns the logs of the stream's groups, which may not be open yet.
func (d *disk) needGroups() *groupLogs {
	if d.groups == nil {
		d.groups = newGroupLogs(d.diskOptions)
		for _, l := range d.groups.logs() {
			l.news.begin(d.look)
		}
	}
	return d.groups
}

// endGroups gives back what was held for what groups keep, now that the shard and its groups have ended, and returns their logs whose files are open,
// or are being opened.
func (d *disk) endGroups() []*keysLog {
	if d.groups == nil {
		return nil
	}
	d.groups.kept.leave()
	return d.groups.begunLogs()
}

// saveProducers saves what the shard remembers of producers: the janitor asks for it when much was appended since it was saved last.
func (d *disk) saveProducers(core *shardcore.Core) {
	asOf, body := core.ProducersSnapshot()
	if d.startSave(func() { d.saveSnapshot(snapshot{asOf, body}) }) {
		d.since = 0
		d.dirty.Store(false)
	}
}

// snapshotEvery is how much is appended between two snapshots of the producers, in bytes: what an open has to look through, in headers
// alone, beyond the newest one.
const snapshotEvery = 64 << 20

// finish keeps what the shard remembers of producers for the moment when its files are closed.
func (d *disk) finish(core *shardcore.Core) {
	if d.groups != nil {
		d.groups.finish()
	}
	if d.log == nil || !d.numbered || d.since == 0 {
		return
	}
	asOf, body := core.ProducersSnapshot()
	d.last = &snapshot{asOf, body}
}

func (d *disk) closeReaders(reason storage.CloseReason) {
	if d.log != nil {
		d.log.Close(reason)
	}
}

// end closes the files, with a last snapshot unless nobody will open them again.
func (d *disk) end(deleted bool, done func(error)) {
	logs := d.endGroups() // once: an open may fail at any moment
	each := joined(1+len(logs), done)
	for _, l := range logs {
		l.end(deleted, each)
	}
	if d.last == nil || deleted {
		d.endFiles(nil, each)
		return
	}
	last := *d.last
	d.endFiles(func() { d.saveSnapshot(last) }, each)
}

func (d *disk) setAside(done func(error)) {
	logs := d.endGroups()
	each := joined(1+len(logs), done)
	for _, l := range logs {
		l.filesAside(each)
	}
	d.filesAside(each)
}

func (d *disk) keep(r disklog.Retention, compress bool) { d.keepFiles(r, compress) }
