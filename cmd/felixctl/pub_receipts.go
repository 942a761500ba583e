package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/felixd/felixd/client"
)

// batchesUnderWay is how many unacknowledged batches pub keeps: as many as a broker grants on a stream. The client bounds
// their bytes.
const batchesUnderWay = 256

// sentBatch is a batch on its way.
type sentBatch struct {
	pending interface {
		Wait(ctx context.Context) (client.PublishResult, error)
	}
	records int
}

// receipts waits for acknowledgements in the order of publishing and prints them.
type receipts struct {
	app       *app
	namespace string
	flags     pubFlags
	under     chan sentBatch
	done      chan struct{}
	stop      context.CancelFunc // ends the sending after a failure

	acked       atomic.Int64 // records
	first, last *uint64      // offsets, where there are any
	err         error        // the first failure
	failed      int          // records that were not acknowledged
}

func newReceipts(a *app, namespace string, f pubFlags, stop context.CancelFunc) *receipts {
	r := &receipts{app: a, namespace: namespace, flags: f, under: make(chan sentBatch, batchesUnderWay), done: make(chan struct{}), stop: stop}
	go r.collect()
	return r
}

// collect runs until all batches have their outcome, also those behind a failure: they may have been written. The client
// bounds how long each takes.
func (r *receipts) collect() {
	defer close(r.done)
	for s := range r.under {
		result, err := s.pending.Wait(context.Background())
		switch {
		case err == nil:
			r.keep(r.take(s.records, result))
		default:
			r.failed += s.records
			r.keep(err)
		}
	}
}

// keep keeps the first failure and ends the sending.
func (r *receipts) keep(err error) {
	if err != nil && r.err == nil {
		r.err = err
		r.stop()
	}
}

// receipt is what --json prints per record.
type receipt struct {
	Namespace string  `json:"namespace"`
	Stream    string  `json:"stream"`
	Record    int64   `json:"record"` // number of the record in this run, from 0
	Key       *string `json:"key,omitempty"`
	Offset    *uint64 `json:"offset,omitempty"`
}

func (r *receipts) take(records int, result client.PublishResult) error {
	for i := range records {
		out := receipt{Namespace: r.namespace, Stream: r.flags.stream, Record: r.acked.Load()}
		if r.flags.keyed {
			out.Key = &r.flags.key
		}
		if result.HasOffset {
			offset := uint64(result.Offset) + uint64(i)
			out.Offset, r.last = &offset, &offset
			if r.first == nil {
				r.first = &offset
			}
		}
		r.acked.Add(1)
		if r.app.flags.json && r.flags.ack != "none" {
			if err := writeJSON(r.app.sys.stdout, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *receipts) progress() string {
	return fmt.Sprintf("%s to %s/%s acknowledged", plural(int(r.acked.Load()), "record"), r.namespace, r.flags.stream)
}

// outcome prints the end and returns the failure, if any. sendErr is why sending stopped early.
func (r *receipts) outcome(ctx context.Context, sendErr error) error {
	n := int(r.acked.Load())
	err := r.err
	if err == nil {
		err = sendErr
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = ctx.Err()
	}
	if err != nil && n == 0 && r.failed <= 1 {
		return err // it is about the only record
	}
	if err != nil {
		return fmt.Errorf("%w (%s acknowledged before; %d sent without acknowledgement)", err, plural(n, "record"), r.failed)
	}
	if r.app.flags.json {
		return nil
	}
	type summary struct {
		Namespace   string  `json:"namespace"`
		Stream      string  `json:"stream"`
		Records     int     `json:"records"`
		FirstOffset *uint64 `json:"first_offset,omitempty"`
		LastOffset  *uint64 `json:"last_offset,omitempty"`
	}
	verb, where := "published", ""
	if r.flags.ack == "none" {
		verb = "sent"
	}
	switch {
	case r.first == nil:
	case *r.first == *r.last:
		where = fmt.Sprintf(", offset %d", *r.first)
	default:
		where = fmt.Sprintf(", offsets %d to %d", *r.first, *r.last)
	}
	return r.app.result(summary{r.namespace, r.flags.stream, n, r.first, r.last},
		"%s %s to %s/%s%s", verb, plural(n, "record"), r.namespace, r.flags.stream, where)
}
