package reading

import (
	"time"

	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// Compactor decides when a log of keys is compacted, and what of a compaction is done next and not before when. It knows its log by what it is
// told: Next asks it what to do, and whatever comes of that is handed to it by one of the other methods, in any later call or at once.
//
//  1. one effect at a time is under way: the next one comes after the answer to the one before;
//  2. copies are handed out in the turn that they were made in, so that no write comes between, and nothing follows before they are paid for;
//  3. a failure of the log ends the compaction;
//  4. after one that ended the log has to grow by a quarter, and by Policy.Floor, for the next; or, since a full disk lets no log grow, a while has to
//     pass if it removed nothing: CompactionRetry, and twice as long each time in a row, up to CompactionRetryMost.
type Compactor struct {
	opts  CompactorOptions
	quiet int64         // no compaction begins while the log is no longer than so many bytes
	pause time.Duration // unless the last one did not end well, and this has passed since;
	retry time.Time     // that is now
	run   *compaction
}

// Pauses after compactions that failed, the first one and the longest.
const (
	CompactionRetry     = time.Minute
	CompactionRetryMost = time.Hour
)

// CompactorOptions are what a Compactor is made with.
type CompactorOptions struct {
	Index  *keyed.Index
	Policy keyed.Policy
	Encode keyed.Encoder
	// Pace books bytes that are read or written now, and returns when they are paid for: what follows is to wait until then. nil: at once.
	Pace func(now time.Time, bytes int64) time.Time
	// Poll is the time between two looks at how far a log is durable while a flush is waited for.
	Poll time.Duration
}

// LogLook is what its driver knows of the log in the turn in which Next is called.
type LogLook struct {
	Bytes   int64     // of the log
	Durable id.Offset // below it everything is on the device
	Folded  id.Offset // below it everything is in the index
	Turn    keyed.Turn
}

// compaction is one that is under way.
type compaction struct {
	steps *keyed.Compaction
	in    keyed.Input // what came of the last effect
	ready bool        // in is it
	paid  time.Time   // when the last copies are

	seal    uint64    // number of the seal that is under way, 0 for none
	cut     id.Offset // that it makes
	pause   id.Offset // the fold has to come here
	pausing bool
	turned  bool      // others have had a turn since it began to pause
	flush   id.Offset // the log has to be durable up to here
	flushes bool
}

// NewCompactor returns one for a log that was just opened.
func NewCompactor(o CompactorOptions) *Compactor {
	if o.Pace == nil {
		o.Pace = func(now time.Time, _ int64) time.Time { return now }
	}
	return &Compactor{opts: o}
}

// Running reports whether a compaction is under way.
func (c *Compactor) Running() bool { return c.run != nil }

// Next begins a compaction if there is enough to be gained, and returns the next effect to be performed: keyed.Finished when a compaction is
// over, nil when there is nothing to do now. In that case again is when to call once more, zero if something that is told will be the reason.
func (c *Compactor) Next(now time.Time, log LogLook) (e keyed.Effect, again time.Time) {
	if c.run == nil {
		if again, begun := c.begin(now, log.Bytes); !begun {
			return nil, again
		}
	}
	r := c.run
	if again := r.settle(now, &log, c.opts.Poll); !r.ready {
		return nil, again
	}
	if now.Before(r.paid) {
		return nil, r.paid
	}
	in := r.in
	r.in, r.ready = nil, false
	e = r.steps.Next(in, log.Turn)
	if f, over := e.(keyed.Finished); over {
		c.end(now, log.Bytes, &f.Result)
		return e, time.Time{}
	}
	if n := compactionBytes(e); n > 0 {
		r.paid = c.opts.Pace(now, n)
	}
	r.begun(e)
	return e, time.Time{}
}

// begin reports whether a compaction began; again is when one will, if time alone is the reason that none did.
func (c *Compactor) begin(now time.Time, bytes int64) (again time.Time, begun bool) {
	small := bytes <= c.quiet
	if small && c.pause == 0 || !c.opts.Policy.Due(bytes, c.opts.Index.Stats().LogLiveBytes) {
		return time.Time{}, false
	}
	if small && now.Before(c.retry) {
		return c.retry, false
	}
	c.run = &compaction{steps: keyed.NewCompaction(c.opts.Index, keyed.CompactionOptions{Encode: c.opts.Encode}), ready: true}
	return time.Time{}, true
}

// end decides when the next compaction may begin.
func (c *Compactor) end(now time.Time, bytes int64, r *keyed.Result) {
	c.run = nil
	c.quiet = bytes + max(bytes/4, c.opts.Policy.Floor)
	if r.Err == nil && r.Left == 0 {
		c.pause = 0
		return
	}
	c.pause = min(max(2*c.pause, CompactionRetry), CompactionRetryMost)
	c.retry = now.Add(c.pause)
}

// compactionBytes is what an effect costs of the budget of compactions: copies are read and written.
func compactionBytes(e keyed.Effect) int64 {
	if m, ok := e.(keyed.AppendMoved); ok {
		return 2 * int64(len(m.Body))
	}
	return 0
}

// begun notes what an effect that is handed out waits for, where no answer is handed in.
func (r *compaction) begun(e keyed.Effect) {
	switch e := e.(type) {
	case keyed.Pause:
		r.pausing, r.turned, r.pause = true, false, e.Until
	case keyed.FlushLog:
		r.flushes, r.flush = true, e.Through
	case keyed.SealLog, keyed.ReadValues, keyed.AppendMoved, keyed.RetainFrom, keyed.Finished:
	}
}

func (r *compaction) answer(in keyed.Input) { r.in, r.ready = in, true }

// settle looks whether what an effect waits for has come, and returns when to look again if nobody will tell.
func (r *compaction) settle(now time.Time, log *LogLook, poll time.Duration) time.Time {
	switch {
	case r.pausing && r.turned && log.Folded >= r.pause:
		r.pausing = false
		r.answer(keyed.Resume{})
	case r.flushes && log.Durable < r.flush:
		return now.Add(poll)
	case r.flushes:
		r.flushes = false
		r.answer(keyed.Flushed{})
	}
	return time.Time{}
}

// Sealing says that the seal which was asked for is a request of that number to the log, not 0, and what it cuts.
func (c *Compactor) Sealing(number uint64, cut id.Offset) { c.run.seal, c.run.cut = number, cut }

// Persisted says that requests to the log up to a number are done.
func (c *Compactor) Persisted(number uint64) {
	if r := c.run; r != nil && r.seal > 0 && number >= r.seal {
		r.seal = 0
		r.answer(keyed.Sealed{Cut: r.cut})
	}
}

// Turned says that others had a turn since a pause was asked for.
func (c *Compactor) Turned() {
	if c.run != nil {
		c.run.turned = true
	}
}

// Answer hands in what came of reading values, of appending copies, or of removing the head.
func (c *Compactor) Answer(in keyed.Input) { c.run.answer(in) }

// LogFailed says that what was claimed may be void, a seal with it: the compaction is over. One that has a job under way or copies claimed goes
// on until it is told of them.
func (c *Compactor) LogFailed(err error) {
	r := c.run
	if r == nil || r.seal == 0 && !r.pausing {
		return
	}
	r.seal, r.pausing = 0, false
	r.answer(keyed.Failed{Err: err})
}
