package main

import (
	"github.com/spf13/cobra"

	"github.com/felixd/felixd/internal/bench"
)

// latencyStreams is how many streams latency spreads over at most when it may choose: what a raw echo is measured with elsewhere.
const latencyStreams = 32

func (b *benchCommands) latencyCommand() *cobra.Command {
	spec := bench.LatencySpec{Name: "latency", Title: "acknowledgement at a fixed rate, against a raw echo"}
	var d durableFlags
	cmd := &cobra.Command{
		Use:     "latency STREAM",
		Example: `  felixctl bench latency ticks`,
		Short:   "How long acknowledgements take at a fixed rate, beside a raw echo",
		Long: `Publish single records at a fixed rate and measure each from when it was due until its acknowledgement. An open loop:
a broker that stalls cannot hide it, since what becomes due meanwhile counts too. How late this program itself was
is reported beside (generator_late in JSON). Records of one shard travel on one stream of the connection, so
--streams needs a stream with as many shards.

With --durable one producer publishes to a durable stream, again when its record is stored: a closed loop, beside a plain
write and fdatasync of as many bytes, and a raw echo.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: b.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if err := firstError(checkLatency(spec), d.check(cmd.Flags(), "rate", "streams")); err != nil {
				return err
			}
			if d.durable {
				return b.measureDurable(cmd, d, bench.DurableSpec{
					Name: "latency", Title: "a durable record", Stream: args[0], Payload: spec.Payload, Producers: 1, Conns: 1, Target: 1,
				})
			}
			return b.measure(cmd, func(s *benchSession) (bench.Experiment, error) {
				spec := spec
				spec.Stream = args[0]
				if spec.Streams == 0 {
					shards, err := s.felixd.Shards(cmd.Context(), spec.Stream)
					if err != nil {
						return bench.Experiment{}, err
					}
					spec.Streams = min(latencyStreams, shards)
					spec.Conns = min(spec.Conns, spec.Streams)
				}
				return bench.LatencyExperiment(cmd.Context(), s.felixd, s.raw, spec)
			})
		}),
	}
	flags := cmd.Flags()
	flags.IntVar(&spec.Payload, "payload", 256, "bytes of a record")
	flags.Float64Var(&spec.Rate, "rate", 5000, "records per second")
	flags.IntVar(&spec.Streams, "streams", 0, "streams of the connections to spread over; 0: as many as the stream has shards, at most 32")
	flags.IntVar(&spec.Conns, "connections", 1, "connections to spread the streams over")
	d.register(flags, "measure one producer of single records to a durable stream, beside the disk")
	return cmd
}

func checkLatency(s bench.LatencySpec) error {
	if s.Rate < 1 || s.Rate > benchRateMax {
		return usagef("--rate is %v; use 1 to %d", s.Rate, benchRateMax)
	}
	conns := benchConnsMax
	if s.Streams > 0 {
		conns = min(conns, s.Streams)
	}
	return firstError(inRange("payload", s.Payload, 0, benchPayloadMax), inRange("streams", s.Streams, 0, benchStreamsMax), inRange("connections", s.Conns, 1, conns))
}
