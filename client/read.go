package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// ReadOptions say which records of a shard to read.
type ReadOptions struct {
	Shard uint32
	From  id.Offset // of the first record wanted
	// End is one past the last record wanted; 0 means the end of the log.
	End id.Offset
	// MaxRecords and MaxBytes bound a page, MaxBytes by its payloads; 0 leaves it to the broker. The broker has bounds of its
	// own, and one record comes always, however large.
	MaxRecords uint32
	MaxBytes   uint64
}

// Record is one record of a log.
type Record struct {
	Payload   []byte // belongs to the receiver
	Shard     uint32
	Offset    id.Offset
	Publisher string    // the principal that published; empty when not known
	Time      time.Time // when the broker appended it
}

// Page is what one Read returned.
type Page struct {
	Records []Record // in the order of their offsets, which may have holes
	// Next is where to read on. It may be far behind the last record, where offsets hold none. Equal to From with no records,
	// it says that there is nothing yet.
	Next id.Offset
}

// Read returns a page of a durable stream, without a subscription. It never waits for records that are not there yet, and
// shows only what is committed. An offset that retention dropped, or that is past the end, is a *CursorError.
func (c *Client) Read(ctx context.Context, namespace, stream string, o ReadOptions) (Page, error) {
	m := &wire.StreamRead{
		Namespace: namespace, Stream: stream, Shard: o.Shard, From: o.From, MaxRecords: o.MaxRecords, MaxBytes: o.MaxBytes,
	}
	if o.End != 0 {
		m.End = wire.Some(o.End)
	}
	c.fitPage(m)
	return c.readPage(ctx, m)
}

// fitPage asks for no larger pages than this client takes as a frame: in JSON a payload grows by a third, and what stands
// around it takes up to 2 KiB, for the name of its publisher.
func (c *Client) fitPage(m *wire.StreamRead) {
	most := c.opts.MaxFrameBytes
	if most >= wire.MaxPayload { // the broker sees to it
		return
	}
	records, bytes := uint32(max(1, most/(4<<10))), uint64(max(1, most/3))
	m.MaxRecords = min(orDefault(m.MaxRecords, records), records)
	m.MaxBytes = min(orDefault(m.MaxBytes, bytes), bytes)
}

// readPage completes a request and sends it.
func (c *Client) readPage(ctx context.Context, m *wire.StreamRead) (Page, error) {
	op := fmt.Sprintf("read %s/%s shard %d", m.Namespace, m.Stream, m.Shard)
	if err := checkNames(op, m.Namespace, "stream", m.Stream); err != nil {
		return Page{}, err
	}
	m.TenantID, m.RequestID = c.opts.TenantID, c.requestID.Add(1)
	route := c.streams.entry(m.Namespace, m.Stream).route(m.Shard)
	answer, err := c.askOwner(ctx, route, &oneShot{op: op, needs: wire.FeatureStreamRead, feature: "stream_read", message: m})
	if err != nil {
		return Page{}, err
	}
	page, ok := answer.(*wire.StreamRecords)
	if !ok {
		return Page{}, refusalOf(op, answer)
	}
	if err := echoes(op, m.RequestID, page.RequestID); err != nil {
		return Page{}, err
	}
	return pageOf(op, m, page)
}

// pageOf takes an answer over. One that would make a reader go round in circles or miss something is refused.
func pageOf(op string, asked *wire.StreamRead, m *wire.StreamRecords) (Page, error) {
	page := Page{Next: m.NextOffset, Records: make([]Record, len(m.Records))}
	due := asked.From
	for i, r := range m.Records {
		if r.Offset < due || r.Offset >= m.NextOffset || asked.End.Set && r.Offset >= asked.End.V {
			return Page{}, &ProtocolError{Op: op, What: fmt.Sprintf("sent offset %s in a page from %s to %s", r.Offset, due, m.NextOffset)}
		}
		due = r.Offset.Add(1)
		page.Records[i] = Record{
			Payload: r.Payload, Shard: asked.Shard, Offset: r.Offset, Publisher: r.Publisher.V, Time: time.UnixMicro(int64(r.TimestampMicros)),
		}
	}
	if m.NextOffset < asked.From {
		return Page{}, &ProtocolError{Op: op, What: fmt.Sprintf("said to read on at %s, before %s", m.NextOffset, asked.From)}
	}
	return page, nil
}

// ReadRange iterates over the records from From to End, page by page; without an End, up to the first moment at which there
// are no more. The last pair carries the error, if there was one. MaxRecords and MaxBytes bound a page, not the whole.
func (c *Client) ReadRange(ctx context.Context, namespace, stream string, o ReadOptions) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for at := o; ; {
			page, err := c.Read(ctx, namespace, stream, at)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range page.Records {
				if !yield(r, nil) {
					return
				}
			}
			if page.Next == at.From || o.End != 0 && page.Next >= o.End {
				return
			}
			at.From = page.Next
		}
	}
}

// OffsetForTime returns the offset of the first record of a shard that was appended at or after a time; for a time before
// all records, that of the oldest kept. found is false when no record is that recent.
func (c *Client) OffsetForTime(ctx context.Context, namespace, stream string, shard uint32, at time.Time) (offset id.Offset, found bool, err error) {
	op := fmt.Sprintf("ask offset for a time in %s/%s shard %d", namespace, stream, shard)
	if err := checkNames(op, namespace, "stream", stream); err != nil {
		return 0, false, err
	}
	m := &wire.OffsetForTime{
		TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream, Shard: shard,
		AtMicros: uint64(max(0, at.UnixMicro())), RequestID: c.requestID.Add(1),
	}
	route := c.streams.entry(namespace, stream).route(shard)
	answer, err := c.askOwner(ctx, route, &oneShot{op: op, needs: wire.FeatureRecordTimestamps, feature: "offset_for_time", message: m})
	if err != nil {
		return 0, false, err
	}
	value, ok := answer.(*wire.OffsetValue)
	if !ok {
		return 0, false, refusalOf(op, answer)
	}
	return value.Offset.V, value.Offset.Set, echoes(op, m.RequestID, value.RequestID)
}
