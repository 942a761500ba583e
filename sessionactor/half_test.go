package sessionactor

import (
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
)

// decision 37, field case STR-03: a stuck shard takes half of its connection's permits; what is beyond is refused, or dropped and
// counted, and the other shards of the same connection go on.
func TestAStuckShardDoesNotTakeTheWholeConnection(t *testing.T) {
	const bound, size = 256 << 10, 16 << 10
	x := open(t, setting{change: func(o *Options) { o.ConnBytes = bound }})
	c := x.connect()
	stuck, silent, other := dial(t, c, today()), dial(t, c, today()), dial(t, c, today())
	x.pause("orders")
	const n, fits = 20, bound / 2 / (size + 64) // a frame has less than 64 bytes of names
	payload := strings.Repeat("x", size)
	for i := range uint64(n) {
		stuck.raw(batchTo("orders", i, wire.AckPerBatch, payload))
	}
	x.counts("felix_tenant_publish_queue_full_total", n-fits)
	for range 5 {
		silent.raw(batchTo("orders", 0, wire.AckNone, payload))
	}
	x.counts("felix_tenant_publish_queue_full_total", n-fits+5)
	for range 100 {
		other.publish("wide", payload)
	}
	eventually(t, "the stuck shard has half of the permits at most", func() bool { _, n := x.opts.Frames.InUse(); return n <= bound/2 })
	x.heal("orders")
	if done := stuck.acks(0, n); done != fits {
		t.Errorf("%d publishes were let through, want %d", done, fits)
	}
	got := x.labels("felix_tenant_publish_queue_full_total")
	if got["felix_tenant_publish_queue_full_total dropped"] != 5 || got["felix_tenant_publish_queue_full_total refused"] != n-fits {
		t.Errorf("counted: %v", got)
	}
	stuck.publish("orders", "on")
}

// A frame larger than half of the connection's permits passes when nothing else of its shard is under way.
func TestAFrameLargerThanHalfOfTheConnectionPassesAlone(t *testing.T) {
	x := open(t, setting{change: func(o *Options) { o.ConnBytes = 64 << 10 }})
	l := dial(t, x.connect(), today())
	for range 3 {
		l.publish("orders", strings.Repeat("x", 60<<10))
	}
}

func TestTenantsBeyondTheBoundShareOneLabel(t *testing.T) {
	x := open(t, setting{})
	x.opts.Metrics.QueueFull.Limit(2)
	for _, tenant := range []string{"a", "b", "c", "a", "d"} {
		x.opts.Metrics.QueueFull.count(tenant, "refused")
	}
	got := map[string]float64{}
	for _, f := range must(x.registry.Gather())(t) {
		if f.GetName() == "felix_tenant_publish_queue_full_total" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if len(got) != 3 || got["a"] != 2 || got["b"] != 1 || got["_overflow"] != 2 {
		t.Errorf("counted: %v", got)
	}
}
