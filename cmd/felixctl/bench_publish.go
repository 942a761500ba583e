package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixd/felixd/internal/bench"
)

// shapeFlags say what batches look like.
type shapeFlags struct {
	payload, batch int
	ack            string
	inFlight       int
}

func (f *shapeFlags) register(set *pflag.FlagSet, ack string) {
	set.IntVar(&f.payload, "payload", 256, "bytes of a record")
	set.IntVar(&f.batch, "batch", 64, "records of a batch")
	set.StringVar(&f.ack, "ack", ack, "what is acknowledged: none, batch, or record, for batches of one")
	set.IntVar(&f.inFlight, "in-flight", 64, "batches without an acknowledgement, all streams together")
}

// check judges the flags for a number of streams.
func (f *shapeFlags) check(streams int) error {
	if f.ack != "none" && f.ack != "batch" && f.ack != "record" {
		return usagef("--ack is %q; use none, batch or record", f.ack)
	}
	if f.ack == "record" && f.batch != 1 {
		return usagef("--ack record is for batches of one; give --batch 1, or --ack batch")
	}
	err := firstError(inRange("payload", f.payload, 0, benchPayloadMax), inRange("batch", f.batch, 1, benchBatchMax),
		inRange("in-flight", f.inFlight, 1, benchInFlightMax*max(1, streams)))
	if err == nil && f.payload*f.batch > benchPayloadMax {
		err = usagef("--payload times --batch is %d bytes; use at most %d", f.payload*f.batch, benchPayloadMax)
	}
	return err
}

func (f *shapeFlags) shape() bench.Shape {
	return bench.Shape{Payload: f.payload, Batch: f.batch}
}

func (b *benchCommands) pubCommand() *cobra.Command {
	var f shapeFlags
	var d durableFlags
	var streams, conns int
	var generator, encoding string
	cmd := &cobra.Command{
		Use:   "pub STREAM",
		Short: "How fast a broker takes records, beside a raw sink",
		Long: `Publish as fast as acknowledgements and flow control allow. A closed loop.

Without acknowledgements one batch in 256 KiB is acknowledged all the same, on both sides: its answer is how this
program knows how far the server has got. Records of one shard travel on one stream of the connection, so --streams
needs a stream with as many shards.

With --durable, --in-flight producers publish single records to a durable stream, each again when its record is stored,
beside a plain write and fdatasync of as many bytes and a raw echo; how many records one sync served is reported too.`,
		Example: `  felixctl bench pub bench --ack none
  felixctl bench pub bench --streams 8 --in-flight 64
  felixctl bench pub ledger --durable --in-flight 64`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: b.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			spec := bench.PublishSpec{
				Name: "pub", Title: "publish, against a raw sink", Stream: args[0], Streams: streams, Conns: conns,
				Shape: f.shape(), Acked: f.ack != "none", PerRecord: f.ack == "record", InFlight: f.inFlight,
				Generator: bench.Generator(generator), Encoding: bench.Encoding(encoding),
			}
			if err := firstError(f.check(streams), inRange("streams", streams, 1, benchStreamsMax), inRange("connections", conns, 1, min(streams, benchConnsMax)),
				checkGenerator(cmd.Flags(), &spec)); err != nil {
				return err
			}
			if err := d.check(cmd.Flags(), "batch", "ack", "streams", "generator", "encoding"); err != nil {
				return err
			}
			if d.durable {
				return b.measureDurable(cmd, d, bench.DurableSpec{
					Name: "pub", Title: "durable records, one at a time", Stream: args[0], Payload: f.payload, Producers: f.inFlight, Conns: conns,
				})
			}
			return b.measure(cmd, func(s *benchSession) (bench.Experiment, error) {
				return bench.PublishExperiment(cmd.Context(), s.felixd, s.raw, spec)
			})
		}),
	}
	flags := cmd.Flags()
	f.register(flags, "batch")
	d.register(flags, "measure producers of single records to a durable stream, beside the disk")
	flags.IntVar(&streams, "streams", 1, "streams of the connections to spread over")
	flags.IntVar(&conns, "connections", 1, "connections to spread the streams over")
	flags.StringVar(&generator, "generator", "client", "who writes the publishes: client (the Go client), or wire (this command itself)")
	flags.StringVar(&encoding, "encoding", "binary", "binary, or json, which the generator wire can")
	fixedValues(cmd, "ack", "none", "batch", "record")
	fixedValues(cmd, "generator", "client", "wire")
	fixedValues(cmd, "encoding", "binary", "json")
	return cmd
}

// checkGenerator judges generator and encoding together: JSON alone implies the generator that can write it.
func checkGenerator(set *pflag.FlagSet, spec *bench.PublishSpec) error {
	switch {
	case spec.Generator != bench.ByClient && spec.Generator != bench.ByWire:
		return usagef("--generator is %q; use client or wire", spec.Generator)
	case spec.Encoding != bench.Binary && spec.Encoding != bench.JSON:
		return usagef("--encoding is %q; use binary or json", spec.Encoding)
	case spec.Encoding == bench.JSON && spec.Generator == bench.ByClient:
		if set.Changed("generator") {
			return usagef("--encoding json needs --generator wire: the Go client writes JSON only to brokers that read nothing else")
		}
		spec.Generator = bench.ByWire
	}
	return nil
}
