package bench

import (
	"context"

	"github.com/felixd/felixd/internal/rawquic"
)

// Generator says who writes the publishes of felixd's side.
type Generator string

// Generators: our Go client, as a program would use it, or frames written by the load itself.
const (
	ByClient Generator = "client"
	ByWire   Generator = "wire"
)

// PublishSpec is what to publish, and how.
type PublishSpec struct {
	Name, Title string
	Stream      string
	Shape
	Acked     bool
	PerRecord bool // acknowledgements per record; for batches of one
	InFlight  int
	Streams   int
	Conns     int
	Generator Generator
	Encoding  Encoding
	Target    float64 // of felixd / raw; 0: none
}

func (s PublishSpec) settings() []Setting {
	out := append(s.Shape.settings(), settingOf("acks", s.ackText()))
	if s.Acked {
		out = append(out, settingOf("in flight", s.InFlight))
	}
	return append(out, settingOf("streams", s.Streams), settingOf("connections", s.Conns), settingOf("generator", s.Generator))
}

// bytesInFlight is how much of the load fits under way.
func (s PublishSpec) bytesInFlight() float64 {
	most := inFlight(s.Conns, s.Streams)
	if s.Acked {
		return min(most, float64(s.InFlight*s.Bytes()))
	}
	return most
}

func (s PublishSpec) ackText() string {
	switch {
	case s.PerRecord:
		return "record"
	case s.Acked:
		return "batch"
	}
	return "none"
}

// PublishExperiment compares publishing with a raw sink.
func PublishExperiment(ctx context.Context, f Felixd, raw *Raw, s PublishSpec) (Experiment, error) {
	side, err := f.publishing(ctx, s)
	if err != nil {
		return Experiment{}, err
	}
	e := Experiment{
		Name: s.Name, Title: s.Title, Loop: "closed", Settings: append(s.settings(), settingOf("encoding", s.Encoding)),
		Cases: []Case{side}, InFlight: s.bytesInFlight(),
	}
	if raw != nil {
		e.Cases = append(e.Cases, raw.sink(f, s))
		e.Comparisons = append([]Comparison{{Label: s.Title, Figure: Rate, Of: 0, By: 1, Target: s.Target}}, costs(s.Title, 0, 1)...)
	}
	return e, nil
}

// EncodingExperiment compares binary publishes with JSON ones, both by the same generator.
func EncodingExperiment(ctx context.Context, f Felixd, s PublishSpec) (Experiment, error) {
	s.Generator = ByWire
	e := Experiment{Name: s.Name, Title: s.Title, Loop: "closed", Settings: s.settings(), InFlight: s.bytesInFlight()}
	for _, encoding := range []Encoding{Binary, JSON} {
		s.Encoding = encoding
		side, err := f.publishing(ctx, s)
		if err != nil {
			return Experiment{}, err
		}
		side.Label = string(encoding)
		e.Cases = append(e.Cases, side)
	}
	e.Comparisons = append([]Comparison{{Label: s.Title, Figure: Rate, Of: 0, By: 1, Target: s.Target}}, costs(s.Title, 0, 1)...)
	return e, nil
}

// SinkExperiment measures a raw sink alone: what the transport gives to large writes of one stream.
func SinkExperiment(f Felixd, raw *Raw, name, title string) Experiment {
	s := PublishSpec{Shape: Shape{Payload: writeBytes, Batch: 1}, Streams: 1, Conns: 1}
	settings := []Setting{settingOf("write", "64 KiB"), settingOf("streams", 1), settingOf("connections", 1)}
	return Experiment{Name: name, Title: title, Loop: "closed", Settings: settings, Cases: []Case{raw.sink(f, s)}, InFlight: inFlight(1, 1)}
}

func (l PublishSpec) load() PublishLoad {
	return PublishLoad{Shape: l.Shape, Acked: l.Acked, InFlight: l.InFlight}
}

// publishing is felixd's side.
func (f Felixd) publishing(ctx context.Context, s PublishSpec) (Case, error) {
	keys, err := f.keys(ctx, s.Stream, s.Streams)
	if err != nil {
		return Case{}, err
	}
	open := func(ctx context.Context) (*Publisher, error) {
		return OpenClient(ctx, ClientPlan{
			Options: f.Options, Namespace: f.Namespace, Stream: s.Stream, Shape: s.Shape, Conns: s.Conns, Keys: keys,
			InFlight: max(1, s.InFlight), PerRecord: s.PerRecord,
		})
	}
	if s.Generator == ByWire {
		config, err := f.tls()
		if err != nil {
			return Case{}, err
		}
		open = func(ctx context.Context) (*Publisher, error) {
			return OpenWire(ctx, WirePlan{
				Addr: f.Options.Addrs[0], TLS: config, Tenant: f.Options.TenantID, Token: f.Options.Token, Namespace: f.Namespace,
				Stream: s.Stream, Shape: s.Shape, Conns: s.Conns, Keys: keys, Encoding: s.Encoding,
			})
		}
	}
	return Case{Label: "felixd", Run: func(ctx context.Context, timing Timing) (Result, error) {
		return s.load().Run(ctx, timing, f.Meter, open)
	}}, nil
}

// sink is the raw side: the same bytes in the same writes, on as many streams and connections.
func (r *Raw) sink(f Felixd, s PublishSpec) Case {
	plan := RawPlan{
		Peer: r.Process.Peer, Shape: s.Shape, Conns: s.Conns, Streams: s.Streams, Unit: s.load().Unit(), Role: rawquic.Sink,
		Frame: PublishFrame(s.Shape, s.Acked, f.Options.TenantID, f.Namespace, s.Stream, nil),
	}
	return Case{Label: "raw sink", Run: func(ctx context.Context, timing Timing) (Result, error) {
		return s.load().Run(ctx, timing, r.meter(), func(ctx context.Context) (*Publisher, error) { return OpenRaw(ctx, plan) })
	}}
}
