package shardactor

import (
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// compacting drives a keyed.Compaction of one log, in the shard's turns: it has its effects performed and hands it what came of them. Copies
// are claimed through the core like the writes of clients, and take turns with them. It is given up with the shard, at any step, and with
// any failure of the log; another one begins when the log has grown on.
type compacting struct {
	steps *keyed.Compaction
	in    keyed.Input  // what came of the last effect
	ready bool         // in is it
	held  keyed.Effect // waits for its time, at
	at    time.Time

	seal    uint64    // number of the seal that is under way, 0 for none
	cut     id.Offset // that it makes
	pause   id.Offset // the fold has to come here
	pausing bool
	turned  bool      // others have had a turn since it began to pause
	flush   id.Offset // the log has to be durable up to here
	flushes bool
}

// movedBatch is a batch of copies on its way through the core.
type movedBatch struct {
	request
	batch batch.Batch
}

// compactionRetry is how much a log must have grown, beside a quarter, before the next compaction after one, in floors of its policy: one that
// could not remove anything is not begun again at once.
const compactionRetry = 1

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

// compact begins a compaction if there is enough to be gained, and drives the one that is under way as far as it goes.
func (l *cacheLog) compact(core *shardcore.Core, at shardcore.At, claims *reading.Claims) time.Time {
	if l.compacting == nil && !l.beginCompaction() {
		return time.Time{}
	}
	c := l.compacting
	for {
		if c.held != nil {
			if at.Wall.Before(c.at) {
				return c.at
			}
			e := c.held
			c.held = nil
			l.performCompaction(core, at, e)
		}
		if wait := l.settle(at); !c.ready {
			return wait
		}
		in := c.in
		c.in, c.ready = nil, false
		e := c.steps.Next(in, keyed.Turn{Tail: core.Tail(l.which), Staged: claims.Staged})
		if f, over := e.(keyed.Finished); over {
			l.endCompaction(f.Result)
			return time.Time{}
		}
		c.held, c.at = e, at.Wall
		if n := compactionBytes(e); n > 0 {
			c.at = l.disks.compaction.take(at.Wall, n)
		}
	}
}

// compactionBytes is what an effect costs of the budget of compactions: copies are read and written.
func compactionBytes(e keyed.Effect) int64 {
	if m, ok := e.(keyed.AppendMoved); ok {
		return 2 * int64(len(m.Body))
	}
	return 0
}

// beginCompaction reports whether one began.
func (l *cacheLog) beginCompaction() bool {
	if l.table == nil {
		return false
	}
	size := l.file.Size()
	if size <= l.quiet || !l.policy.Due(size, l.table.Index().Stats().LogLiveBytes) {
		return false
	}
	l.compacting = &compacting{steps: keyed.NewCompaction(l.table.Index(), keyed.CompactionOptions{Encode: l.encode}), ready: true}
	return true
}

func (l *cacheLog) endCompaction(r keyed.Result) {
	l.compacting = nil
	size := l.file.Size()
	l.quiet = size + max(size/4, compactionRetry*l.policy.Floor)
	m := l.metrics
	m.CompactionBytes.Add(float64(r.Bytes))
	switch {
	case r.Err != nil:
		m.CompactionFailures.Inc()
	default:
		m.Compactions.Inc()
		l.saveKeys()
	}
	l.events.Emit(logCompacted{shard: l.number, name: l.name, kind: l.spec.Kind, result: r, bytes: size})
}

// performCompaction begins what an effect asks for.
func (l *cacheLog) performCompaction(core *shardcore.Core, at shardcore.At, e keyed.Effect) {
	c := l.compacting
	switch e := e.(type) {
	case keyed.SealLog:
		c.seal, c.cut = core.Number(), l.given
		l.file.Seal(c.seal)
	case keyed.Pause:
		c.pausing, c.turned, c.pause = true, false, e.Until
		l.news.tell(func(t *told) { t.turned = true }) // it comes behind whoever waits
	case keyed.ReadValues:
		l.readValues(e.Places)
	case keyed.AppendMoved:
		l.appendMoved(core, at, e)
	case keyed.FlushLog:
		c.flushes, c.flush = true, e.Through
		l.file.Sync()
	case keyed.RetainFrom:
		l.removeHead(e.Offset)
	default:
		panic("shardactor: an effect of a compaction of unknown type")
	}
}

// answer is what came of the effect at hand.
func (c *compacting) answer(in keyed.Input) { c.in, c.ready = in, true }

// settle looks whether what an effect waits for has come, and returns when to look again if nobody will tell.
func (l *cacheLog) settle(at shardcore.At) time.Time {
	c := l.compacting
	switch {
	case c.pausing && c.turned && l.table.Next() >= c.pause:
		c.pausing = false
		c.answer(keyed.Resume{})
	case c.flushes:
		if _, durable, _ := l.file.Bounds(); durable < c.flush {
			return at.Wall.Add(flushPoll)
		}
		c.flushes = false
		c.answer(keyed.Flushed{})
	}
	return time.Time{}
}

// compactionNews takes what the disk has told that a compaction waits for.
func (l *cacheLog) compactionNews(n *told) {
	c := l.compacting
	if c == nil {
		return
	}
	c.turned = c.turned || n.turned
	if c.seal > 0 && max(n.before, n.after) >= c.seal {
		c.seal = 0
		c.answer(keyed.Sealed{Cut: c.cut})
	}
	if n.failed != nil || n.poisoned != nil {
		// What was claimed may be void, a seal with it: whatever the effect at hand waits for, the compaction is over.
		l.giveUp(n)
		return
	}
	switch r := n.compacted; {
	case r == nil:
	case r.err != nil:
		c.answer(keyed.Failed{Err: r.err})
	case r.values != nil:
		c.answer(keyed.Values{List: r.values})
	default:
		c.answer(keyed.Retained{})
	}
}

// giveUp ends a compaction whose log failed. One that has a job under way or copies claimed goes on until it is told of them.
func (l *cacheLog) giveUp(n *told) {
	c := l.compacting
	if c.seal == 0 && !c.pausing {
		return
	}
	c.seal, c.pausing = 0, false
	err := n.poisoned
	if n.failed != nil {
		err = n.failed.err
	}
	c.answer(keyed.Failed{Err: err})
}

// compacted is what came of a job of a compaction: values, or nil if it removed the head.
type compacted struct {
	values [][]byte
	err    error
}

type compactJob struct{ *diskFiles }

// compactionJob runs a step of a compaction in the disk pool.
func (l *cacheLog) compactionJob(run func() compacted) {
	f := &l.diskFiles
	f.disks.begin()
	f.job(compactJob{f}, func() {
		r := run()
		f.disks.ended()
		f.news.tell(func(t *told) { t.compacted = &r })
	})
}

func (l *cacheLog) readValues(places []keyed.Place) {
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

// removeHead removes what the log holds below an offset, in steps that leave the disk to others in between.
func (l *cacheLog) removeHead(below id.Offset) {
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
func (l *cacheLog) appendMoved(core *shardcore.Core, at shardcore.At, e keyed.AppendMoved) {
	c := l.compacting
	m := &movedBatch{batch: batch.Batch{Kind: batch.Records, Count: e.Count, Body: e.Body, PayloadBytes: len(e.Body)}}
	m.To(moveReply{c}, 0)
	m.again = func() { c.answer(keyed.Stale{}) }
	m.write = shardcore.Write{
		Reply: &m.request, Log: l.which, Batch: &m.batch, Fold: true,
		Judge: func(base id.Offset, _ uint64) shardcore.Verdict {
			return shardcore.Verdict{Append: base == e.Base, Again: base != e.Base}
		},
	}
	core.Step(at, &m.write)
}

// moveReply takes the answer to copies.
type moveReply struct{ c *compacting }

func (r moveReply) Answer(_ shardcore.Token, a Answer) {
	if a.Refusal != nil {
		r.c.answer(keyed.Failed{Err: &moveRefused{a.Refusal.Message}})
		return
	}
	r.c.answer(keyed.Moved{})
}

func (moveReply) Flush() {}

// moveRefused says that copies could not be appended.
type moveRefused struct{ why string }

func (e *moveRefused) Error() string { return "append copies: " + e.why }
