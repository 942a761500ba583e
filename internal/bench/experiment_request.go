package bench

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/internal/rawquic"
)

// LatencySpec is acknowledged publishing at a fixed rate.
type LatencySpec struct {
	Name, Title string
	Stream      string
	Payload     int
	Rate        float64 // records per second, each a publish of its own
	Streams     int
	Conns       int
}

// LatencyExperiment compares the time to an acknowledgement with a raw echo of the same bytes, both in an open loop.
func LatencyExperiment(ctx context.Context, f Felixd, raw *Raw, s LatencySpec) (Experiment, error) {
	keys, err := f.keys(ctx, s.Stream, s.Streams)
	if err != nil {
		return Experiment{}, err
	}
	shape := Shape{Payload: s.Payload, Batch: 1}
	load := PacedLoad{Shape: shape, Rate: s.Rate}
	e := Experiment{
		Name: s.Name, Title: s.Title, Loop: "open",
		Settings: append(shape.settings(), settingOf("records per second", s.Rate), settingOf("acks", "record"), settingOf("streams", s.Streams), settingOf("connections", s.Conns)),
		Cases: []Case{{Label: "felixd", Run: func(ctx context.Context, timing Timing) (Result, error) {
			return load.Run(ctx, timing, f.Meter, func(ctx context.Context) (*Publisher, error) {
				return OpenClient(ctx, ClientPlan{
					Options: f.Options, Namespace: f.Namespace, Stream: s.Stream, Shape: shape, Conns: s.Conns, Keys: keys,
					InFlight: pacedWindow * s.Streams, PerRecord: true,
				})
			})
		}}},
	}
	if raw == nil {
		return e, nil
	}
	plan := RawPlan{
		Peer: raw.Process.Peer, Shape: shape, Conns: s.Conns, Streams: s.Streams, Role: rawquic.Echo,
		Frame: PublishFrame(shape, true, f.Options.TenantID, f.Namespace, s.Stream, keys[0]),
	}
	e.Cases = append(e.Cases, Case{Label: "raw echo", Run: func(ctx context.Context, timing Timing) (Result, error) {
		return load.Run(ctx, timing, raw.meter(), func(ctx context.Context) (*Publisher, error) { return OpenRaw(ctx, plan) })
	}})
	e.Comparisons = []Comparison{{Label: s.Title + ", p50", Figure: P50, Of: 0, By: 1}, {Label: s.Title + ", p99", Figure: P99, Of: 0, By: 1}}
	return e, nil
}

// CacheSpec is requests to a cache, each caller one at a time.
type CacheSpec struct {
	Name, Title string
	Cache       string
	Ops         []CacheOp
	Payload     int
	Keys        int
	Concurrency int
	Conns       int
	Target      float64 // of the p50 of each op / raw echo, at most
	TargetOp    CacheOp // which op the target is for; empty: all
}

// CacheExperiment compares cache requests with a raw echo of the payload at the same concurrency.
func CacheExperiment(f Felixd, raw *Raw, s CacheSpec) Experiment {
	e := Experiment{
		Name: s.Name, Title: s.Title, Loop: "closed",
		Settings: []Setting{settingOf("payload", fmt.Sprintf("%d B", s.Payload)), settingOf("concurrency", s.Concurrency), settingOf("streams", s.Concurrency),
			settingOf("connections", s.Conns), settingOf("keys", s.Keys)},
	}
	load := CallLoad{Payload: s.Payload}
	for _, op := range s.Ops {
		plan := CachePlan{
			Options: f.Options, Namespace: f.Namespace, Cache: s.Cache, Op: op, Payload: s.Payload, Keys: s.Keys, Callers: s.Concurrency, Conns: s.Conns,
		}
		e.Cases = append(e.Cases, Case{Label: "felixd " + string(op), Run: func(ctx context.Context, timing Timing) (Result, error) {
			return load.Run(ctx, timing, f.Meter, func(ctx context.Context) (*Callers, error) { return OpenCache(ctx, plan) })
		}})
	}
	if raw == nil {
		return e
	}
	echo := EchoPlan{Peer: raw.Process.Peer, Payload: s.Payload, Callers: s.Concurrency, Conns: s.Conns}
	for i, op := range s.Ops {
		c := Comparison{Label: fmt.Sprintf("%s, %s p50", s.Title, op), Figure: P50, Of: i, By: len(s.Ops), AtMost: true}
		if s.TargetOp == "" || s.TargetOp == op {
			c.Target = s.Target
		}
		e.Comparisons = append(e.Comparisons, c)
		e.Comparisons = append(e.Comparisons, costs(s.Title+", "+string(op), i, len(s.Ops))...)
	}
	e.Cases = append(e.Cases, Case{Label: "raw echo", Run: func(ctx context.Context, timing Timing) (Result, error) {
		return load.Run(ctx, timing, raw.meter(), func(ctx context.Context) (*Callers, error) { return OpenEcho(ctx, echo) })
	}})
	return e
}
