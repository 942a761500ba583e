package durable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire/id"
)

// ledger is what publishers of one shard were told of their records, each of which is there once at most.
type ledger struct {
	mu      sync.Mutex
	told    map[string]id.Offset // acknowledged: where
	unknown map[string]error
	refused map[string]bool
	stop    context.CancelFunc
	done    sync.WaitGroup
}

func newLedger() *ledger {
	return &ledger{told: map[string]id.Offset{}, unknown: map[string]error{}, refused: map[string]bool{}, stop: func() {}}
}

// value is a record of 500 bytes that nobody else has.
func value(who string, n int) string {
	head := fmt.Sprintf("%s-%d-", who, n)
	return head + strings.Repeat("x", 500-len(head))
}

// heard notes what was said of a record.
func (l *ledger) heard(value string, r client.PublishResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.told[value] = r.Offset
	case errors.Is(err, client.ErrOutcomeUnknown), errors.Is(err, client.ErrConnectionLost), errors.Is(err, context.Canceled):
		l.unknown[value] = err
	default:
		l.refused[value] = true
	}
}

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.told)
}

// publish has each client publish records to shard 0, one after the other, until end. Nobody else is called who.
func (l *ledger) publish(who, name string, clients ...*client.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	for i, c := range clients {
		l.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				v := value(fmt.Sprint(who, i), n)
				r, err := c.Publish(ctx, namespace, name, []byte(v))
				l.heard(v, r, err)
			}
		})
	}
}

func (l *ledger) end() {
	l.stop()
	l.done.Wait()
}

// check compares what a shard holds, from its beginning, with what was told.
func (l *ledger) check(t testing.TB, records []client.Record) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[string]id.Offset{}
	for i, r := range records {
		v := string(r.Payload)
		if r.Offset != records[0].Offset.Add(uint64(i)) {
			t.Fatalf("offset %d is the %dth record, the first has %d", r.Offset, i, records[0].Offset)
		}
		if was, twice := seen[v]; twice {
			t.Fatalf("%.20q is at %d and at %d", v, was, r.Offset)
		}
		seen[v] = r.Offset
		if l.refused[v] {
			t.Errorf("%.20q was refused and is at %d", v, r.Offset)
		}
		if _, told := l.told[v]; !told && l.unknown[v] == nil {
			t.Errorf("%.20q at %d was never published", v, r.Offset)
		}
	}
	lost := 0
	for v, at := range l.told {
		switch got, there := seen[v]; {
		case !there:
			lost++
		case got != at:
			t.Errorf("%.20q was acknowledged at %d and is at %d", v, at, got)
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged records are missing", lost, len(l.told))
	}
}

// deliveredOnly fails the test if a subscriber got what its publisher was not told is there. What a publisher was told nothing of, because it
// stopped waiting at the end, may have been delivered.
func (l *ledger) deliveredOnly(t testing.TB, delivered []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range delivered {
		if _, told := l.told[v]; !told && !errors.Is(l.unknown[v], context.Canceled) {
			t.Errorf("%.20q was delivered; its publisher was told: refused %v, unknown %v", v, l.refused[v], l.unknown[v])
		}
	}
}
