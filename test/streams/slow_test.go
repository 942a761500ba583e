package streams

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/client"
)

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// dropped is how many records slow readers lost, all together.
const dropped = "felix_subscribe_dropped_total"

// neglected is a subscription that was opened when so many records had been sent, and that nobody reads.
type neglected struct {
	sub  *client.Subscription
	from uint64
}

// neglect opens one.
func (f *flow) neglect(c *client.Client, o client.SubscribeOptions) neglected {
	f.t.Helper()
	return neglected{subscribe(f.t, c, f.stream, o), f.sent}
}

// recover reads a subscription that was neglected until it is up to date: until the last record that was sent has come. What comes must be
// in order, and nothing twice. It returns how many records came and how many did not.
//
// The last records may be among those that were dropped. So one more batch is sent when nothing comes any more, and the next one only after twice
// the time: on a slow machine the reader has to be faster than what is sent.
func (f *flow) recover(ctx context.Context, n neglected) (got, missing uint64) {
	f.t.Helper()
	var came atomic.Uint64
	var wrong error
	upToDate := make(chan struct{})
	go func() {
		defer close(upToDate)
		for last := uint64(0); got == 0 || last+1 < f.sentSoFar(); got++ {
			e, err := n.sub.Next(ctx)
			if err != nil {
				wrong = err
				return
			}
			number := numberOf(e.Payload)
			if number < n.from || got > 0 && number <= last {
				wrong = &gapError{want: last + 1, got: number}
				return
			}
			last, missing = number, number-n.from-got
			came.Add(1)
		}
	}()
	late, tick := time.NewTimer(patience), time.NewTicker(20*time.Millisecond)
	defer late.Stop()
	defer tick.Stop()
	quiet, enough := 0, 1 // ticks
	for before := came.Load(); ; {
		select {
		case <-upToDate:
			if wrong != nil {
				f.t.Fatalf("a neglected reader after %d records: %v", got, wrong)
			}
			return got, missing
		case <-late.C:
			f.t.Fatalf("a neglected reader does not recover: it has %d records", came.Load())
		case <-tick.C:
			now := came.Load()
			switch quiet++; {
			case now != before:
				before, quiet = now, 0
				late.Reset(patience)
			case quiet >= enough:
				f.step(ctx)
				quiet, enough = 0, 2*enough
			}
		}
	}
}

// drip reads one record in each interval until ctx ends, and returns how many it got.
func drip(ctx context.Context, s *client.Subscription, every time.Duration) (got uint64, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return got, nil
		}
		switch _, err := s.Next(ctx); {
		case ctx.Err() != nil, errors.Is(err, client.ErrClosed), errors.Is(err, io.EOF):
			return got, nil
		case err != nil:
			return got, err
		}
		got++
	}
}
