package main

import (
	"github.com/spf13/cobra"

	"github.com/felixd/felixd/internal/bench"
)

// flowHelp is what the commands that pass records on have in common.
const flowHelp = `
The publisher is never further ahead of the slowest subscriber than 4 MiB and 256 batches, so that the broker has no
reason to drop anything; what gets lost all the same is counted. A raw relay passes the same bytes from the same
publisher to as many subscribers. The publisher and each subscriber have a connection of their own.`

func (b *benchCommands) subCommand() *cobra.Command {
	var f shapeFlags
	cmd := &cobra.Command{
		Use:     "sub STREAM",
		Example: `  felixctl bench sub ticks`,
		Short:   "How fast a broker delivers to one subscriber, beside a raw relay",
		Long: `Publish as fast as one subscriber receives, and count what it has received. A closed loop.
` + flowHelp,
		Args: cobra.ExactArgs(1), ValidArgsFunction: b.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			spec := bench.FlowSpec{Name: "sub", Title: "delivery to one subscriber, against a raw relay", Stream: args[0], Subscribers: 1}
			return b.measureFlow(cmd, f, spec)
		}),
	}
	f.register(cmd.Flags(), "none")
	fixedValues(cmd, "ack", "none", "batch", "record")
	return cmd
}

func (b *benchCommands) fanoutCommand() *cobra.Command {
	var f shapeFlags
	var subscribers int
	cmd := &cobra.Command{
		Use:     "fanout STREAM",
		Example: `  felixctl bench fanout ticks`,
		Short:   "How fast a broker delivers to several subscribers, beside a raw relay",
		Long: `Publish as fast as the slowest of --fanout subscribers receives, and count what all have received together. A
closed loop.
` + flowHelp,
		Args: cobra.ExactArgs(1), ValidArgsFunction: b.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if err := inRange("fanout", subscribers, 1, benchFanoutMax); err != nil {
				return err
			}
			spec := bench.FlowSpec{Name: "fanout", Title: "delivery to several subscribers, against a raw relay", Stream: args[0], Subscribers: subscribers}
			return b.measureFlow(cmd, f, spec)
		}),
	}
	f.register(cmd.Flags(), "none")
	cmd.Flags().IntVar(&subscribers, "fanout", 10, "subscribers")
	fixedValues(cmd, "ack", "none", "batch", "record")
	return cmd
}

func (b *benchCommands) relayCommand() *cobra.Command {
	var f shapeFlags
	var rate float64
	cmd := &cobra.Command{
		Use:   "relay STREAM",
		Short: "How long records take from publisher to subscriber, beside a raw relay",
		Long: `Publish to one subscriber and measure each batch from when it was sent until its first record was received: as fast as
acknowledgements and the subscriber allow, a closed loop; or with --rate, an open loop, from when it was due.
` + flowHelp,
		Example: `  felixctl bench relay bench
  felixctl bench relay bench --batch 1 --ack record --rate 5000`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: b.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if f.payload < 16 {
				return usagef("--payload is %d; use at least 16: each batch carries the time when it was sent", f.payload)
			}
			if rate < 0 || rate > benchRateMax {
				return usagef("--rate is %v; use a positive number up to %d, or 0 for a closed loop", rate, benchRateMax)
			}
			spec := bench.FlowSpec{Name: "relay", Title: "from publisher to subscriber, against a raw relay", Stream: args[0], Subscribers: 1, Rate: rate, Stamps: true}
			return b.measureFlow(cmd, f, spec)
		}),
	}
	f.register(cmd.Flags(), "batch")
	cmd.Flags().Float64Var(&rate, "rate", 0, "batches per second, an open loop; 0 for a closed one")
	fixedValues(cmd, "ack", "none", "batch", "record")
	return cmd
}

// measureFlow measures with one publisher on one stream.
func (b *benchCommands) measureFlow(cmd *cobra.Command, f shapeFlags, spec bench.FlowSpec) error {
	if err := f.check(1); err != nil {
		return err
	}
	spec.Shape, spec.Acked, spec.InFlight = f.shape(), f.ack != "none", f.inFlight
	return b.measure(cmd, func(s *benchSession) (bench.Experiment, error) {
		return bench.FlowExperiment(s.felixd, s.raw, spec), nil
	})
}
