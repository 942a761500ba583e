package sessionactor

import (
	"sync"

	"github.com/felixd/felixd/storage/batch"
)

// writeBuffers are shared by all subscriptions: only one that has something to write holds one.
var writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, writeBytes); return &b }}

// write sends batches, joining small frames into few writes.
func (d *delivery) write(batches []*batch.Batch) error {
	pooled := writeBuffers.Get().(*[]byte)
	defer func() { writeBuffers.Put(pooled) }()
	buf := (*pooled)[:0]
	m := d.session.opts.Metrics
	for _, b := range batches {
		if !b.Kind.Visible() {
			continue
		}
		var err error
		if buf, err = d.frames(buf, b); err != nil {
			return err
		}
		m.Delivered.Add(float64(b.Count))
		m.DeliveredBytes.Add(float64(b.PayloadBytes))
	}
	return d.put(buf)
}

// frames adds the frames of one batch to buf, writing whatever does not fit.
func (d *delivery) frames(buf []byte, b *batch.Batch) ([]byte, error) {
	if !d.shape.shared {
		d.session.opts.Metrics.Encodes.Inc()
		var lost uint32
		if buf, lost = d.shape.append(buf, b); lost > 0 {
			d.cursor.Drop(uint64(lost))
		}
		if len(buf) < writeBytes {
			return buf, nil
		}
		return d.restart(buf)
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

// join puts bytes behind those that wait in buf. What is large goes out by itself, uncopied.
func (d *delivery) join(buf, frame []byte) ([]byte, error) {
	if len(buf)+len(frame) <= writeBytes {
		return append(buf, frame...), nil
	}
	if err := d.put(buf); err != nil {
		return buf, err
	}
	if len(frame) < writeBytes/4 {
		return append(buf[:0], frame...), nil
	}
	return buf[:0], d.put(frame)
}

// restart writes what a shape encoded and keeps the buffer only if it is of the usual size.
func (d *delivery) restart(buf []byte) ([]byte, error) {
	err := d.put(buf)
	if cap(buf) > 2*writeBytes {
		return make([]byte, 0, writeBytes), err
	}
	return buf[:0], err
}

func (d *delivery) put(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	return d.send(p)
}
