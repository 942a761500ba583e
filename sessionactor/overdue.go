package sessionactor

import (
	"context"
	"sync"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// Overdue knows, for a node, which logs have reads that took longer than Options.ReadWait and have not come back. Such a read was answered, and
// holds no place any more, only its goroutine and what the disk keeps of it. A log that has some is not read until one of them comes
// back: its disk hangs. Safe for concurrent use.
type Overdue struct {
	mu   sync.Mutex
	logs map[storage.History]int // none is 0
}

// NewOverdue returns one without reads.
func NewOverdue() *Overdue { return &Overdue{logs: map[storage.History]int{}} }

// overdueMost is how many overdue reads a log has when it is left alone: more than one, because a single read may have met a bad spot. It may
// have more of them: those that began before the first was overdue.
const overdueMost = 4

// hangs reports whether a log is to be left alone.
func (o *Overdue) hangs(log storage.History) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.logs[log] >= overdueMost
}

func (o *Overdue) add(log storage.History) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logs[log]++
}

func (o *Overdue) back(log storage.History) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logs[log]--; o.logs[log] == 0 {
		delete(o.logs, log)
	}
}

// readTurn is one read that has its places. It ends once: when it comes back, or when it is overdue.
type readTurn struct {
	lane    *lane
	read    logRead
	cancel  context.CancelFunc
	timer   actors.Timer
	ended   bool // under the lane's lock, as what follows
	overdue bool // it was answered, and another goroutine reads what is next
}

// beginRead begins the turn of the read in hand; ctx is for it alone.
func (l *lane) beginRead(ctx context.Context, r logRead) (context.Context, *readTurn) {
	ctx, cancel := context.WithCancel(ctx)
	t := &readTurn{lane: l, read: r, cancel: cancel}
	if d := l.session.opts.ReadWait; d > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		t.timer = l.session.opts.Clock.AfterFunc(d, t.giveUp)
	}
	return ctx, t
}

// end is called once, when the read came back. False: it was overdue, and nothing is left to do.
func (t *readTurn) end() bool {
	t.cancel()
	t.lane.mu.Lock()
	defer t.lane.mu.Unlock()
	t.ended = true
	if t.overdue {
		o := t.lane.session.opts
		o.Overdue.back(t.read.log)
		o.Metrics.ReadsOverdue.Dec()
		return false
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	return true
}

// giveUp answers a read that takes too long, gives its places back, and lets another goroutine go on with those behind it. What waits for a
// slot is called back; what the disk has is left to it.
func (t *readTurn) giveUp() {
	l := t.lane
	l.mu.Lock()
	if t.ended {
		l.mu.Unlock()
		return
	}
	t.overdue = true
	o := l.session.opts
	o.Overdue.add(t.read.log)
	o.Metrics.ReadsOverdue.Inc()
	l.reads.inHand, l.reads.stop = logRead{}, nil
	if l.reads.running = len(l.reads.queue) > 0; l.reads.running {
		if l.reads.running = l.session.pump("log reads", l.readLogs); !l.reads.running {
			l.dropReads(connClosing())
		}
	}
	t.read.refuse(l, hanging())
	l.flush()
	l.mu.Unlock()
	t.cancel()
	l.releasePlaces()
}

// hanging is the refusal of a read whose disk does not answer. Nothing says when it will.
func hanging() wire.Refusal {
	return wire.Refuse(wire.CodeStorage, "the disk does not answer; repeat the read after a pause").WithRetry(wire.RetryAfter).WithReason(wire.ReasonDiskStalled, hangingPause)
}

const hangingPause = 1000 // milliseconds

func connClosing() wire.Refusal {
	return wire.Refuse(wire.CodeShardUnavailable, "the connection is closing; connect again")
}

// takePlaces takes one of the connection's places for reads and one of the node's; false when the context ends first.
func (l *lane) takePlaces(ctx context.Context, gate Gate) bool {
	if ctx.Err() != nil || !acquire(ctx, gate, l.session.reads, 1) {
		return false
	}
	if !acquire(ctx, gate, l.session.opts.NodeReads, 1) {
		l.session.reads.Release(0, 1)
		return false
	}
	return true
}

func (l *lane) releasePlaces() {
	l.session.opts.NodeReads.Release(0, 1)
	l.session.reads.Release(0, 1)
}

// performRead waits for its places, and performs and answers a read there. When its stream or connection ends first nobody reads the answer. It
// sets over when the read was overdue, or panicked then: the lane's reads are somebody else's.
func (l *lane) performRead(ctx context.Context, gate Gate, r logRead, over *bool) {
	if l.session.opts.Overdue.hangs(r.log) {
		l.failRead(r, hanging())
		return
	}
	if !l.takePlaces(ctx, gate) {
		l.failRead(r, streamGone())
		return
	}
	ctx, turn := l.beginRead(ctx, r)
	finish, kept := func() {}, false
	defer func() {
		if *over = !turn.end(); *over {
			return
		}
		defer func() {
			if !kept {
				l.releasePlaces()
			}
		}()
		finish()
	}()
	if r.fetch != nil {
		page, err := l.readFetch(ctx, r.fetch)
		finish = func() { kept = l.endFetch(r.fetch, page, err) }
		return
	}
	a := r.perform(ctx)
	finish = func() { l.resolve(r.token, a) }
}

// failRead refuses a read that was not begun.
func (l *lane) failRead(r logRead, f wire.Refusal) {
	if r.fetch != nil {
		r.fetch.end(shardactor.GroupRead{Failure: &f})
		return
	}
	l.resolve(r.token, sessioncore.Answer{Refusal: &f})
}
