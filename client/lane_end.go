package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/felixd/felixd/transport"
)

// fail ends the lane and everything on it. Requests not yet written were certainly not sent.
func (l *lane) fail(cause error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = cause
	close(l.dead)
	if !l.idle() {
		l.control.link.settled()
	}
	queued, pending := l.out.drain(), l.pending.drain()
	l.lost = len(queued) + len(pending)
	l.mu.Unlock()
	transport.AbortStream(l.control.stream, transport.StreamFinished)
	for _, r := range pending {
		if r.safe {
			r.end(reply{}, l.explain(r.op(), cause))
		} else {
			r.end(reply{}, r.unanswered(l.explain("", cause)))
		}
	}
	for _, r := range queued {
		r.end(reply{}, l.explain(r.op(), cause))
	}
}

// explain turns what ended the stream into the error of one request.
func (l *lane) explain(op string, cause error) error {
	if l.client.isClosed() && !errors.Is(cause, errAckOverdue) {
		return closedError(op)
	}
	return &ConnectionLostError{Op: op, Addr: l.control.link.addr, Err: cause}
}

// errAckOverdue is the cause when the broker kept a connection up and did not answer.
var errAckOverdue = errors.New("the broker did not answer in time")

// overdue fails the lane when its oldest unanswered request waited too long, and looks again later otherwise.
func (l *lane) overdue() {
	l.mu.Lock()
	if l.err != nil || l.pending.len() == 0 {
		l.mu.Unlock()
		return
	}
	left := l.pending.at(0).sentAt.Add(l.client.opts.AckTimeout).Sub(l.client.now())
	if left > 0 {
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.fail(fmt.Errorf("%w (%v)", errAckOverdue, l.client.opts.AckTimeout))
}

// shut ends the lane after its last request and waits for the broker to have taken everything. The error says how many
// requests were given up. Where each was answered, nothing is missing, however the stream ended.
func (l *lane) shut(ctx context.Context) error {
	l.mu.Lock()
	before := l.err != nil
	l.mu.Unlock()
	l.retire()
	if before {
		<-l.closed
		return nil // whoever had a request here was told
	}
	select {
	case <-l.closed:
	case <-ctx.Done():
		l.fail(ctx.Err())
		<-l.closed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == 0 && (!l.blind || errors.Is(l.err, io.EOF)) {
		return nil
	}
	return fmt.Errorf("close: %d requests were not answered, and unacknowledged ones may be lost: %w", l.lost, l.err)
}
