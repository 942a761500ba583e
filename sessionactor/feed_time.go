package sessionactor

import (
	"time"

	"github.com/felixd/felixd/internal/stages"
)

// pageTime is how long the stages of one page of a subscription take, if that page is timed: reading it from the log, making events of
// it, and waiting for the client to take them. Whether the next page is timed is decided when a page has been written, so that looking
// in vain for one costs nothing.
type pageTime struct {
	sampler   stages.Sampler
	on        bool
	at        stages.Instant
	storage   time.Duration
	transport time.Duration
}

// start decides about the first page.
func (p *pageTime) start(t *stages.Timings) {
	p.sampler = t.Sampler()
	p.on = p.sampler.Take(t)
}

// lookForPage begins to read a page, if there is one.
func (f *feed) lookForPage() {
	if f.time.on {
		f.time.at = f.session.opts.Timings.Now()
	}
}

// havePage says that one was read, and is to be written now.
func (f *feed) havePage() {
	if p := &f.time; p.on {
		now := f.session.opts.Timings.Now()
		p.storage, p.transport, p.at = time.Duration(now-p.at), 0, now
	}
}

// send writes to the event stream.
func (f *feed) send(b []byte) error {
	p, timings := &f.time, f.session.opts.Timings
	if !p.on {
		return f.transmit(b)
	}
	began := timings.Now()
	err := f.transmit(b)
	p.transport += timings.Since(began)
	return err
}

// wrotePage notes what a timed page took, and decides about the next.
func (f *feed) wrotePage() {
	p, timings := &f.time, f.session.opts.Timings
	if p.on {
		timings.Took(stages.Deliver, stages.Storage, p.storage)
		timings.Took(stages.Deliver, stages.Wire, timings.Since(p.at)-p.transport)
		timings.Took(stages.Deliver, stages.Transport, p.transport)
	}
	p.on = p.sampler.Take(timings)
}
