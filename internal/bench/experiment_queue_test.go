package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
)

func queueSpec(stream string) QueueSpec {
	return QueueSpec{Name: "queue", Title: "queue", Stream: stream, Payload: 64, Poll: 16, InFlight: 16, Rate: 200, Target: 0.25, P99: time.Minute}
}

func TestQueueIsMeasuredBesideSinglePublishes(t *testing.T) {
	f := newFelixd(t, testbroker.Options{Durable: true})
	e, err := QueueExperiment(newContext(t), f, queueSpec("one"))
	r := measured(t, e, err, func(r Report) bool { return len(r.Cases) == 3 && timed(r.Cases[2].Rounds[0]) })
	if len(r.Cases) != 3 || len(r.Ratios) != 3 {
		t.Fatalf("%d cases, %d ratios", len(r.Cases), len(r.Ratios))
	}
	if ratio := r.Ratios[0]; ratio.Of != "poll and ack" || ratio.By != "publish" || ratio.Met == nil {
		t.Errorf("rate: %+v", ratio)
	}
	p50, p99 := r.Ratios[1], r.Ratios[2]
	if p50.By != "1m0s" || p50.Met != nil || p99.Met == nil || !*p99.Met {
		t.Errorf("hand out: %+v, %+v", p50, p99)
	}
	if got, want := p99.Rounds[0], r.Cases[2].Rounds[0].Latency.P99/60e6; got < 0.999*want || got > 1.001*want {
		t.Errorf("p99 is %v of a minute, want %v", got, want)
	}
}

func TestGroupOfAMeasurementIsRemovedAndBeginsWithWhatComes(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Durable: true, Streams: map[string]uint32{"default/wide": 3}})
	for shard := range uint32(3) {
		b.Append("default/wide", shard, testbroker.Region("somebody else's"))
	}
	f := Felixd{Options: client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM}, Namespace: "default"}
	ctx := newContext(t)
	s, err := SubscribeQueue(ctx, QueuePlan{Options: f.Options, Namespace: f.Namespace, Stream: "wide", Poll: 4})
	if err != nil {
		t.Fatal(err)
	}
	group := s.(*queueSubscriber).group
	for shard := range uint32(3) {
		if at := b.Group("default/wide", shard, group).Cursor; at != 1 {
			t.Errorf("the group begins at %d on shard %d", at, shard)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for shard := range uint32(3) {
		if at := b.Group("default/wide", shard, group).Cursor; at != 0 { // looking at it makes a new one
			t.Errorf("the group is still there, at %d on shard %d", at, shard)
		}
	}
}

func TestQueueOfAStreamThatIsMissingIsAnError(t *testing.T) {
	e, err := QueueExperiment(newContext(t), newFelixd(t, testbroker.Options{Durable: true}), queueSpec("missing"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Measure(newContext(t), 1, brief(), nil); !errors.Is(err, client.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
}

func TestRecordOfSomebodyElseEndsAQueueMeasurement(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Durable: true, Streams: map[string]uint32{"default/one": 1}})
	o := client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM}
	ctx := newContext(t)
	s, err := SubscribeQueue(ctx, QueuePlan{Options: o, Namespace: "default", Stream: "one", Poll: 4})
	if err != nil {
		t.Fatal(err)
	}
	b.Append("default/one", 0, testbroker.Region("\xff\xff\xff\xff\xff\xff\xff\xffsomebody else's"))
	tr := newTrial(ctx, brief(), nil)
	defer tr.fail(nil)
	got := newReceived(tr, Shape{Payload: 64, Batch: 1}, func() uint64 { return 0 }, func() {})
	if err := s.Receive(ctx, got); !errors.Is(err, errForeign) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}
