package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// measured runs an experiment once and checks what has to be true of every honest one: something was done on both sides, and nothing was
// lost, repeated or refused. If the report is not what is wanted, on a machine that is busy, it takes a second and longer try.
func measured(t *testing.T, e Experiment, err error, wanted ...func(Report) bool) Report {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	wanted = append(wanted, each(func(r Result) bool { return r.Records > 0 }))
	unwanted := func(is func(Report) bool) bool { return !is(r) }
	began := time.Now()
	for timing := (Timing{WarmUp: 10 * time.Millisecond, Duration: 50 * time.Millisecond}); ; timing.Duration *= 3 {
		r, err = e.Measure(newContext(t), 1, timing, nil)
		var short *ShortError
		if !errors.As(err, &short) && !slices.ContainsFunc(wanted, unwanted) || timing.Duration > patience/20 || time.Since(began) > patience/2 {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cases {
		round := c.Rounds[0]
		if round.Records == 0 || round.Refused > 0 || round.Repeated > 0 || round.Lost != nil && *round.Lost > 0 || round.GeneratorCPU == nil {
			t.Errorf("%s, %s: %+v", r.Name, c.Label, round)
		}
	}
	return r
}

// each reports whether something is true of each case of a report.
func each(is func(Result) bool) func(Report) bool {
	return func(r Report) bool {
		return !slices.ContainsFunc(r.Cases, func(c CaseReport) bool { return !is(c.Rounds[0]) })
	}
}

// timed reports whether a round has latencies.
func timed(r Result) bool { return r.Latency != nil }

func TestPublishIsMeasuredBesideASink(t *testing.T) {
	f, raw, ctx := newFelixd(t, testbroker.Options{}), newRaw(t), newContext(t)
	spec := PublishSpec{
		Name: "pub", Stream: "eight", Shape: Shape{Payload: 64, Batch: 16}, Acked: true, InFlight: 16, Streams: 8, Conns: 2, Generator: ByClient, Encoding: Binary,
	}
	for _, change := range []func(*PublishSpec){
		func(*PublishSpec) {},
		func(s *PublishSpec) { s.Acked, s.Streams, s.Conns = false, 1, 1 },
		func(s *PublishSpec) { s.Generator = ByWire },
		func(s *PublishSpec) { s.Generator, s.Encoding = ByWire, JSON },
		func(s *PublishSpec) { s.Batch, s.PerRecord = 1, true },
		func(s *PublishSpec) { s.Payload, s.Batch = 40_000, 3 }, // larger than a write
	} {
		s := spec
		change(&s)
		e, err := PublishExperiment(ctx, f, raw, s)
		r := measured(t, e, err, func(r Report) bool { return !s.Acked || len(r.Cases) > 0 && timed(r.Cases[0].Rounds[0]) })
		if latency := r.Cases[0].Rounds[0].Latency; (latency != nil) != s.Acked {
			t.Errorf("%+v: latency %+v", s, latency)
		}
		if lost := r.Cases[0].Rounds[0].Lost; (lost == nil) == s.Acked {
			t.Errorf("%+v: without metrics only acknowledgements tell what was lost; got %v", s, lost)
		}
		if raw := r.Cases[1].Rounds[0]; raw.ServerCPU == nil || raw.Lost == nil {
			t.Errorf("%+v: raw side %+v", s, raw)
		}
	}
}

// mission 187
func TestEncodingsAreComparedByTheSameGenerator(t *testing.T) {
	var mu sync.Mutex
	var flags []wire.Flags
	f := newFelixd(t, testbroker.Options{OnFrame: func(_ *testbroker.Stream, frame testbroker.Frame) bool {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(flags, frame.Header.Flags) {
			flags = append(flags, frame.Header.Flags)
		}
		return false
	}})
	e, err := EncodingExperiment(newContext(t), f, PublishSpec{
		Name: "encoding", Stream: "one", Shape: Shape{Payload: 64, Batch: 16}, Acked: true, InFlight: 4, Streams: 1, Conns: 1, Target: 1.3,
	})
	r := measured(t, e, err)
	if r.Ratios[0].Of != "binary" || r.Ratios[0].By != "json" {
		t.Fatalf("compared %+v", r.Ratios)
	}
	if !slices.Contains(flags, wire.FlagPublishBatch|wire.FlagPublishAcked) || !slices.Contains(flags, 0) {
		t.Fatalf("the broker got frames with flags %v, want binary publishes and JSON", flags)
	}
}

func TestSinkIsMeasuredAlone(t *testing.T) {
	measured(t, SinkExperiment(newFelixd(t, testbroker.Options{}), newRaw(t), "sink", "sink"), nil)
}

func TestDeliveryIsMeasuredBesideARelay(t *testing.T) {
	f, raw := newFelixd(t, testbroker.Options{}), newRaw(t)
	for _, s := range []FlowSpec{
		{Name: "sub", Stream: "one", Shape: Shape{Payload: 64, Batch: 16}, Subscribers: 1},
		{Name: "fanout", Stream: "one", Shape: Shape{Payload: 64, Batch: 16}, Subscribers: 3},
		{Name: "relay", Stream: "one", Shape: Shape{Payload: 64, Batch: 16}, Subscribers: 1, Acked: true, InFlight: 4, Stamps: true},
		{Name: "paced", Stream: "one", Shape: Shape{Payload: 64, Batch: 1}, Subscribers: 1, Acked: true, InFlight: 64, Rate: 500, Stamps: true},
	} {
		r := measured(t, FlowExperiment(f, raw, s), nil, each(func(r Result) bool { return !s.Stamps || timed(r) }))
		for _, c := range r.Cases {
			if latency := c.Rounds[0].Latency; (latency != nil) != s.Stamps {
				t.Errorf("%s, %s: latency %+v", s.Name, c.Label, latency)
			}
		}
	}
}

func TestLatencyIsMeasuredBesideAnEcho(t *testing.T) {
	f, raw := newFelixd(t, testbroker.Options{}), newRaw(t)
	e, err := LatencyExperiment(newContext(t), f, raw, LatencySpec{Name: "latency", Stream: "eight", Payload: 64, Rate: 500, Streams: 8, Conns: 1})
	r := measured(t, e, err, each(timed), each(func(r Result) bool { return r.Late != nil }))
	for _, c := range r.Cases {
		if c.Rounds[0].Latency == nil || c.Rounds[0].Late == nil {
			t.Errorf("%s: %+v", c.Label, c.Rounds[0])
		}
	}
	if r.Loop != "open" {
		t.Errorf("it is called a %s loop", r.Loop)
	}
}

// mission 241, mission 242, mission 243
func TestCacheIsMeasuredBesideAnEcho(t *testing.T) {
	f, raw := newFelixd(t, testbroker.Options{}), newRaw(t)
	for _, payload := range []int{0, 256, 4096} {
		r := measured(t, CacheExperiment(f, raw, CacheSpec{
			Name: "cache", Title: "cache", Sides: []CacheSide{{Cache: "c", Targets: []CacheGoal{{Hit, 1.6}}}}, Ops: []CacheOp{Put, Hit, Miss}, Payload: payload, Keys: 8, Concurrency: 4, Conns: 1,
		}), nil)
		if len(r.Ratios) < 3 || r.Ratios[0].Label != "cache, put p50" || r.Ratios[0].Met != nil || judged(r) != 1 {
			t.Errorf("%d B: ratios %+v", payload, r.Ratios)
		}
	}
}

// judged is how many ratios have a target.
func judged(r Report) int {
	n := 0
	for _, ratio := range r.Ratios {
		if ratio.Met != nil {
			n++
		}
	}
	return n
}

func TestCacheThatSomebodyElseUsesIsAnError(t *testing.T) {
	f, ctx := newFelixd(t, testbroker.Options{}), newContext(t)
	plan := CachePlan{Options: f.Options, Namespace: "default", Cache: "c", Op: Hit, Payload: 10, Keys: 1, Callers: 1, Conns: 1}
	callers, err := OpenCache(ctx, plan)
	if err != nil {
		t.Fatal(err)
	}
	c := callers.All[0].(*cacheCaller)
	if err := c.Call(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.client.CacheDelete(ctx, "default", "c", c.keys[0]); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(ctx, 1); err == nil {
		t.Fatal("a hit that found nothing counts as one")
	}
	if err := callers.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestOneSideAloneIsMeasuredToo(t *testing.T) {
	f, ctx := newFelixd(t, testbroker.Options{}), newContext(t)
	e, err := PublishExperiment(ctx, f, nil, PublishSpec{Name: "pub", Stream: "one", Shape: Shape{Payload: 8, Batch: 8}, Streams: 1, Conns: 1, Generator: ByClient})
	if r := measured(t, e, err); len(r.Cases) != 1 || len(r.Ratios) != 0 {
		t.Fatalf("got %+v", r)
	}
}

func TestPublishesAreSpreadOverOneShardPerStream(t *testing.T) {
	f, ctx := newFelixd(t, testbroker.Options{}), newContext(t)
	keys, err := f.keys(ctx, "eight", 8)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if at := wire.RoutingModulo.Shard(key, true, 8); at != uint32(i) {
			t.Errorf("key %q is of shard %d, want %d", key, at, i)
		}
	}
	var streams *StreamsError
	if _, err := f.keys(ctx, "one", 8); !errors.As(err, &streams) || streams.Shards != 1 {
		t.Fatalf("8 streams of a stream with one shard: %v", err)
	}
	if _, err := f.keys(ctx, "none", 8); !errors.Is(err, client.ErrNotFound) {
		t.Fatalf("a stream that is not there: %v", err)
	}
	if n, err := f.Shards(ctx, "eight"); n != 8 || err != nil {
		t.Fatalf("%d shards, %v", n, err)
	}
}

func TestClientUsesAStreamForEachKey(t *testing.T) {
	seen := make(chan *testbroker.Stream, 1024)
	f := newFelixd(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, frame testbroker.Frame) bool {
		if frame.Header.Flags.Has(wire.FlagPublishBatch) {
			seen <- s
		}
		return false
	}})
	ctx := newContext(t)
	keys, err := f.keys(ctx, "eight", 8)
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenClient(ctx, ClientPlan{Options: f.Options, Namespace: "default", Stream: "eight", Shape: Shape{Payload: 8, Batch: 2}, Conns: 2, Keys: keys, InFlight: 16})
	if err != nil {
		t.Fatal(err)
	}
	streams := make(map[*testbroker.Stream]bool)
	for range 2 {
		for _, lane := range p.Lanes {
			if err := errors.Join(lane.Send(ctx, Batch{Acked: true}), lane.Settle(ctx)); err != nil {
				t.Fatal(err)
			}
			streams[<-seen] = true
		}
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if len(streams) != 8 {
		t.Fatalf("8 keys used %d streams", len(streams))
	}
}

// The raw side has to write the same bytes as the client of felixd.
func TestRawFramesAreAsLongAsThoseOfTheClient(t *testing.T) {
	lengths := make(chan int, 1)
	f := newFelixd(t, testbroker.Options{OnFrame: func(_ *testbroker.Stream, frame testbroker.Frame) bool {
		if frame.Header.Flags.Has(wire.FlagPublishBatch) {
			lengths <- wire.HeaderSize + int(frame.Header.Length)
		}
		return false
	}})
	ctx, shape := newContext(t), Shape{Payload: 100, Batch: 7}
	for _, acked := range []bool{true, false} {
		p, err := OpenClient(ctx, ClientPlan{Options: f.Options, Namespace: "default", Stream: "one", Shape: shape, Conns: 1, Keys: make([][]byte, 1), InFlight: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Lanes[0].Send(ctx, Batch{Acked: acked}); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-lengths:
			if want := len(PublishFrame(shape, acked, "t1", "default", "one", nil)); got != want {
				t.Errorf("acked %v: the client wrote a frame of %d bytes, the raw side %d", acked, got, want)
			}
		case <-ctx.Done():
			t.Fatal("no frame came")
		}
		if err := p.Close(context.WithoutCancel(ctx)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusalsOfABrokerAreRefusals(t *testing.T) {
	f := newFelixd(t, testbroker.Options{})
	ctx := newContext(t)
	config, err := f.tls()
	if err != nil {
		t.Fatal(err)
	}
	shape := Shape{Payload: 8, Batch: 1}
	for _, encoding := range []Encoding{Binary, JSON} {
		p, err := OpenWire(ctx, WirePlan{
			Addr: f.Options.Addrs[0], TLS: config, Tenant: "t1", Token: testbroker.Token, Namespace: "default", Stream: "missing", Shape: shape, Conns: 1,
			Keys: make([][]byte, 1), Encoding: encoding,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(p.Lanes[0].Send(ctx, Batch{Acked: true}), p.Lanes[0].Flush(ctx)); err != nil {
			t.Fatal(err)
		}
		if _, refused := refusal(p.Lanes[0].Settle(ctx)); !refused {
			t.Errorf("%s: a publish to a stream that is not there was not refused", encoding)
		}
		if err := p.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	_, err = OpenWire(ctx, WirePlan{Addr: f.Options.Addrs[0], TLS: config, Tenant: "t1", Token: "wrong", Shape: shape, Conns: 1, Keys: make([][]byte, 1), Encoding: Binary})
	if err == nil {
		t.Error("a wrong token was taken")
	}
}
