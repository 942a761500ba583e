package shardactor

import (
	"math"
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/durable"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// cacheDisk is what the shard of a log-backed cache keeps on disk: the log of its values, which watches read, and that of its counters.
type cacheDisk struct {
	values, sums keysLog
	tail         storage.MemLogOptions
	log          *durable.Log // of values; nil until it is open
	room         func()
	caching      *caching

	recovered bool // the core was told what the logs hold, or that one could not be opened
	reported  bool
	again     reopening
	cold      coldReads
	ending    reading.Ending
	metrics   *Metrics
}

var _ files = (*cacheDisk)(nil)

func newCacheDisk(o diskOptions, tail storage.MemLogOptions, c *caching, m *Metrics) *cacheDisk {
	d := &cacheDisk{tail: tail, caching: c, metrics: m}
	o.spec.Retention, o.spec.Compress = disklog.Retention{}, false // those are of streams: what a cache holds is taken from its logs by compactions alone
	o.fold = foldCache
	d.values = keysLog{logFile: logFile{diskFiles: diskFiles{diskOptions: o}}, policy: keyed.CachePolicy(), encode: reading.EncodeMove, needs: d.cold.needs}
	d.cold.share = roomShare{room: &o.disks.removed, granted: func() { d.values.news.tell(func(t *told) { t.room = true }) }}
	d.values.spec.Kind, d.values.spec.GivenOnce = disklog.Cache, true // offsets are versions, and places of watches
	o.fold = foldCounters
	d.sums = keysLog{logFile: logFile{diskFiles: diskFiles{diskOptions: o}, which: shardcore.LogCounters}, policy: keyed.CounterPolicy(), encode: reading.EncodeCheckpoint}
	d.sums.spec.Kind = disklog.CountersLog
	// Who knows the identity of the one log knows that both were made.
	d.sums.spec.Log, d.sums.spec.MustExist = id.LogID{}, !o.spec.Log.IsZero()
	return d
}

func (d *cacheDisk) logs() [2]*keysLog { return [2]*keysLog{&d.values, &d.sums} }

func (d *cacheDisk) of(log shardcore.Log) *keysLog {
	if log == shardcore.LogCounters {
		return &d.sums
	}
	return &d.values
}

func (d *cacheDisk) begin(room, look func()) {
	d.room = room
	for _, l := range d.logs() {
		l.news.begin(look)
	}
}

// open opens what is not open yet.
func (d *cacheDisk) open(g id.Generation) shardcore.Input {
	d.again.at, d.recovered = time.Time{}, false
	d.values.spec.Base = d.values.disks.cacheBase()
	for _, l := range d.logs() {
		if !l.opened && !l.isOpening() {
			l.startOpen(g)
		}
	}
	return d.bothOpen()
}

// bothOpen returns what the logs hold once both are open.
func (d *cacheDisk) bothOpen() shardcore.Input {
	if d.recovered || !d.values.opened || !d.sums.opened {
		return nil
	}
	d.recovered = true
	r := shardcore.Recovered{Base: d.values.base}
	r.Tails[shardcore.LogMain], r.Tails[shardcore.LogCounters] = d.values.given, d.sums.given
	return r
}

func (d *cacheDisk) save(e shardcore.Save) bool {
	d.values.file.SaveGeneration(e.Seq, e.Generation)
	return false
}

func (d *cacheDisk) append(e shardcore.Append) bool {
	n := len(e.Batches)
	if n == 0 {
		return false // voided before it left: nobody waits for it
	}
	for _, b := range e.Batches {
		b.Summarize() // a snapshot of the keys is told from one of another history by its last batch
	}
	l := d.of(e.Log)
	if e.Log == shardcore.LogMain {
		d.log.Append(e.Batches)
	}
	l.give(e)
	l.given = e.Batches[n-1].End()
	if e.Log == shardcore.LogMain {
		l.disks.gave(l.given)
	}
	l.wantSnapshot()
	return false
}

// admit: there are no commits in a cache.
func (d *cacheDisk) admit(*batch.Batch) *wire.Refusal { return nil }

func (d *cacheDisk) fold(_ shardcore.At, log shardcore.Log, batches []*batch.Batch) {
	c := d.caching
	for _, b := range batches {
		var err error
		if log == shardcore.LogCounters {
			err = c.counters.Apply(b)
		} else {
			err = c.keyed.Apply(b, nil)
		}
		if err != nil {
			panic("shardactor: a record of our own making: " + err.Error())
		}
	}
	if n := len(batches); n > 0 {
		c.claims(log).Settle(batches[n-1].End())
	}
}

func (d *cacheDisk) readable(log shardcore.Log, end id.Offset) {
	d.of(log).commit.Store(uint64(end))
	if log == shardcore.LogMain {
		d.log.SetReadable(end)
	}
}

func (d *cacheDisk) released() id.Offset {
	if d.log == nil {
		return 0
	}
	return d.log.Released()
}

func (d *cacheDisk) serving(on bool) {
	if on && !d.reported {
		d.reported = true
		h := Handle{Log: d.log, History: d.log, Cache: d.caching.keyed, Keyed: d.caching.keyed, Counters: d.caching.counters}
		d.values.report(report{what: shardServes, handle: h, id: d.values.file.ID()})
	}
}

func (d *cacheDisk) reopenAt() time.Time { return d.again.at }

// take steps the core through what the disk has told of each log.
func (d *cacheDisk) take(core *shardcore.Core, at shardcore.At) {
	stalled := false
	for _, l := range d.logs() {
		n := l.news.take()
		switch {
		case n.opened != nil:
			d.opened(l, n.opened)
		case n.openErr != nil:
			d.recovered = true
			core.Step(at, l.openFailed(&d.again, n.openErr, at.Wall))
		}
		stalled = stalled || n.stalled
		d.caching.void[l.which] = math.MaxUint64
		l.complete(core, at, &n, func() {
			// Writes that waited for what is void may have been claimed in its place by now: those are yet to be appended.
			l.given = min(core.Tail(l.which), d.caching.void[l.which])
			if l.which == shardcore.LogMain {
				d.log.Discard(l.given)
			}
		})
		if n.trimmed > 0 {
			core.Step(at, shardcore.Trimmed{Log: l.which, Base: n.trimmed})
		}
		l.poison(core, at, n.poisoned)
		if n.snapshot {
			l.saveKeys()
		}
		l.compactionNews(&n)
		d.coldNews(&n)
	}
	d.values.stall(core, at, stalled)
	if in := d.bothOpen(); in != nil {
		core.Step(at, in)
	}
}

// opened takes a log that was opened.
func (d *cacheDisk) opened(l *keysLog, o *openedLog) {
	l.opened, l.given, l.base = true, o.tail, o.base
	l.commit.Store(uint64(o.tail))
	c := d.caching
	if l.which == shardcore.LogCounters {
		l.table = o.counters.Fold()
		c.counters, c.sums = o.counters, reading.NewCounterLedger(o.counters)
		return
	}
	l.disks.gave(o.tail)
	l.table = o.cache.Fold()
	d.log = durable.New(l.file, d.tail)
	d.log.OnRoom(d.room)
	c.keyed, c.main = o.cache, reading.NewLedger(o.cache)
}

// finish keeps what the logs' keys are for the moment when the files are closed.
func (d *cacheDisk) finish(*shardcore.Core) {
	for _, l := range d.logs() {
		if l.opened && l.since >= keysWorth && l.table.Complete() {
			l.last = keyed.NewSnapshot(l.table)
		}
	}
}

func (d *cacheDisk) closeReaders(reason storage.CloseReason) {
	if d.log != nil {
		d.log.Close(reason)
	}
}

func (d *cacheDisk) end(deleted bool, done func(error)) {
	d.cold.share.end()
	each := joined(2, done)
	for _, l := range d.logs() {
		l.end(deleted, each)
	}
}

func (d *cacheDisk) setAside(done func(error)) {
	each := joined(2, done)
	for _, l := range d.logs() {
		l.filesAside(each)
	}
}

// keep has nothing to change: a cache keeps what it holds.
func (d *cacheDisk) keep(disklog.Retention, bool) {}

func (d *cacheDisk) say(x report)  { d.values.report(x) }
func (d *cacheDisk) label() string { return d.values.name }
