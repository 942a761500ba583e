package bench

import (
	"context"

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
