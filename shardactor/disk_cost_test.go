package shardactor

import (
	"testing"

	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
)

// window is a publisher with so many publishes under way.
type window chan struct{}

func newWindow(n int) window {
	w := make(window, n)
	for range n {
		w <- struct{}{}
	}
	return w
}

func (w window) Answer(_ shardcore.Token, a Answer) {
	if a.Refusal != nil {
		panic(a.Refusal.Error())
	}
	w <- struct{}{}
}

func (window) Flush() {}

// publish sends one as soon as one of those before it was answered.
func (w window) publish(t testing.TB, h *Handle) {
	<-w
	m := message("a record of some forty bytes, as many are")
	m.To(w, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
}

func (w window) finish() {
	for range cap(w) {
		<-w
	}
	for range cap(w) {
		w <- struct{}{}
	}
}

// The budget of the hot path is eight allocations for one batch in steady state; three of these are the message and its body.
func TestADurablePublishAllocatesLittle(t *testing.T) { // mission 204
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.store.SegmentBytes = 64 << 20 })
	a := durableStream("orders", 7, 1)
	d.desire(a)
	h, w := d.shard(a.Name, 0, nil), newWindow(64)
	const batches = 1024
	each := testing.AllocsPerRun(5, func() {
		for range batches {
			w.publish(t, h)
		}
		w.finish()
	}) / batches
	t.Logf("%.2f allocations each", each)
	if each > 8 {
		t.Errorf("%.2f allocations for one publish", each)
	}
}

func BenchmarkDurablePublish(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(map[int]string{1: "one at a time", 64: "64 under way"}[n], func(b *testing.B) {
			d := newDiskWorld(b, vfs.NewMem(), func(x *diskSetup) { x.store.SegmentBytes = 64 << 20 })
			a := durableStream("orders", 7, 1)
			d.desire(a)
			h, w := d.shard(a.Name, 0, nil), newWindow(n)
			b.ReportAllocs()
			for b.Loop() {
				w.publish(b, h)
			}
			w.finish()
		})
	}
}
