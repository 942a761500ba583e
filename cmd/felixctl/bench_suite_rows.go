package main

import (
	"context"
	"fmt"
	"time"

	"github.com/felixd/felixd/internal/bench"
)

const (
	// suiteName is the stream and the cache that the suite uses, and suiteShards how many shards the stream has: as many as streams of
	// a connection are used at once.
	suiteName   = "bench"
	suiteShards = 32
	// suiteNarrow and suiteWide are durable streams of one and of suiteWideShards shards, which only a felixd of its own has.
	suiteNarrow, suiteWide = "bench-durable", "bench-durable-wide"
	suiteWideShards        = 8
	// suiteLogged is a cache in a log, which only a felixd of its own has; the cache suiteName is in memory there.
	suiteLogged = "bench-logged"
	// suitePeriodic is how often a felixd that syncs every while does so.
	suitePeriodic = 250 * time.Millisecond
)

// suiteRow is one experiment of the suite.
type suiteRow struct {
	name  string
	build func(ctx context.Context, s *benchSession) (bench.Experiment, error)
	fsync string // of a row that needs a felixd of its own: how it syncs; "" for the others
	redis bool   // a redis-server stands beside it, where there is one
}

// The modes of rows that need a felixd of its own.
const (
	fsyncOnCommit = "on_commit" // as felixd does by default, so that these rows share a felixd with those that need none
	fsyncPeriodic = "periodic"
)

// suiteRows are all rows, in the order of docs/benchmarks.md, which says what is expected of each and why.
func suiteRows() []suiteRow {
	rows := []suiteRow{
		{name: "sink", build: func(_ context.Context, s *benchSession) (bench.Experiment, error) {
			return bench.SinkExperiment(s.felixd, s.raw, "sink", "raw sink, one stream"), nil
		}},
		publishRow("publish", "fire-and-forget, 256 B x 64, one stream", bench.PublishSpec{Shape: batchesOf(256), Streams: 1, Target: 0.6}),
		publishRow("acked", "acknowledged, 256 B x 64, 64 batches in flight on 8 streams", bench.PublishSpec{
			Shape: batchesOf(256), Acked: true, InFlight: 64, Streams: 8, Target: 0.5,
		}),
		flowRow("delivery", "delivery to one subscriber, 256 B x 64", 1),
		flowRow("fanout", "fan-out to 10 subscribers, 256 B x 64", 10),
		{name: "relay", build: func(_ context.Context, s *benchSession) (bench.Experiment, error) {
			return bench.FlowExperiment(s.felixd, s.raw, bench.FlowSpec{
				Name: "relay", Title: "publisher to subscriber, single 256 B records at 5000 a second", Stream: suiteName,
				Shape: bench.Shape{Payload: 256, Batch: 1}, Subscribers: 1, Acked: true, InFlight: 64, Rate: 5000, Stamps: true,
			}), nil
		}},
		{name: "latency", build: func(ctx context.Context, s *benchSession) (bench.Experiment, error) {
			return bench.LatencyExperiment(ctx, s.felixd, s.raw, bench.LatencySpec{
				Name: "latency", Title: "acknowledgement of single 256 B records at 5000 a second", Stream: suiteName, Payload: 256, Rate: 5000, Streams: suiteShards, Conns: 1,
			})
		}},
	}
	for _, payload := range []int{256, 4096} {
		rows = append(rows, encodingRow(payload)) // mission 187
	}
	for _, payload := range []int{0, 256, 4096} {
		rows = append(rows, cacheRow(payload)) // mission 241, mission 242, mission 243
	}
	return append(rows, // mission 281
		durableRow("durable-lone", "a durable record, one producer, 256 B", 1, 1),
		durableRow("durable-64", "durable records, 64 producers, 256 B", 64, 0),
		durablePeriodicRow(),
		queueRow(),
	)
}

func queueRow() suiteRow {
	const name = "queue"
	return suiteRow{name: name, fsync: fsyncOnCommit, build: func(ctx context.Context, s *benchSession) (bench.Experiment, error) {
		return bench.QueueExperiment(ctx, s.felixd, bench.QueueSpec{
			Name: name, Title: "queue, 256 B, poll 64", Stream: suiteNarrow, Payload: 256, Poll: 64, InFlight: 64, Rate: 1000, Target: queueTarget, P99: queueP99,
		})
	}}
}

