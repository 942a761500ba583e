package node

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/felixd/felixd/shardactor/route"
)

// series counts the series of a metric that have samples, by all their label values.
func (b *broker) series(name string) map[string]uint64 {
	b.t.Helper()
	out := map[string]uint64{}
	for _, f := range must(b.registry.Gather())(b.t) {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				out[values(m)] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return out
}

func values(m *dto.Metric) (text string) {
	for _, l := range m.GetLabel() {
		text += l.GetValue() + " "
	}
	return text
}

// mission 336, mission 339
func TestStagesAreInTheMetricsOfANodeUnlessTheyAreDisabled(t *testing.T) {
	timed, untimed := start(t, func(o *Options) { o.TimingEvery = 1 }), start(t)
	for _, b := range []*broker{timed, untimed} {
		l, _ := b.dial("felix/1").open(today())
		for id := range uint64(3) {
			l.raw(batchTo("orders", id, "x"))
			l.next()
		}
		l.finish()
	}
	eventually(t, "each publish was noted in each stage", func() bool {
		got := timed.series("felix_stage_seconds")
		return got["publish wire "] == 3 && got["publish queue "] == 3 && got["publish storage "] == 3 && got["publish transport "] == 3
	})
	if got := untimed.series("felix_stage_seconds"); len(got) != 0 {
		t.Errorf("noted although timings are off: %v", got)
	}
}

func TestLimitsOfIngressReachTheSessions(t *testing.T) {
	b := start(t, func(o *Options) {
		o.Limits.AnswerBytes, o.Limits.QueueWait, o.Limits.PublishConnBytes = 3<<20, 100*time.Millisecond, 64<<10
	})
	if n := b.metric("felix_answer_budget_bytes"); n != 3<<20 {
		t.Errorf("the budget of answers is %v", n)
	}
	b.fault(t, "pause", "orders", 0)
	l, _ := b.dial("felix/1").open(today())
	for id := range uint64(3) { // two are half of what the connection may have under way
		l.raw(batchTo("orders", id, string(make([]byte, 15<<10))))
	}
	eventually(t, "one has waited for room, and is refused", func() bool {
		return b.metric("felix_publish_queue_waits_total") == 1 && b.metric("felix_tenant_publish_queue_full_total") == 1
	})
	b.fault(t, "heal", "orders", 0)
	for range 3 {
		l.next()
	}
	if n := b.metric("felix_published_records_total"); n != 2 {
		t.Errorf("%v were published", n)
	}
}

// fault pauses or heals a shard of a stream.
func (b *broker) fault(t *testing.T, do, stream string, shard uint32) {
	t.Helper()
	target, _ := b.node.Table.Get(resource(route.Stream, stream, 1).Name).Shard(shard)
	path, faults := target.Shard.Ref.Path(), b.node.System.Faults()
	err := faults.Heal(path)
	if do == "pause" {
		err = faults.Pause(path, 10*time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
}
