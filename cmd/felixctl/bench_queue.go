package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/bench"
)

// What a queue is to reach, see docs/benchmarks.md.
const (
	queueTarget = 0.25
	queueP99    = 5 * time.Millisecond
)

func (b *benchCommands) queueCommand() *cobra.Command {
	spec := bench.QueueSpec{Name: "queue", Title: "queue", Target: queueTarget, P99: queueP99}
	cmd := &cobra.Command{
		Use:   "queue STREAM",
		Short: "How fast records of a durable stream are polled and acked, beside single publishes",
		Long: `Work on a durable stream as a queue. Three things are measured in turn, round by round: how many records a second one
consumer of the Go client polls and acks, each by itself, while a publisher keeps it busy; how many single records a second
are published and acknowledged, with --in-flight of them unacknowledged, which the first is compared with; and, an open
loop, how long records at --rate take from when they were due until the answer of a poll that waits for them.

The group is one of its own, which begins with what this command publishes and is removed in the end. There is no raw peer:
what a queue costs is compared with what the same broker takes.`,
		Example: `  felixctl stream create bench-queue --durable
  felixctl bench queue bench-queue`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: b.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			spec := spec
			spec.Stream = args[0]
			if err := checkQueue(spec); err != nil {
				return err
			}
			if cmd.Flags().Changed("raw") && b.flags.raw {
				return usagef("--raw says nothing here: a queue is compared with publishes to the same broker")
			}
			b.flags.noRaw, b.flags.raw = true, false
			return b.measure(cmd, func(s *benchSession) (bench.Experiment, error) {
				return bench.QueueExperiment(cmd.Context(), s.felixd, spec)
			})
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&spec.Payload, "payload", 256, "bytes of a record, at least 16")
	flags.IntVar(&spec.Poll, "poll", 64, "records that a poll asks for; up to twice as many are in hand")
	flags.IntVar(&spec.InFlight, "in-flight", 64, "publishes without an acknowledgement")
	flags.Float64Var(&spec.Rate, "rate", 1000, "records per second where the time until they are handed out is measured")
	return cmd
}

func checkQueue(s bench.QueueSpec) error {
	switch {
	case s.Payload < 16:
		return usagef("--payload is %d; use at least 16: each record carries the time when it was sent", s.Payload)
	case s.Rate < 1 || s.Rate > benchRateMax:
		return usagef("--rate is %v; use 1 to %d", s.Rate, benchRateMax)
	}
	return firstError(inRange("payload", s.Payload, 16, benchPayloadMax/64), inRange("poll", s.Poll, 1, client.GroupPollMax), inRange("in-flight", s.InFlight, 1, benchInFlightMax))
}
