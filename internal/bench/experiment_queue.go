package bench

import (
	"context"
	"time"
)

// QueueSpec is work on a durable stream as a queue.
type QueueSpec struct {
	Name, Title string
	Stream      string
	Payload     int
	Poll        int           // records that a poll asks for
	InFlight    int           // single records without an acknowledgement, of what the rate is compared with
	Rate        float64       // records per second, of the case that measures how soon they are handed out
	Target      float64       // of the rate at which records are polled and acked / that at which they are published one by one
	P99         time.Duration // until a record is handed out, at most
}

const (
	// queueBatch is how many records the publisher sends at once where polling is measured: few enough requests not to be what limits it.
	queueBatch = 64
	// queueAhead is how many of these batches it may be ahead: several polls, and little enough to be worked off soon after the stretch.
	queueAhead = 32
)

// QueueExperiment compares the rate at which one consumer polls records and acks each with the rate at which single records are
// published, acknowledged each; and measures how long a record takes from its publisher to the answer of a poll that waits for it.
func QueueExperiment(ctx context.Context, f Felixd, s QueueSpec) (Experiment, error) {
	published, err := f.publishing(ctx, PublishSpec{
		Stream: s.Stream, Shape: Shape{Payload: s.Payload, Batch: 1}, Acked: true, PerRecord: true, InFlight: s.InFlight, Streams: 1, Conns: 1,
		Generator: ByClient, Encoding: Binary,
	})
	if err != nil {
		return Experiment{}, err
	}
	published.Label = "publish"
	worked := f.queue("poll and ack", s, FlowSpec{Stream: s.Stream, Shape: Shape{Payload: s.Payload, Batch: queueBatch}, Acked: true, InFlight: s.InFlight, Ahead: queueAhead})
	handed := f.queue("hand out", s, FlowSpec{Stream: s.Stream, Shape: Shape{Payload: s.Payload, Batch: 1}, Acked: true, InFlight: s.InFlight, Rate: s.Rate, Stamps: true})
	return Experiment{
		Name: s.Name, Title: s.Title, Loop: "closed; open where records are handed out at a rate",
		Settings: append(Shape{Payload: s.Payload, Batch: 1}.settings(), settingOf("poll", s.Poll), settingOf("acks", "record"), settingOf("publishes in flight", s.InFlight),
			settingOf("records per second handed out", s.Rate)),
		Cases: []Case{worked, published, handed},
		Comparisons: []Comparison{
			{Label: s.Title + ", rate", Figure: Rate, Of: 0, By: 1, Target: s.Target},
			{Label: s.Title + ", publish to poll answer, p50", Figure: P50, Of: 2, By: 2, With: within(s.P99)},
			{Label: s.Title + ", publish to poll answer, p99", Figure: P99, Of: 2, By: 2, With: within(s.P99), Target: 1, AtMost: true},
		},
	}, nil
}

// within divides by a time instead of a case.
func within(d time.Duration) *Joint {
	return &Joint{Label: d.String(), Make: func(float64, float64) float64 { return micros(int64(d)) }}
}

// queue is one consumer of a group, and a publisher on a connection of its own.
func (f Felixd) queue(label string, s QueueSpec, flow FlowSpec) Case {
	sides := FlowSides{
		Subscribe: func(ctx context.Context) ([]Subscriber, error) {
			return openEach(ctx, 1, func() (Subscriber, error) {
				return SubscribeQueue(ctx, QueuePlan{Options: f.Options, Namespace: f.Namespace, Stream: s.Stream, Poll: s.Poll})
			})
		},
		Publish: func(ctx context.Context) (*Publisher, error) {
			return OpenClient(ctx, ClientPlan{
				Options: f.Options, Namespace: f.Namespace, Stream: s.Stream, Shape: flow.Shape, Conns: 1, Keys: make([][]byte, 1), InFlight: s.InFlight, PerRecord: flow.Batch == 1,
			})
		},
	}
	return Case{Label: label, Run: func(ctx context.Context, timing Timing) (Result, error) {
		return flow.load().Run(ctx, timing, f.Meter, sides)
	}}
}
