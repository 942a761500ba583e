package sessionactor

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// delivery is the event stream of one subscription.
type delivery struct {
	feed
	request subscribeRequest

	shape   shape
	skipped uint64   // offsets since the last event that hold none
	header  [64]byte // of an event frame in the making
}

func newDelivery(s *session, n uint64, r subscribeRequest) *delivery {
	d := &delivery{feed: feed{session: s, id: n, gauge: s.opts.Metrics.Subscribers}, request: r}
	d.asked, d.source = &d.request.asked, d
	return d
}

// begin implements source.
func (d *delivery) begin(context.Context) (sessioncore.Answer, error) {
	if err := d.place(d.request.start, d.request.offset); err != nil {
		return d.notRegistered(err), err
	}
	d.shape = shapeFor(d.request.grant, d.id, d.request.entry, &d.session.opts.Delivery)
	return sessioncore.Answer{Message: d.request.subscribed(d.id, d.cursor)}, nil
}

// first implements source.
func (d *delivery) first(context.Context) (more bool, err error) { return true, nil }

// page implements source.
func (d *delivery) page(p storage.Page) error {
	skipped := d.skipped
	d.skip(p)
	if err := d.write(p.Batches); err != nil {
		d.skipped = skipped // for another attempt
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// hole implements source. Who can resume is told, and resumes at the first record that it lost; others go on behind the hole.
func (d *delivery) hole() afterHole {
	if d.endsWhenLagging() {
		return lagBehind
	}
	return goOn
}

// over implements source.
func (d *delivery) over() {}

// copies implements source.
func (d *delivery) copies() bool { return !d.shape.apart() }

// last implements source.
func (d *delivery) last(e ending) wire.Message { return endFrame(d.request.grant, d.id, e) }
