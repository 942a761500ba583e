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
func (d *delivery) lookForPage() {
	if d.time.on {
		d.time.at = d.session.opts.Timings.Now()
	}
}

// havePage says that one was read, and is to be written now.
func (d *delivery) havePage() {
	if p := &d.time; p.on {
		now := d.session.opts.Timings.Now()
		p.storage, p.transport, p.at = time.Duration(now-p.at), 0, now
	}
}

// send writes to the event stream.
func (d *delivery) send(b []byte) error {
	p, timings := &d.time, d.session.opts.Timings
	if !p.on {
		_, err := d.stream.Write(b)
		return err
	}
	began := timings.Now()
	_, err := d.stream.Write(b)
	p.transport += timings.Since(began)
	return err
}

// wrotePage notes what a timed page took, and decides about the next.
func (d *delivery) wrotePage() {
	p, timings := &d.time, d.session.opts.Timings
	if p.on {
		timings.Took(stages.Deliver, stages.Storage, p.storage)
		timings.Took(stages.Deliver, stages.Wire, timings.Since(p.at)-p.transport)
		timings.Took(stages.Deliver, stages.Transport, p.transport)
	}
	p.on = p.sampler.Take(timings)
}
