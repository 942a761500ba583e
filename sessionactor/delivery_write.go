package sessionactor

import (
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// write sends batches, joining small frames into few writes.
func (d *delivery) write(batches []*batch.Batch) error {
	pooled := writeBuffers.Get().(*[]byte)
	defer func() { writeBuffers.Put(pooled) }()
	buf := (*pooled)[:0]
	m := d.session.opts.Metrics
	for _, b := range batches {
		if !b.Kind.Visible() {
			d.skipped += uint64(b.Count)
			continue
		}
		var err error
		if buf, err = d.frames(buf, b); err != nil {
			return err
		}
		if d.once() {
			m.Delivered.Add(float64(b.Count))
			m.DeliveredBytes.Add(float64(b.PayloadBytes))
		}
	}
	return d.put(buf)
}

// skip counts what lies in front of a page and holds no event: the part of a hole that is nobody's loss.
func (d *delivery) skip(page storage.Page) {
	begin := page.Next
	if len(page.Batches) > 0 {
		begin = page.Batches[0].Base
	}
	if gap := uint64(begin - page.From); begin > page.From && gap > page.Lost {
		d.skipped += gap - page.Lost
	}
}

// frames adds the frames of one batch to buf, writing whatever does not fit. Batches from disk carry no frames.
func (d *delivery) frames(buf []byte, b *batch.Batch) ([]byte, error) {
	if !d.shape.shared || b.Framed == nil && b.Cut == nil {
		return d.encode(buf, b)
	}
	if b.Framed != nil {
		return d.join(buf, b.Framed)
	}
	var err error
	for _, part := range b.Cut {
		if buf, err = d.join(buf, part); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// encode adds the frames of one batch in the form of this subscriber. Records that no frame can hold are counted as dropped.
func (d *delivery) encode(buf []byte, b *batch.Batch) ([]byte, error) {
	d.session.opts.Metrics.Encodes.Inc()
	e := d.shape.event(b, d.skipped)
	d.skipped = 0
	var err error
	for rest := wire.Region(b.Region()); len(rest) > 0 && err == nil; {
		e.Region, e.Count, rest = d.shape.cut(rest, uint32(b.End()-e.BaseOffset))
		switch {
		case !d.shape.fits(&e):
			if d.once() {
				d.cursor.Drop(uint64(e.Count))
			}
		case d.shape.apart():
			if buf, err = d.join(buf, d.shape.header(d.header[:0], &e)); err == nil {
				buf, err = d.join(buf, e.Region)
			}
		default:
			if buf = d.shape.append(buf, &e); len(buf) >= writeBytes {
				buf, err = d.restart(buf)
			}
		}
		e.BaseOffset, e.SkippedBefore = e.BaseOffset.Add(uint64(e.Count)), 0
	}
	return buf, err
}
