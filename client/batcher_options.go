package client

import "time"

// BatcherOptions shape a Batcher. A zero means the default.
type BatcherOptions struct {
	// MaxRecords and MaxBytes close a batch that has so many records, or as many bytes with four for each record.
	MaxRecords int
	MaxBytes   int
	// Linger is how long a batch may wait for more records while earlier ones of its shard are unanswered. With none under
	// way a record leaves at once.
	Linger time.Duration
	// MaxInFlight is how many batches of a shard may be unanswered.
	MaxInFlight int
	// BufferBytes bounds what the batcher holds: the buffers of batches that collect, and the bytes of those under way. At
	// the bound Add waits.
	BufferBytes int64
	// Ack is what each batch waits for.
	Ack Ack
	// Producer publishes the batches, each once: see Producer, whose bounds apply besides these. It is of the same client, and
	// several batchers may share it. Without one, batches are sent once and may be lost with their answer.
	Producer *Producer
}

// Defaults of BatcherOptions.
const (
	DefaultBatchRecords = 1024
	// DefaultBatchBytes leaves room for the head of the frame in a chunk of DefaultPublishChunkBytes, so that a batch is
	// written from the buffer it was collected in.
	DefaultBatchBytes       = DefaultPublishChunkBytes - 1<<10
	DefaultLinger           = time.Millisecond
	DefaultBatchesInFlight  = 8
	DefaultBatchBufferBytes = 4 << 20
)

func (o BatcherOptions) complete(op string) (BatcherOptions, error) {
	if min(o.MaxRecords, o.MaxBytes, o.MaxInFlight) < 0 || o.Linger < 0 || o.BufferBytes < 0 {
		return o, &ArgumentError{Op: op, Argument: "BatcherOptions", Problem: "hold a negative number; use a positive one, or 0 for the default"}
	}
	if o.Ack > AckNone {
		return o, &ArgumentError{Op: op, Argument: "Ack", Problem: "is none of AckRecord, AckBatch, AckNone"}
	}
	if o.Ack == AckNone && o.Producer != nil {
		return o, &ArgumentError{Op: op, Argument: "Ack", Problem: "is AckNone, but a producer needs answers; use AckRecord or AckBatch"}
	}
	o.MaxRecords = orDefault(o.MaxRecords, DefaultBatchRecords)
	o.MaxBytes = orDefault(o.MaxBytes, DefaultBatchBytes)
	o.Linger = orDefault(o.Linger, DefaultLinger)
	o.MaxInFlight = orDefault(o.MaxInFlight, DefaultBatchesInFlight)
	o.BufferBytes = orDefault(o.BufferBytes, DefaultBatchBufferBytes)
	return o, nil
}
