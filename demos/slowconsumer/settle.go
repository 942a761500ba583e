package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/demos/local"
)

// finish waits for the last acknowledgements, then for every reader to have seen the end of the stream, and compares what they
// miss with what the broker counted.
func (l *lab) finish(ctx context.Context, stopped <-chan struct{}, r *report) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-stopped:
	case <-ctx.Done():
		return fmt.Errorf("the last publishes are not acknowledged: %w", context.Cause(ctx))
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	for _, x := range l.readers {
		t := x.tally()
		r.published = max(r.published, t.next)
		r.total = append(r.total, t)
	}
	counted, err := l.broker.Metric(droppedMetric)
	r.counted = uint64(counted)
	return err
}

// settle publishes one marker after the other until all readers have seen the same one: then nothing is on its way any more. A
// reader whose window is full may lose a marker, but not all of them, since it reads.
func (l *lab) settle(ctx context.Context) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		last := l.publisher.sent.Load()
		if err := l.mark(ctx); err != nil {
			return err
		}
		for range 20 {
			behind := 0
			for _, x := range l.readers {
				if x.tally().next <= last {
					behind++
				}
			}
			if behind == 0 {
				return nil
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return fmt.Errorf("%d of %d subscribers have not seen the end of the stream: %w", behind, len(l.readers), context.Cause(ctx))
			}
		}
	}
}

func (l *lab) mark(ctx context.Context) error {
	record := make([]byte, l.o.payload)
	putNumber(record, l.publisher.sent.Add(1)-1)
	if _, err := l.publisher.client.Publish(ctx, local.Namespace, streamName, record); err != nil {
		return fmt.Errorf("publish the end of the stream: %w", err)
	}
	return nil
}

func (l *lab) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	if l.publisher != nil {
		errs = append(errs, l.publisher.client.Close(ctx))
	}
	for _, x := range l.readers {
		errs = append(errs, x.close(ctx))
	}
	return errors.Join(append(errs, l.broker.Close())...)
}
