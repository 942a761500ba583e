package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
)

// Shape is what a batch looks like.
type Shape struct {
	Payload int `json:"payload_bytes"`     // of each record
	Batch   int `json:"records_per_batch"` // at least 1
}

// Bytes are the payload bytes of a batch.
func (s Shape) Bytes() int { return s.Payload * s.Batch }

// Batch is one batch to be sent.
type Batch struct {
	First uint64        // number of its first record, from 0
	Stamp time.Duration // since the trial began: when it was sent, or was due
	Acked bool          // the server is to answer it
}

// Lane sends batches on one stream, in order. Send and Flush belong to one goroutine, Settle to another.
type Lane interface {
	// Send puts a batch on its way. It may keep it back to write it together with the next ones, until Flush.
	Send(ctx context.Context, b Batch) error
	// Flush writes what was kept back.
	Flush(ctx context.Context) error
	// Settle waits for the answer to the oldest acked batch that has none. A *RefusedError says that the server did not take it;
	// any other error is the end of the lane.
	Settle(ctx context.Context) error
}

// Publisher is the sending side of a trial.
type Publisher struct {
	Lanes []Lane
	// Vouches says that an answer covers everything that was sent before it on its lane: nothing is dropped silently.
	Vouches bool
	// Close waits for what is under way and ends the connections.
	Close func(ctx context.Context) error
}

// RefusedError is an answer that says no. The load counts it and goes on.
type RefusedError struct{ Err error }

// Error is that of the refusal.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap gives the refusal.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusal tells a refusal from a failure.
func refusal(err error) (*RefusedError, bool) {
	var refused *RefusedError
	ok := errors.As(err, &refused)
	return refused, ok
}

const (
	// sequenceBytes is how long a payload has to be to carry its number, and stampBytes to carry the time of its batch too.
	sequenceBytes = 8
	stampBytes    = 16
)

// records are the payloads of one batch, over one buffer that is used again for each.
type records struct {
	shape    Shape
	payloads [][]byte
}

func newRecords(s Shape) *records {
	r := &records{shape: s, payloads: make([][]byte, s.Batch)}
	buffer := make([]byte, s.Bytes())
	for i := range buffer {
		buffer[i] = byte('a' + i%26)
	}
	for i := range r.payloads {
		r.payloads[i] = buffer[i*s.Payload : (i+1)*s.Payload : (i+1)*s.Payload]
	}
	return r
}

// fill writes number and stamp into each payload, as far as they have room, and returns the payloads; borrowed until the next call.
func (r *records) fill(b Batch) [][]byte {
	for i, p := range r.payloads {
		putRecord(p, b.First+uint64(i), b.Stamp)
	}
	return r.payloads
}

func putRecord(p []byte, number uint64, stamp time.Duration) {
	if len(p) >= sequenceBytes {
		binary.BigEndian.PutUint64(p, number)
	}
	if len(p) >= stampBytes {
		binary.BigEndian.PutUint64(p[sequenceBytes:], uint64(stamp))
	}
}

// numberOf reads the number of a record; ok is false when the payload is too short for one.
func numberOf(p []byte) (n uint64, ok bool) {
	if len(p) < sequenceBytes {
		return 0, false
	}
	return binary.BigEndian.Uint64(p), true
}

// stampOf reads the stamp of a record; ok is false when the payload is too short for one.
func stampOf(p []byte) (d time.Duration, ok bool) {
	if len(p) < stampBytes {
		return 0, false
	}
	return time.Duration(binary.BigEndian.Uint64(p[sequenceBytes:])), true
}
