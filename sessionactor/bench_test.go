package sessionactor

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

// exchange is a client that sends the same frame again and again and waits for the answer, without allocating anything.
type exchange struct {
	s        io.ReadWriter
	frame    []byte
	answer   []byte
	expected []byte
}

func newExchange(t testing.TB, x *site, first frame, request, answer []byte) *exchange {
	t.Helper()
	l := dial(t, x.connect(), today())
	if first.message != nil {
		l.ask(first.message)
	}
	return &exchange{s: l.s.(io.ReadWriter), frame: request, answer: make([]byte, len(answer)), expected: answer}
}

func (e *exchange) do(t testing.TB) {
	if _, err := e.s.Write(e.frame); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(e.s, e.answer); err != nil || !bytes.Equal(e.answer, e.expected) {
		t.Fatalf("answered %q: %v", e.answer, err)
	}
}

// publishing exchanges a batch of 64 records of 256 bytes for its ack.
func publishing(t testing.TB, x *site) *exchange {
	request := batchTo("orders", 7, wire.AckPerBatch, slices.Repeat([]string{strings.Repeat("x", 256)}, 64)...)
	return newExchange(t, x, frame{}, request, wire.AppendPublishAck(nil, &wire.PublishAck{RequestID: 7}, wire.Grant{Flags: wire.FlagPublishAck}))
}

// getting exchanges a cache_get for a value of 256 bytes.
func getting(t testing.TB, x *site) *exchange {
	value := bytes.Repeat([]byte("v"), 256)
	put := &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "key-1", Value: value}
	request := wire.AppendJSONFrame(nil, &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "key-1", RequestID: wire.Some(uint64(5))})
	l := dial(t, x.connect(), today())
	l.ask(put)
	l.raw(request)
	f := l.next() // it has the value's version
	return newExchange(t, x, frame{}, request, append(wire.AppendHeader(nil, wire.Header{Length: uint32(len(f.payload))}), f.payload...))
}

// The ring is small and full, so that what a batch costs is what it costs for ever.
func benchSite(t testing.TB) *site { return open(t, setting{ringBatches: 64, ringBytes: 4 << 20}) }

func warmed(t testing.TB, e *exchange) *exchange {
	for range 500 {
		e.do(t)
	}
	return e
}

// From the bytes of a batch to its ack: lane, shard and answer together stay within the budget of the design.
//
// mission 204, mission 337
func TestAPublishedBatchCostsAtMostEightAllocations(t *testing.T) {
	e := warmed(t, publishing(t, benchSite(t)))
	n := testing.AllocsPerRun(2000, func() { e.do(t) })
	t.Logf("%v allocations for a batch", n)
	if n > 8+poolSlack {
		t.Errorf("%v allocations for a batch, want at most 8", n)
	}
}

// What a reader more costs is no copy and no encoding. mission 223
func TestAReaderOfTheCommonFormAddsAtMostSixAllocationsToABatch(t *testing.T) {
	x := benchSite(t)
	e := warmed(t, publishing(t, x))
	alone := testing.AllocsPerRun(1000, func() { e.do(t) })
	c := x.connect()
	s := dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartLatest))
	size := len(wire.AppendEventBatch(nil, wire.FlagEventBatchShared, &wire.EventBatch{Count: 64})) + 64*(256+wire.PayloadOverhead)
	events := make([]byte, size)
	both := func() {
		e.do(t)
		if _, err := io.ReadFull(s.h, events); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		both()
	}
	n := testing.AllocsPerRun(1000, both)
	t.Logf("%v allocations for a batch, %v with a reader", alone, n)
	if n > alone+6+poolSlack {
		t.Errorf("a reader adds %v allocations to a batch, want at most 6", n-alone)
	}
}

func TestACacheGetCostsAtMostTwelveAllocations(t *testing.T) {
	e := warmed(t, getting(t, benchSite(t)))
	n := testing.AllocsPerRun(2000, func() { e.do(t) })
	t.Logf("%v allocations for a get", n)
	if n > 12+poolSlack {
		t.Errorf("%v allocations for a get, want at most 12", n)
	}
}

func benchmark(b *testing.B, e *exchange) {
	warmed(b, e)
	b.SetBytes(int64(len(e.frame)))
	b.ReportAllocs()
	for b.Loop() {
		e.do(b)
	}
}

func BenchmarkPublishBatch(b *testing.B) { benchmark(b, publishing(b, benchSite(b))) }

func BenchmarkCacheGet(b *testing.B) { benchmark(b, getting(b, benchSite(b))) }
