package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
	"github.com/felixd/felixd/wire/id"
)

// ledger is what publishers were told and what the subscriber saw.
type ledger struct {
	mu      sync.Mutex
	next    uint64
	told    map[uint64]id.Offset // acknowledged records
	unknown map[uint64]bool      // records that nobody knows of: there or not
	refused int
	seen    uint64 // records that the subscriber got
	wrong   string // the first thing that it should not have got
}

func newLedger() *ledger { return &ledger{told: map[uint64]id.Offset{}, unknown: map[uint64]bool{}} }

// count is how many records are acknowledged.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.told)
}

// countAbove waits until more records are acknowledged than n, and returns how many.
func (l *ledger) countAbove(ctx context.Context, n int) (int, error) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		if got := l.count(); got > n {
			return got, nil
		}
		select {
		case <-look.C:
		case <-late.C:
			return 0, errors.New("nothing was acknowledged for a minute after the broker was started again")
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// batchRecords is how many records are published at once.
const batchRecords = 20

// record is record n: 128 bytes that begin with its number.
func record(n uint64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, n), strings.Repeat("durable ", 15)...)
}

// seenAll waits until the subscriber has so many records, or has got something wrong, and returns what it has. A client that only listens
// notices after about four seconds that its broker was killed.
func (l *ledger) seenAll(ctx context.Context, n int) (seen uint64, wrong string) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		l.mu.Lock()
		seen, wrong = l.seen, l.wrong
		l.mu.Unlock()
		if wrong != "" || seen >= uint64(n) {
			return seen, wrong
		}
		select {
		case <-look.C:
		case <-late.C:
			return seen, fmt.Sprintf("got %d records, and no more for a minute", seen)
		case <-ctx.Done():
			return seen, "was interrupted"
		}
	}
}

// begin starts the publishers and the subscriber. quiet ends the publishers, stop all.
func (l *ledger) begin(ctx context.Context, at local.Place, publishers int) (quiet, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	publishing, hush := context.WithCancel(ctx)
	var done, published sync.WaitGroup
	var clients []*client.Client
	quiet = func() { hush(); published.Wait() }
	stop = sync.OnceFunc(func() {
		cancel()
		quiet()
		done.Wait()
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, c := range clients {
			_ = c.Close(closing) // it tells of requests without an answer, which the ledger has as unknown
		}
	})
	for range publishers + 1 {
		c, err := client.Connect(ctx, at.Client())
		if err != nil {
			stop()
			return nil, nil, err
		}
		clients = append(clients, c)
	}
	sub, err := clients[0].Subscribe(ctx, local.Namespace, streamName, client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		stop()
		return nil, nil, err
	}
	done.Go(func() { l.watch(ctx, sub) })
	for _, c := range clients[1:] {
		published.Go(func() {
			for publishing.Err() == nil {
				l.publish(publishing, c)
			}
		})
	}
	return quiet, stop, nil
}

// publish publishes one batch and notes what became of it.
func (l *ledger) publish(ctx context.Context, c *client.Client) {
	l.mu.Lock()
	first := l.next
	l.next += batchRecords
	l.mu.Unlock()
	var payloads [][]byte
	for n := first; n < first+batchRecords; n++ {
		payloads = append(payloads, record(n))
	}
	r, err := c.PublishBatch(ctx, local.Namespace, streamName, payloads)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range uint64(batchRecords) {
		switch {
		case err == nil:
			l.told[first+i] = r.Offset.Add(i)
		case errors.Is(err, client.ErrOutcomeUnknown), errors.Is(err, client.ErrConnectionLost), ctx.Err() != nil:
			l.unknown[first+i] = true
		default:
			l.refused++
		}
	}
}

// watch reads the subscription: each offset once and in order, through all restarts.
func (l *ledger) watch(ctx context.Context, sub *client.Subscription) {
	for due := id.Offset(0); ; due++ {
		e, err := sub.Next(ctx)
		l.mu.Lock()
		switch {
		case ctx.Err() != nil:
			l.mu.Unlock()
			return
		case err != nil:
			l.wrong = fmt.Sprintf("it ended at offset %d: %v", due, err)
		case !e.HasOffset || e.Offset != due:
			l.wrong = fmt.Sprintf("offset %d came where %d was due", e.Offset, due)
		}
		l.seen++
		over := l.wrong != ""
		l.mu.Unlock()
		if over {
			return
		}
	}
}

// report is the ledger's balance.
type report struct {
	acknowledged, there, unknown, refused int
	missing, moved, twice, broken         int
	seen                                  uint64
	wrong                                 string
}

// balance reads the stream from its beginning and compares.
func (l *ledger) balance(ctx context.Context, at local.Place) (r report, err error) {
	c, err := client.Connect(ctx, at.Client())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	l.mu.Lock()
	defer l.mu.Unlock()
	r = report{acknowledged: len(l.told), unknown: len(l.unknown), refused: l.refused}
	where := map[uint64]id.Offset{}
	for stored, err := range c.ReadRange(ctx, local.Namespace, streamName, client.ReadOptions{}) {
		if err != nil {
			return r, err
		}
		r.there++
		n := binary.BigEndian.Uint64(stored.Payload)
		if string(stored.Payload) != string(record(n)) {
			r.broken++
		}
		if _, again := where[n]; again {
			r.twice++
		}
		where[n] = stored.Offset
	}
	for n := range l.next {
		offset, told := l.told[n]
		got, there := where[n]
		switch {
		case told && !there:
			r.missing++
		case told && got != offset:
			r.moved++
		}
	}
	return r, nil
}

func (r report) balanced() bool {
	return r.acknowledged > 0 && r.missing == 0 && r.moved == 0 && r.twice == 0 && r.broken == 0 && r.wrong == "" && r.seen >= uint64(r.there)
}

func (r report) String() string {
	subscriber := fmt.Sprintf("got %d records, each once and in order", r.seen)
	if r.wrong != "" {
		subscriber = r.wrong
	}
	return fmt.Sprintf(`acknowledged            %8d
  of them missing       %8d
  at another offset     %8d
outcome unknown         %8d
refused                 %8d
in the stream           %8d
  twice                 %8d
  with other content    %8d
the subscriber          %s
`, r.acknowledged, r.missing, r.moved, r.unknown, r.refused, r.there, r.twice, r.broken, subscriber)
}
