package sessionactor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

const (
	// rangeRecords bounds one answer to stream_read in records unless Options says otherwise, rangePayload always in bytes of payloads. A
	// longer record comes alone.
	rangeRecords = 10_000
	rangePayload = 4 << 20
	// rangeEncoded bounds the same as it travels, in bytes: a frame, less what stands around the records.
	rangeEncoded = wire.MaxPayload - 4<<10
	// recordEncoded is more than a record of an answer has around its payload and publisher, in bytes.
	recordEncoded = 128
	// rangeBatches bounds one step of a read.
	rangeBatches = 256
)

// recordTooLongError says that a record does not fit an answer.
type recordTooLongError struct {
	offset id.Offset
	bytes  int
}

func (e *recordTooLongError) Error() string {
	return fmt.Sprintf("the record at offset %d has %d bytes, which do not fit an answer; subscribe to get it, or read on from %d", e.offset, e.bytes, e.offset+1)
}

// readRange performs a stream_read and answers at most so many records, at least 1. The payloads of the result are shared.
func readRange(ctx context.Context, log storage.History, m *wire.StreamRead, records int) (*wire.StreamRecords, error) {
	if err := checkOffset(log, m.From); err != nil {
		return nil, err
	}
	_, tail := log.Bounds()
	p := rangePage{next: m.From, end: min(tail, m.End.Or(tail)), records: records, payload: rangePayload, encoded: rangeEncoded}
	if n := m.MaxRecords; n > 0 {
		p.records = int(min(uint64(n), uint64(records)))
	}
	if n := m.MaxBytes; n > 0 {
		p.payload = int(min(n, rangePayload))
	}
	var batches []*batch.Batch
	for p.next < p.end && !p.full {
		var err error
		if batches, err = log.Read(ctx, p.next, p.end, rangeBatches, p.payload, batches); err == nil {
			err = p.add(batches)
		}
		var old *storage.TooOldError
		if errors.As(err, &old) && len(p.list) > 0 { // what was read is good; the next read is told
			break
		}
		if err != nil {
			return nil, err
		}
		if len(batches) == 0 {
			break
		}
	}
	return &wire.StreamRecords{Records: p.list, NextOffset: p.next, RequestID: m.RequestID}, nil
}

// checkOffset refuses an offset that a log does not hold and that is not its next one.
func checkOffset(log interface {
	Bounds() (oldest, end id.Offset)
}, o id.Offset) error {
	switch oldest, tail := log.Bounds(); {
	case o < oldest:
		return &storage.TooOldError{Requested: o, Oldest: oldest}
	case o > tail:
		return &storage.InFutureError{Requested: o, Tail: tail}
	}
	return nil
}

// rangePage is an answer to stream_read in the making. records, payload and encoded are what there is room for.
type rangePage struct {
	list      []wire.StreamRecord
	next, end id.Offset
	records   int
	payload   int
	encoded   int
	full      bool
}

// add takes what clients see of batches that follow each other, up to the end or until the page is full.
func (p *rangePage) add(batches []*batch.Batch) error {
	for _, b := range batches {
		if !b.Kind.Visible() {
			p.next = max(p.next, min(p.end, b.End()))
			continue
		}
		o := b.Base
		for payload, rest, ok := wire.Region(b.Region()).Next(); ok; payload, rest, ok = rest.Next() {
			if o >= p.next {
				if err := p.record(o, payload, b); err != nil {
					return err
				}
			}
			if p.full || p.next >= p.end {
				return nil
			}
			o++
		}
	}
	return nil
}

// record adds the record that comes next, unless there is no room for it.
func (p *rangePage) record(o id.Offset, payload []byte, b *batch.Batch) error {
	// A byte of a name takes up to six in JSON.
	encoded := base64.StdEncoding.EncodedLen(len(payload)) + 6*len(b.Publisher) + recordEncoded
	if encoded > rangeEncoded && len(p.list) == 0 {
		return &recordTooLongError{offset: o, bytes: len(payload)}
	}
	if p.records == 0 || len(p.list) > 0 && (len(payload) > p.payload || encoded > p.encoded) {
		p.full = true
		return nil
	}
	r := wire.StreamRecord{Offset: o, Payload: payload, TimestampMicros: b.AppendMicros}
	if b.Publisher != "" {
		r.Publisher = wire.Some(b.Publisher)
	}
	p.list = append(p.list, r)
	p.next = o + 1
	p.records, p.payload, p.encoded = p.records-1, max(0, p.payload-len(payload)), p.encoded-encoded
	p.full = p.records == 0 || p.payload == 0
	return nil
}
