package bench

import (
	"context"
	"fmt"
	"time"
)

// storedHead is what a record of a publish takes in a log beside its payload: the header of its batch and its own length. The bare writer
// writes as many bytes as the broker does.
const storedHead = 72 + 4

// DurableSpec is producers of single records to a durable stream, each one at a time, acknowledged when they are on the device.
type DurableSpec struct {
	Name, Title string
	Stream      string
	Payload     int
	Producers   int
	Conns       int
	Target      float64 // of p50 / (bare write and sync + echoTimes x raw echo), at most; 0: none. Of both ways to measure the latter
}

// echoTimes is how many times the way to the broker and back a durable publish may take on top of the disk: the session and the shard
// decode, route and answer.
const echoTimes = 1.3

// DurableExperiment compares the time to an acknowledgement with what nobody can do without: a plain write and sync of as many bytes on the
// same disk, and a raw echo of as many on the same network, by as many callers. A lone producer is also compared with both in turn. A nil raw
// leaves out the echo and so the comparisons.
func DurableExperiment(f Felixd, raw *Raw, disk Disk, s DurableSpec) Experiment {
	plan := ProducerPlan{Options: f.Options, Namespace: f.Namespace, Stream: s.Stream, Payload: s.Payload, Callers: s.Producers, Conns: s.Conns}
	load, bare := CallLoad{Payload: s.Payload}, BarePlan{Folder: string(disk), Bytes: storedHead + s.Payload}
	e := Experiment{
		Name: s.Name, Title: s.Title, Loop: "closed",
		Settings: []Setting{settingOf("payload", fmt.Sprintf("%d B", s.Payload)), settingOf("producers", s.Producers), settingOf("connections", s.Conns), settingOf("acks", "record")},
		Cases: []Case{
			{Label: "felixd", Run: func(ctx context.Context, timing Timing) (Result, error) {
				r, err := load.Run(ctx, timing, f.Meter, func(ctx context.Context) (*Callers, error) { return OpenProducers(ctx, plan) })
				if err == nil && f.Meter != nil && r.RecordsPerSync == nil {
					r.Notes = append(r.Notes, "the broker synced nothing: the stream is not durable, or is not synced before it is acknowledged")
				}
				return r, err
			}},
			bareCase(bare, load, "bare write and sync"),
		},
	}
	if raw == nil {
		return e
	}
	echo := EchoPlan{Peer: raw.Process.Peer, Payload: s.Payload, Callers: s.Producers, Conns: s.Conns}
	e.Cases = append(e.Cases, Case{Label: "raw echo", Run: func(ctx context.Context, timing Timing) (Result, error) {
		return load.Run(ctx, timing, raw.meter(), func(ctx context.Context) (*Callers, error) { return OpenEcho(ctx, echo) })
	}})
	e.Comparisons = []Comparison{{Label: s.Title + ", p50", Figure: P50, Of: 0, By: 1, Target: s.Target, AtMost: true, With: &Joint{
		Case: 2, Label: fmt.Sprintf("(bare write and sync + %.1f x raw echo)", echoTimes), Make: func(by, with float64) float64 { return by + echoTimes*with },
	}}}
	if s.Producers == 1 {
		e.Cases = append(e.Cases, Case{Label: "raw echo, then bare write and sync", Run: func(ctx context.Context, timing Timing) (Result, error) {
			return load.Run(ctx, timing, raw.meter(), func(ctx context.Context) (*Callers, error) { return OpenEchoThenBare(ctx, echo, bare) })
		}})
		e.Comparisons = append(e.Comparisons, Comparison{Label: s.Title + ", p50, disk and echo in turn", Figure: P50, Of: 0, By: 3, Target: s.Target, AtMost: true, With: &Joint{
			Case: 2, Label: fmt.Sprintf("(raw echo, then bare write and sync + %.1f x raw echo)", echoTimes-1), Make: func(by, with float64) float64 { return by + (echoTimes-1)*with },
		}})
	}
	return e
}

// bareCase is a writer of its own on the broker's disk.
func bareCase(plan BarePlan, load CallLoad, label string) Case {
	return Case{Label: label, Run: func(ctx context.Context, timing Timing) (Result, error) {
		return load.Run(ctx, timing, nil, func(ctx context.Context) (*Callers, error) { return OpenBare(ctx, plan) })
	}}
}

// DurableRateSpec is acknowledged publishing of batches to a durable stream beside one in memory.
type DurableRateSpec struct {
	PublishSpec                 // of the durable stream; Target is of durable / the lesser of the others
	InMemory      string        // the stream in memory, with as many shards
	FsyncInterval time.Duration // how often the broker syncs
}

// DurableRateExperiment compares the rate of a durable stream that is synced every while with the lesser of two bounds: that of the same
// publishes to a stream in memory, and that of a plain writer of the same bytes which syncs as often.
func DurableRateExperiment(ctx context.Context, f Felixd, disk Disk, s DurableRateSpec) (Experiment, error) {
	e := Experiment{Name: s.Name, Title: s.Title, Loop: "closed", Settings: s.settings(), InFlight: s.bytesInFlight()}
	for _, side := range []struct{ label, stream string }{{"durable", s.Stream}, {"in memory", s.InMemory}} {
		spec := s.PublishSpec
		spec.Stream = side.stream
		c, err := f.publishing(ctx, spec)
		if err != nil {
			return Experiment{}, err
		}
		c.Label = side.label
		if side.stream == s.InMemory {
			c.Run = syncless(c.Run)
		}
		e.Cases = append(e.Cases, c)
	}
	plan := BarePlan{Folder: string(disk), Bytes: s.Batch * (4 + s.Payload), Every: s.FsyncInterval}
	e.Cases = append(e.Cases, bareCase(plan, CallLoad{Payload: s.Payload, Records: s.Batch}, "bare writer"))
	e.Comparisons = []Comparison{{Label: s.Title, Figure: Rate, Of: 0, By: 1, Target: s.Target, With: &Joint{Case: 2, Label: "the lesser of in memory and bare writer", Make: func(by, with float64) float64 { return min(by, with) }}}}
	return e, nil
}

// syncless leaves out the syncs of a case that causes none: they are what a case before it has left to do.
func syncless(run func(context.Context, Timing) (Result, error)) func(context.Context, Timing) (Result, error) {
	return func(ctx context.Context, timing Timing) (Result, error) {
		r, err := run(ctx, timing)
		r.RecordsPerSync = nil
		return r, err
	}
}
