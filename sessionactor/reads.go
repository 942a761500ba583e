package sessionactor

import (
	"context"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// laneReads are the requests of a lane that read a log, which may wait for the disk. One goroutine performs them, in their order, so that
// neither the lane's other requests nor other lanes wait for a disk. The window bounds how many wait, and Options.Parked those of all lanes. Used
// under the lane's lock.
type laneReads struct {
	queue   []logRead
	inHand  logRead // while running
	running bool
	stop    context.CancelFunc // nil before the first
}

// logRead is one of them. perform is called without a lock; fetch is for one that answers nobody, instead.
type logRead struct {
	token   sessioncore.Token
	log     storage.History
	perform func(ctx context.Context) sessioncore.Answer
	fetch   *groupFetch
}

// refuse ends a read that nobody performs. mu is held.
func (r *logRead) refuse(l *lane, f wire.Refusal) {
	switch {
	case r.fetch != nil:
		r.fetch.end(shardactor.GroupRead{Failure: &f})
	case l.core.IsOpen(r.token):
		l.refuse(r.token, f)
	}
}

// abandon lets whatever waits for the disk come back: nobody reads the answers.
func (r *laneReads) abandon() {
	if r.stop != nil {
		r.stop()
	}
}

// later performs a request about a log in the goroutine for reads, and answers it then. Beside it so many bytes of names and keys are kept. It
// returns false, and has refused it, when too many wait. mu is held.
func (l *lane) later(t sessioncore.Token, log storage.History, named int, perform func(ctx context.Context) sessioncore.Answer) bool {
	if !l.park(t, readHeld+named) {
		return false
	}
	l.readLater(logRead{token: t, log: log, perform: perform})
	return true
}

// readLater performs a read in the goroutine for them. mu is held.
func (l *lane) readLater(r logRead) {
	l.reads.queue = append(l.reads.queue, r)
	if l.reads.running {
		return
	}
	if l.reads.running = l.session.pump("log reads", l.readLogs); !l.reads.running { // the connection is gone
		l.dropReads(connClosing())
	}
}

// readLogs performs reads until there are none, or one is overdue.
func (l *lane) readLogs(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gate := l.session.opts.Runtime.NewGate()
	ended := false // in order; whoever comes later has a goroutine of his own, even before this one is gone
	defer func() { // after a panic they have no other to answer them
		if ended {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reads.queue = append(l.reads.queue, l.reads.inHand)
		l.dropReads(wire.Refuse(wire.CodeInternal, "the broker failed while it read").WithRetry(wire.RetryRetry))
		l.flush()
	}()
	for {
		next, ok := l.nextRead(cancel)
		if !ok {
			ended = true
			return
		}
		l.performRead(ctx, gate, next, &ended)
		if ended {
			return
		}
	}
}

// nextRead takes the next one in hand; false when there is none, and the goroutine is to end.
func (l *lane) nextRead(cancel context.CancelFunc) (logRead, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.reads
	r.stop = cancel
	if l.core.Gone() {
		cancel()
	}
	if len(r.queue) == 0 {
		r.queue, r.inHand, r.running, r.stop = nil, logRead{}, false, nil
		return logRead{}, false
	}
	next := r.queue[0]
	r.queue[0] = logRead{}
	r.queue, r.inHand = r.queue[1:], next
	return next, true
}

// dropReads refuses all that nobody will perform. mu is held.
func (l *lane) dropReads(f wire.Refusal) {
	queue := l.reads.queue
	l.reads = laneReads{}
	for i := range queue {
		queue[i].refuse(l, f)
	}
}

func streamGone() wire.Refusal {
	return wire.Refuse(wire.CodeShardUnavailable, "the stream of the request is gone")
}
