package shardactor

import (
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// movedBatch is a batch of copies on its way through the core.
type movedBatch struct {
	request
	batch batch.Batch
}

// flushPoll is the time between two looks at how far a log is durable, where appends are reported before they are.
const flushPoll = 20 * time.Millisecond

// work goes on with what the logs have to be done beside requests, and returns when it has to be called again; zero when that will be
// told.
func (d *cacheDisk) work(core *shardcore.Core, at shardcore.At) time.Time {
	var next time.Time
	if core.Serving() {
		for _, l := range d.logs() {
			next = sooner(next, l.compact(core, at, d.caching.claims(l.which)))
		}
		next = sooner(next, d.expire(core, at))
	}
	return next
}

// sooner is the earlier of two times, of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// compact has a compaction begun if there is enough to be gained, and performs what the one that is under way asks for. Copies are claimed
// through the core like the writes of clients, and take turns with them. It is given up with the shard, at any step.
func (l *keysLog) compact(core *shardcore.Core, at shardcore.At, claims *reading.Claims) time.Time {
	if l.table == nil {
		return time.Time{}
	}
	if l.compactor == nil {
		l.compactor = reading.NewCompactor(reading.CompactorOptions{
			Index: l.table.Index(), Policy: l.policy, Encode: l.encode, Pace: l.disks.compaction.take, Poll: flushPoll,
		})
	}
	for {
		_, durable, _ := l.file.Bounds()
		e, again := l.compactor.Next(at.Wall, reading.LogLook{
			Bytes: l.file.Size(), Durable: durable, Folded: l.table.Next(), Turn: keyed.Turn{Tail: core.Tail(l.which), Staged: claims.Staged},
		})
		if e == nil {
			return again
		}
		l.performCompaction(core, at, e)
	}
}

// performCompaction begins what an effect asks for.
func (l *keysLog) performCompaction(core *shardcore.Core, at shardcore.At, e keyed.Effect) {
	switch e := e.(type) {
	case keyed.SealLog:
		number := core.Number()
		l.compactor.Sealing(number, l.given)
		l.file.Seal(number)
	case keyed.Pause:
		l.news.tell(func(t *told) { t.turned = true }) // it comes behind whoever waits
	case keyed.ReadValues:
		l.readValues(e.Places)
	case keyed.AppendMoved:
		l.appendMoved(core, at, e)
	case keyed.FlushLog:
		l.file.Sync()
	case keyed.RetainFrom:
		l.cut, l.wanted = e.Offset, true
		l.retain()
	case keyed.Finished:
		l.endCompaction(e.Result)
	default:
		panic("shardactor: an effect of a compaction of unknown type")
	}
}

func (l *keysLog) endCompaction(r keyed.Result) {
	m := l.metrics
	m.CompactionBytes.Add(float64(r.Bytes))
	switch {
	case r.Err != nil:
		m.CompactionFailures.Inc()
	default:
		m.Compactions.Inc()
		l.saveKeys()
	}
	l.events.Emit(logCompacted{shard: l.number, name: l.name, kind: l.spec.Kind, result: r, bytes: l.file.Size()})
}

// compactionNews hands the compactor what the disk has told that it waits for.
func (l *keysLog) compactionNews(n *told) {
	c := l.compactor
	if c == nil {
		return
	}
	if n.turned {
		c.Turned()
	}
	if n.unsealed != nil {
		c.LogFailed(n.unsealed) // before what may be persisted behind it
	}
	c.Persisted(n.before)
	if n.failed != nil {
		c.LogFailed(n.failed.err) // a seal behind what failed is not where it was to be
	}
	c.Persisted(n.after)
	if n.poisoned != nil {
		c.LogFailed(n.poisoned)
	}
	switch r := n.compacted; {
	case r == nil:
	case r.err != nil:
		c.Answer(keyed.Failed{Err: r.err})
	case r.values != nil:
		c.Answer(keyed.Values{List: r.values})
	default:
		c.Answer(keyed.Retained{})
	}
}

// compacted is what came of a job of a compaction: values, or nil if it removed the head.
type compacted struct {
	values [][]byte
	err    error
}

type compactJob struct{ *diskFiles }

// compactionJob runs a step of a compaction in the disk pool.
func (l *keysLog) compactionJob(run func() compacted) {
	f := &l.diskFiles
	f.errand(&f.disks.moving, compactJob{f}, func() {
		r := run()
		f.news.tell(func(t *told) { t.compacted = &r })
	})
}

func (l *keysLog) readValues(places []keyed.Place) {
	f := &l.diskFiles
	l.compactionJob(func() (r compacted) {
		r.values = make([][]byte, 0, len(places))
		for _, p := range places {
			value, err := f.valueAt(p.Offset, string(p.Key))
			if err != nil {
				return compacted{err: err}
			}
			r.values = append(r.values, value)
		}
		return r
	})
}

// retain removes the head if that is wanted and nobody needs it. Whoever did calls it again; that is soon, since nothing new comes to be needed there.
func (l *keysLog) retain() {
	if l.wanted && (l.needs == nil || !l.needs(l.cut)) {
		l.wanted = false
		l.removeHead(l.cut)
	}
}

// removeHead removes what the log holds below an offset, in steps that leave the disk to others in between.
func (l *keysLog) removeHead(below id.Offset) {
	f := &l.diskFiles
	l.compactionJob(func() (r compacted) {
		for more := true; more && r.err == nil; {
			_, more, r.err = f.file.RetainTo(below, id.Offset(f.commit.Load()), janitorBytes)
		}
		base, _, _ := f.file.Bounds()
		f.news.tell(func(t *told) { t.trimmed = base })
		return r
	})
}

// appendMoved claims copies, at exactly the offset they were made for.
func (l *keysLog) appendMoved(core *shardcore.Core, at shardcore.At, e keyed.AppendMoved) {
	m := &movedBatch{batch: batch.Batch{Kind: batch.Records, Count: e.Count, Body: e.Body, PayloadBytes: len(e.Body)}}
	m.To(moveReply{l.compactor}, 0)
	m.again = func() { l.compactor.Answer(keyed.Stale{}) }
	m.write = shardcore.Write{
		Reply: &m.request, Log: l.which, Batch: &m.batch, Fold: true,
		Judge: func(base id.Offset, _ uint64) shardcore.Verdict {
			return shardcore.Verdict{Append: base == e.Base, Again: base != e.Base}
		},
	}
	core.Step(at, &m.write)
}

// moveReply takes the answer to copies.
type moveReply struct{ c *reading.Compactor }

func (r moveReply) Answer(_ shardcore.Token, a Answer) {
	if a.Refusal != nil {
		r.c.Answer(keyed.Failed{Err: &moveRefused{a.Refusal.Message}})
		return
	}
	r.c.Answer(keyed.Moved{})
}

func (moveReply) Flush() {}

// moveRefused says that copies could not be appended.
type moveRefused struct{ why string }

func (e *moveRefused) Error() string { return "append copies: " + e.why }
