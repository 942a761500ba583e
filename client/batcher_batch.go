package client

import (
	"bytes"
	"context"
	"fmt"

	"github.com/felixd/felixd/wire"
)

// openBatch is a batch from its first record to its outcome. Records are put behind the room for the head of their frame,
// so that a full batch is written from where it lies.
type openBatch struct {
	shard uint32
	pub   publication // its key is a copy
	mixes bool        // takes other keys of the shard
	buf   *chunk      // nil once it was handed over
	head  int         // bytes of buf in front of the records
	count int
	held  int64 // of the batcher's budget

	done   chan struct{}
	result PublishResult
	err    error
}

// bytes is how long the region of the records is.
func (b *openBatch) bytes() int { return len(b.buf.bytes) - b.head }

func (b *openBatch) region() wire.Region { return wire.Region(b.buf.bytes[b.head:]) }

// fits reports whether a record may join.
func (b *openBatch) fits(o *BatcherOptions, pub *publication, most int) bool {
	if b.count >= o.MaxRecords || b.bytes()+pub.bytes > max(o.MaxBytes, pub.bytes) || len(b.buf.bytes)+pub.bytes > most+wire.HeaderSize {
		return false
	}
	if b.count == 0 || b.mixes {
		return true
	}
	return b.pub.keyed == pub.keyed && bytes.Equal(b.pub.key, pub.key)
}

func (b *openBatch) append(payload []byte) {
	b.buf.bytes = wire.AppendPayload(b.buf.bytes, payload)
	b.count++
}

// finish puts the head in front of the records and hands the frame over.
func (b *openBatch) finish(head *wire.Publish, header wire.Header, out *outbox) {
	wire.AppendPublish(b.buf.bytes[:0], head) // exactly the room in front
	wire.PutHeader(b.buf.bytes, header)       // with the region counted in
	out.takeChunk(b.buf)
	b.buf = nil
}

// BatchedRecord is a record that a Batcher took.
type BatchedRecord struct {
	batch *openBatch
	index int
}

// Done is closed when the outcome is known, and Wait returns at once.
func (r BatchedRecord) Done() <-chan struct{} { return r.batch.done }

// Wait returns the outcome; see Publish. Offset is the record's own. When ctx ends first, the record is not affected and
// Wait may be called again.
func (r BatchedRecord) Wait(ctx context.Context) (PublishResult, error) {
	select {
	case <-r.batch.done:
	case <-ctx.Done():
		return PublishResult{}, &OutcomeUnknownError{Op: r.batch.pub.String(), Err: fmt.Errorf("wait for the answer: %w", ctx.Err())}
	}
	result := r.batch.result
	if result.HasOffset {
		result.Offset = result.Offset.Add(uint64(r.index))
	}
	return result, r.batch.err
}
