package bench

import (
	"context"
	"errors"

	"github.com/felixd/felixd/internal/rawquic"
)

// FlowSpec is what to pass from a publisher to subscribers.
type FlowSpec struct {
	Name, Title string
	Stream      string
	Shape
	Subscribers int
	Acked       bool
	InFlight    int     // with Acked
	Rate        float64 // batches per second; 0: as fast as it goes
	Stamps      bool    // measure the time from publisher to subscriber; the raw side then reads its stamps too
	Ahead       int     // batches that the publisher may be ahead of the slowest subscriber; 0: AheadBatches
	Target      float64 // of felixd / raw
}

func (s FlowSpec) load() FlowLoad {
	return FlowLoad{Shape: s.Shape, Acked: s.Acked, InFlight: s.InFlight, Rate: s.Rate, Stamps: s.Stamps, Ahead: s.Ahead}
}

func (s FlowSpec) settings() []Setting {
	out := append(s.Shape.settings(), settingOf("subscribers", s.Subscribers), settingOf("records ahead", s.load().ahead()))
	if s.Acked {
		out = append(out, settingOf("acks", "batch"), settingOf("in flight", s.InFlight))
	} else {
		out = append(out, settingOf("acks", "none"))
	}
	if s.Rate > 0 {
		out = append(out, settingOf("batches per second", s.Rate))
	}
	return out
}

// FlowExperiment compares delivery with a raw relay: one publisher, and subscribers on connections of their own.
func FlowExperiment(f Felixd, raw *Raw, s FlowSpec) Experiment {
	e := Experiment{Name: s.Name, Title: s.Title, Loop: "closed", Settings: s.settings(), Cases: []Case{f.flow(s)}}
	figures := []Figure{Rate}
	switch {
	case s.Rate > 0:
		e.Loop, figures = "open", []Figure{P50, P99}
	case s.Stamps:
		figures = append(figures, P50, P99)
	}
	if s.Rate == 0 {
		e.InFlight = float64(s.load().ahead()) * float64(s.Payload*s.Subscribers)
	}
	if raw == nil {
		return e
	}
	e.Cases = append(e.Cases, raw.relay(f, s))
	for _, figure := range figures {
		c := Comparison{Label: s.Title + ", " + string(figure), Figure: figure, Of: 0, By: 1}
		if figure == Rate {
			c.Target = s.Target
		}
		e.Comparisons = append(e.Comparisons, c)
	}
	e.Comparisons = append(e.Comparisons, costs(s.Title, 0, 1)...)
	return e
}

func (f Felixd) flow(s FlowSpec) Case {
	sides := FlowSides{
		Subscribe: func(ctx context.Context) ([]Subscriber, error) {
			return openEach(ctx, s.Subscribers, func() (Subscriber, error) { return Subscribe(ctx, f.Options, f.Namespace, s.Stream) })
		},
		Publish: func(ctx context.Context) (*Publisher, error) {
			return OpenClient(ctx, ClientPlan{
				Options: f.Options, Namespace: f.Namespace, Stream: s.Stream, Shape: s.Shape, Conns: 1, Keys: make([][]byte, 1), InFlight: max(1, s.InFlight),
			})
		},
	}
	return Case{Label: "felixd", Run: func(ctx context.Context, timing Timing) (Result, error) {
		return s.load().Run(ctx, timing, f.Meter, sides)
	}}
}

func (r *Raw) relay(f Felixd, s FlowSpec) Case {
	return Case{Label: "raw relay", Run: func(ctx context.Context, timing Timing) (Result, error) {
		plan := RawPlan{
			Peer: r.Process.Peer, Shape: s.Shape, Conns: 1, Streams: 1, Role: rawquic.Relay, Group: r.groups.Add(1),
			Frame: PublishFrame(s.Shape, s.Acked, f.Options.TenantID, f.Namespace, s.Stream, nil),
		}
		if s.Acked {
			plan.Unit = 1
		}
		return s.load().Run(ctx, timing, r.meter(), FlowSides{
			Subscribe: func(ctx context.Context) ([]Subscriber, error) {
				return openEach(ctx, s.Subscribers, func() (Subscriber, error) { return SubscribeRaw(ctx, plan, s.Stamps) })
			},
			Publish: func(ctx context.Context) (*Publisher, error) { return OpenRaw(ctx, plan) },
		})
	}}
}

// openEach opens n subscribers, or none.
func openEach(ctx context.Context, n int, open func() (Subscriber, error)) ([]Subscriber, error) {
	var all []Subscriber
	for range n {
		s, err := open()
		if err != nil {
			return nil, errors.Join(err, closeAll(ctx, all))
		}
		all = append(all, s)
	}
	return all, nil
}
