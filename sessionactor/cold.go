package sessionactor

import (
	"context"
	"errors"
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
)

const (
	// coldTries is how often a value is looked for in a log. Each time but the last a compaction was faster, or the value is so new that
	// its record is not readable yet.
	coldTries = 8
	// coldPause is how long such a reader waits the first time, and twice as long each further time: a record becomes readable in the same turn in
	// which its key is found, and a turn is short unless the machine is busy. That is a quarter of a second in all.
	coldPause = time.Millisecond
)

// errNotThere says that a record is not where the index said: look there again.
var errNotThere = errors.New("read value: the record is not there")

// recordReader reads values that an index does not hold from the log. It keeps the last batch, since values that were moved together lie
// together. One goroutine uses it at a time.
type recordReader struct {
	batches []*batch.Batch // none or one
}

// read returns the value of a key whose record stands at l.Offset. The error is errNotThere when that is not so any more, or not yet.
func (r *recordReader) read(ctx context.Context, log storage.History, key string, l *reading.Live) ([]byte, error) {
	if len(r.batches) == 0 || l.Offset < r.batches[0].Base || l.Offset >= r.batches[0].End() {
		if err := r.load(ctx, log, l); err != nil {
			r.batches = nil
			return nil, err
		}
	}
	payload, err := keyed.RecordAt(r.batches[0], l.Offset)
	if err != nil {
		return nil, errNotThere
	}
	record, err := reading.DecodeRecord(payload)
	if err != nil {
		return nil, err
	}
	version := l.Offset
	if record.Op == reading.OpMove {
		version = record.Version
	}
	if record.Op != reading.OpPut && record.Op != reading.OpMove || version != l.Version || string(record.Key) != key {
		return nil, errNotThere
	}
	return record.Value, nil
}

func (r *recordReader) load(ctx context.Context, log storage.History, l *reading.Live) (err error) {
	oldest, end := log.Bounds()
	if l.Offset < oldest || l.Offset >= end {
		return errNotThere
	}
	r.batches, err = log.Read(ctx, l.Offset, end, 1, rangePayload, r.batches) // to the end: a batch that reaches past what is asked for is not returned
	var old *storage.TooOldError
	if errors.As(err, &old) || err == nil && (len(r.batches) != 1 || l.Offset < r.batches[0].Base || l.Offset >= r.batches[0].End()) {
		return errNotThere
	}
	return err
}

// pauseCold waits before a value is looked for again, that many times having been in vain before.
func (s *session) pauseCold(ctx context.Context, gate Gate, before int) {
	timer := s.opts.Clock.AfterFunc(coldPause<<before, gate.Ring)
	defer timer.Stop()
	gate.Wait(ctx)
}

func (s *session) nowMillis() uint64 { return uint64(s.opts.Clock.Now().UnixMilli()) }