func durableRow(name, title string, producers int, target float64) suiteRow {
	return suiteRow{name: name, fsync: fsyncOnCommit, build: func(_ context.Context, s *benchSession) (bench.Experiment, error) {
		return bench.DurableExperiment(s.felixd, s.raw, s.disk, bench.DurableSpec{
			Name: name, Title: title, Stream: suiteNarrow, Payload: 256, Producers: producers, Conns: 1, Target: target,
		}), nil
	}}
}

func durablePeriodicRow() suiteRow {
	const name = "durable-periodic"
	return suiteRow{name: name, fsync: fsyncPeriodic, build: func(ctx context.Context, s *benchSession) (bench.Experiment, error) {
		return bench.DurableRateExperiment(ctx, s.felixd, s.disk, bench.DurableRateSpec{
			PublishSpec: bench.PublishSpec{
				Name: name, Title: "durable, synced every 250 ms, 4 KiB x 64", Stream: suiteWide, Shape: batchesOf(4096), Acked: true, InFlight: 64,
				Streams: suiteWideShards, Conns: 1, Generator: bench.ByClient, Encoding: bench.Binary, Target: 0.8,
			},
			InMemory: suiteName, FsyncInterval: suitePeriodic,
		})
	}}
}

func batchesOf(payload int) bench.Shape { return bench.Shape{Payload: payload, Batch: 64} }

func publishRow(name, title string, spec bench.PublishSpec) suiteRow {
	return suiteRow{name: name, build: func(ctx context.Context, s *benchSession) (bench.Experiment, error) {
		spec := spec
		spec.Name, spec.Title, spec.Stream, spec.Conns = name, title, suiteName, 1
		spec.Generator, spec.Encoding = bench.ByClient, bench.Binary
		return bench.PublishExperiment(ctx, s.felixd, s.raw, spec)
	}}
}

func flowRow(name, title string, subscribers int) suiteRow {
	return suiteRow{name: name, build: func(_ context.Context, s *benchSession) (bench.Experiment, error) {
		return bench.FlowExperiment(s.felixd, s.raw, bench.FlowSpec{
			Name: name, Title: title, Stream: suiteName, Shape: batchesOf(256), Subscribers: subscribers, Target: 0.75,
		}), nil
	}}
}

func encodingRow(payload int) suiteRow {
	name := fmt.Sprintf("encoding-%d", payload)
	return suiteRow{name: name, build: func(ctx context.Context, s *benchSession) (bench.Experiment, error) {
		return bench.EncodingExperiment(ctx, s.felixd, bench.PublishSpec{
			Name: name, Title: fmt.Sprintf("binary against JSON, acknowledged, %d B x 64", payload), Stream: suiteName,
			Shape: batchesOf(payload), Acked: true, InFlight: 64, Streams: 8, Conns: 1, Target: 1.3,
		})
	}}
}

// cacheRow measures a cache in memory and, on a felixd of the suite, one in a log beside it.
func cacheRow(payload int) suiteRow {
	name := fmt.Sprintf("cache-%d", payload)
	return suiteRow{name: name, redis: true, build: func(_ context.Context, s *benchSession) (bench.Experiment, error) {
		spec := bench.CacheSpec{
			Name: name, Title: fmt.Sprintf("cache, %d B values, 32 callers", payload), Payload: payload,
			Ops: []bench.CacheOp{bench.Put, bench.Hit, bench.Miss}, Keys: 1024, Concurrency: 32, Conns: 1, Redis: s.redis,
		}
		var memory, logged []bench.CacheGoal
		if payload == 256 {
			memory = []bench.CacheGoal{{Op: bench.Put, AtMost: 1.8}, {Op: bench.Hit, AtMost: 1.6}}
			logged = memory[1:]
		}
		spec.Sides = []bench.CacheSide{{Cache: suiteName, Targets: memory}}
		if s.disk != "" {
			spec.Sides[0].Label = inMemory
			spec.Sides = append(spec.Sides, bench.CacheSide{Label: logBacked, Cache: suiteLogged, Durable: true, Targets: logged})
		}
		return bench.CacheExperiment(s.felixd, s.raw, spec), nil
	}}
}
