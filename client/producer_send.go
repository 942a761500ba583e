package client

import (
	"errors"
	"time"
)

// trouble is a row of failures without a success between them.
type trouble struct {
	since   time.Time // of the first
	missing time.Time // when not_found came first
	tries   int
	hops    int // redirects that were followed since
}

// run sends batches until none is without an outcome. A batch that failed is sent again, with all behind it, until it is in
// the log or its patience is over.
func (l *line) run() {
	var t trouble
	for {
		progress, err := l.round()
		switch {
		case err == nil:
			return
		case progress:
			t = trouble{}
		}
		if l.again(&t, err) {
			continue
		}
		l.fail(l.final(err, &t))
		if t = (trouble{}); l.rest() {
			return
		}
	}
}

// round sends all batches in order and takes their outcomes, until none is left or one failed. Then it takes the outcomes of
// those under way too, and returns the error of the oldest that is not in the log. A batch behind a failed one is refused as a
// gap, or was written before: either way its number tells the broker the next time.
func (l *line) round() (progress bool, err error) {
	sent := 0
	for {
		b := l.at(sent)
		switch {
		case b != nil:
			if err := l.send(b); err != nil {
				return l.takeAll(sent, progress, err)
			}
			sent++
		case sent == 0:
			if l.rest() {
				return progress, nil
			}
		default:
			select {
			case <-l.at(0).request.done:
			case <-l.wake:
				continue
			}
			if err := l.take(0); err != nil {
				return l.takeAll(sent, progress, nil)
			}
			progress = true
			sent--
		}
	}
}

// takeAll takes the outcomes of the first n batches. The error is that of the first which is not in the log, or else the one
// of the batch behind them, which was not sent.
func (l *line) takeAll(n int, progress bool, behind error) (bool, error) {
	var first error
	failed := 0
	for range n {
		<-l.at(failed).request.done
		err := l.take(failed)
		if err == nil {
			progress = true
			continue
		}
		if failed++; first == nil {
			first = err
		}
	}
	if first == nil {
		first = behind
	}
	return progress, first
}

// take ends the i-th batch if it is in the log.
func (l *line) take(i int) error {
	b := l.at(i)
	err := b.verdict()
	if err == nil {
		l.landed(i)
	}
	b.doubt = b.doubt || errors.Is(err, ErrOutcomeUnknown)
	return err
}

// send puts a batch on its way. An error means that it was not sent.
func (l *line) send(b *ProducedBatch) error {
	c := l.producer.client
	if l.via = l.owner; l.via == nil {
		l.via = l.route.current(c.entry)
	}
	r := &request{what: &b.pub, encoder: b, done: make(chan struct{})}
	place := int((l.entry.hash + uint64(l.shard)) % uint64(c.opts.PublishStreams)) // one lane for a shard, so that order holds
	if err := l.via.publishes.submit(l.producer.ctx, place, r); err != nil {
		return err
	}
	b.request = r
	return nil
}

// again decides whether to send again after a failure, and waits until it is time.
func (l *line) again(t *trouble, err error) bool {
	p, c := l.producer, l.producer.client
	now := c.now()
	if t.tries++; t.tries == 1 {
		t.since = now
	}
	if p.ctx.Err() != nil || !resendable(err) {
		return false
	}
	l.owner = nil
	l.route.forget(l.via)
	var moved *NotLeaderError
	if errors.As(err, &moved) && t.hops < hopsMax {
		if l.owner = c.hop(moved); l.owner != nil {
			t.hops++
			return true
		}
	}
	t.hops = 0
	pause := c.pause(t.tries, err)
	if errors.Is(err, ErrNotFound) {
		if t.missing.IsZero() {
			t.missing = now
		}
		if now.Add(pause).Sub(t.missing) > notFoundGrace {
			return false
		}
	}
	if now.Add(pause).Sub(t.since) > p.opts.Patience {
		return false
	}
	c.stats.retries.Add(1)
	c.opts.Hooks.retrying(Retry{Op: l.at(0).pub.String(), Try: t.tries, Pause: pause, Err: err})
	return c.sleep(p.ctx, pause) == nil
}

// resendable reports whether a numbered batch is worth another try: nothing is in doubt for good.
func resendable(err error) bool {
	return errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrNotLeader) || repeatable(err)
}

// final is the error of a batch that is not sent again.
func (l *line) final(err error, t *trouble) error {
	if l.producer.ctx.Err() != nil {
		return l.producer.closedError(l.at(0).pub.String())
	}
	if t.tries > 1 {
		return &GaveUpError{Tries: t.tries, Err: err}
	}
	return err
}
