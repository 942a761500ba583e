package crash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire/id"
)

// ledger is what publishers were told. A record's content follows from its number, so that reading it back proves content, place and
// number of copies.
type ledger struct {
	mu      sync.Mutex
	next    uint64
	told    map[uint64]place // acknowledged: where
	unknown map[uint64]bool  // no answer, or one that leaves it open: there or not
	refused map[uint64]bool  // said not to be there
	most    map[uint32]id.Offset
}

type place struct {
	shard  uint32
	offset id.Offset
}

func newLedger() *ledger {
	return &ledger{told: map[uint64]place{}, unknown: map[uint64]bool{}, refused: map[uint64]bool{}, most: map[uint32]id.Offset{}}
}

const recordBytes = 256

// record is the content of record n: its number, then bytes that follow from it.
func record(n uint64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, recordBytes), n)
	r := rand.New(rand.NewPCG(n, 7))
	for len(b) < recordBytes {
		b = binary.BigEndian.AppendUint64(b, r.Uint64())
	}
	return b[:recordBytes]
}

// take gives out the numbers of a batch.
func (l *ledger) take(n int) (first uint64, payloads [][]byte) {
	l.mu.Lock()
	first = l.next
	l.next += uint64(n)
	l.mu.Unlock()
	for i := range n {
		payloads = append(payloads, record(first+uint64(i)))
	}
	return first, payloads
}

// heard notes what was said of a batch.
func (l *ledger) heard(first uint64, n int, shard uint32, r client.PublishResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range uint64(n) {
		switch {
		case err == nil && r.HasOffset:
			l.told[first+i] = place{shard, r.Offset.Add(i)}
			l.most[shard] = max(l.most[shard], r.Offset.Add(i+1))
		case err != nil && !errors.Is(err, client.ErrOutcomeUnknown) && !errors.Is(err, client.ErrConnectionLost) && !errors.Is(err, context.Canceled):
			l.refused[first+i] = true
		default:
			l.unknown[first+i] = true
		}
	}
}

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.told)
}

// check reads the stream and compares: what was acknowledged is there, at its offset, once; what was refused is not; offsets are
// consecutive from 0.
func (l *ledger) check(t testing.TB, d *daemon, stream string, shards int) {
	t.Helper()
	c := d.Connect()
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := make(map[uint64]place, len(l.told))
	for shard := range uint32(shards) {
		next, end := id.Offset(0), l.most[shard]
		for r, err := range c.ReadRange(context.Background(), namespace, stream, client.ReadOptions{Shard: shard}) {
			if err != nil {
				t.Fatalf("read shard %d at %d: %v", shard, next, err)
			}
			if r.Offset != next {
				t.Fatalf("shard %d: offset %d follows %d", shard, r.Offset, next)
			}
			next++
			n := binary.BigEndian.Uint64(r.Payload)
			if string(r.Payload) != string(record(n)) {
				t.Fatalf("shard %d: the content at %d is not that of any record", shard, r.Offset)
			}
			if was, again := seen[n]; again {
				t.Errorf("record %d is at %d/%d and at %d/%d", n, was.shard, was.offset, shard, r.Offset)
			}
			seen[n] = place{shard, r.Offset}
		}
		if next < end {
			t.Errorf("shard %d ends at %d; records up to %d were acknowledged", shard, next, end)
		}
	}
	lost := 0
	for n := range l.next {
		where, told := l.told[n]
		got, there := seen[n]
		switch {
		case told && !there:
			lost++
		case told && got != where:
			t.Errorf("record %d was acknowledged at %d/%d and is at %d/%d", n, where.shard, where.offset, got.shard, got.offset)
		case there && l.refused[n]:
			t.Errorf("record %d was refused and is at %d/%d", n, got.shard, got.offset)
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged records are missing", lost, len(l.told))
	}
	t.Logf("%d acknowledged, %d of unknown outcome, %d refused; %d are there", len(l.told), len(l.unknown), len(l.refused), len(seen))
}

// publishers are clients that publish until they are stopped, whatever becomes of their broker.
type publishers struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// publish starts n of them: each publishes batches of up to most records to shards that it picks by key.
func (l *ledger) publish(t testing.TB, d *daemon, stream string, n, most int, keys [][]byte) *publishers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &publishers{cancel: cancel}
	for i := range n {
		c := d.Connect(func(o *client.Options) { o.RetryDeadline = time.Second })
		r := rand.New(rand.NewPCG(uint64(i), 11))
		p.done.Go(func() {
			for ctx.Err() == nil {
				size, shard := 1+r.IntN(most), r.IntN(len(keys))
				first, payloads := l.take(size)
				got, err := c.PublishBatch(ctx, namespace, stream, payloads, client.WithKey(keys[shard]))
				l.heard(first, size, uint32(shard), got, err)
			}
		})
	}
	return p
}

func (p *publishers) stop() {
	p.cancel()
	p.done.Wait()
}

// keysOf finds a key for each shard of a stream.
func keysOf(t testing.TB, c *client.Client, stream string, shards int) [][]byte {
	t.Helper()
	ctx, cancel := testkit.Within()
	defer cancel()
	s := must(c.StreamShards(ctx, namespace, stream))(t)
	if int(s.Count) != shards {
		t.Fatalf("the stream has %d shards, want %d", s.Count, shards)
	}
	keys, found := make([][]byte, shards), 0
	for i := 0; found < shards; i++ {
		key := []byte(fmt.Sprint("key", i))
		if n := s.Routing.Shard(key, true, s.Count); keys[n] == nil {
			keys[n] = key
			found++
		}
	}
	return keys
}

// value reads one metric of a page; one that is not there is 0.
func value(page, name string) float64 {
	v, _ := testkit.Metric(page, name)
	return v
}
