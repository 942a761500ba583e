package sessionactor

import (
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// oneWay is a stream that only publishes, without acknowledgement; push sends the same batch of 64 records of 256 bytes again and again.
// Its publishes wait for room instead of being shed, so that all of them count.
type oneWay struct {
	log   storage.Reader
	first id.Offset
	up    *half
	frame []byte
	sent  uint64
}

func newOneWay(t testing.TB) *oneWay {
	t.Helper()
	x := open(t, setting{ringBatches: 64, ringBytes: 4 << 20, change: func(o *Options) { o.IngressWait = true }})
	o := &oneWay{log: x.log(), up: x.connect(func(c *memConn) { c.window = 64 << 10 }).publishOnly(), frame: batchTo("orders", 0, wire.AckNone, slices.Repeat([]string{strings.Repeat("x", 256)}, 64)...)}
	_, o.first = o.log.Bounds()
	if _, err := o.up.Write(wire.AppendJSONFrame(nil, today())); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *oneWay) push(t testing.TB) {
	if _, err := o.up.Write(o.frame); err != nil {
		t.Fatal(err)
	}
	o.sent++
}

// settle waits until all that was sent is published. To look costs no allocation: it may have to look often.
func (o *oneWay) settle(t testing.TB) {
	t.Helper()
	eventually(t, "everything is published", func() bool {
		_, end := o.log.Bounds()
		return end == o.first.Add(o.sent*64)
	})
}

// mission 204
func TestAnUnacknowledgedBatchCostsAtMostEightAllocations(t *testing.T) {
	o := newOneWay(t)
	for range 500 {
		o.push(t)
	}
	o.settle(t)
	const runs = 1000
	n := testing.AllocsPerRun(1, func() { // settling allocates too, once for all
		for range runs {
			o.push(t)
		}
		o.settle(t)
	}) / runs
	t.Logf("%.2f allocations for a batch", n)
	if n > 8+poolSlack {
		t.Errorf("%v allocations for a batch, want at most 8", n)
	}
}

func BenchmarkPublishUnacknowledged(b *testing.B) {
	o := newOneWay(b)
	b.SetBytes(int64(len(o.frame)))
	b.ReportAllocs()
	for b.Loop() {
		o.push(b)
	}
	o.settle(b)
}
