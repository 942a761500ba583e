package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire/id"
)

// pubFlags are the flags of pub.
type pubFlags struct {
	input  inputFlags
	key    string
	keyed  bool
	ack    string
	acked  bool // --ack was given
	batch  int
	stream string

	idempotent  bool
	expected    uint64
	conditional bool // --if-offset was given
	producer    *client.Producer
}

// batchMax bounds records per batch: what a batch holds is in memory until it is acknowledged.
const batchMax = 100_000

func (a *app) pubCommand() *cobra.Command {
	var f pubFlags
	cmd := &cobra.Command{
		Use:   "pub STREAM [MESSAGE|-]",
		Short: "Publish records",
		Long: `Publish one record from the command line or from a file, or many from standard input: one per line, when
MESSAGE is - or is left out and standard input is no terminal.

Records are published while earlier ones wait for their acknowledgement, and acknowledged in order. With --json
one object is printed for each record as it is acknowledged. The first record that is not acknowledged ends the
command; the error says how many were.

With --idempotent, records whose acknowledgement was lost are sent again until they are acknowledged, and each is
written once. With --if-offset, all records are one batch, which is written only if its first record gets that offset;
exit code 4 otherwise, and the error names the next offset. Both need a durable stream.`,
		Example: `  felixctl pub orders hello --key customer-1
  seq 1000 | felixctl pub orders --json
  felixctl pub orders --file picture.png --ack none
  felixctl pub orders --idempotent < orders.txt
  felixctl pub orders decided --if-offset 1200`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			f.stream = args[0]
			f.keyed, f.acked = cmd.Flags().Changed("key"), cmd.Flags().Changed("ack")
			f.conditional = cmd.Flags().Changed("if-offset")
			options, err := f.options()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			messages, err := a.messages(ctx, f.input, args[1:])
			if err != nil {
				return err
			}
			return a.withBroker(ctx, func(b broker) (err error) {
				if f.idempotent {
					if f.producer, err = b.NewProducer(ctx, client.ProducerOptions{}); err != nil {
						return err
					}
				}
				return a.publishAll(ctx, b, f, options, messages)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "key that chooses the shard; records of one key keep their order")
	flags.StringVar(&f.ack, "ack", "record", "what to wait for: none, record, batch")
	flags.IntVar(&f.batch, "batch", 1, "records per batch; more than 1 waits until so many lines came")
	flags.BoolVar(&f.idempotent, "idempotent", false, "send again what was not acknowledged, and write each record once")
	flags.Uint64Var(&f.expected, "if-offset", 0, "write all records as one batch, and only if it begins at this offset")
	f.input.register(flags)
	fixedValues(cmd, "ack", "none", "record", "batch")
	return cmd
}

// options turns flags into what the client takes.
func (f *pubFlags) options() ([]client.PublishOption, error) {
	switch {
	case f.batch < 1 || f.batch > batchMax:
		return nil, usagef("--batch is %d; use 1 to %d", f.batch, batchMax)
	case f.conditional && (f.idempotent || f.batch > 1):
		return nil, usagef("--if-offset makes one batch of all records; use it without --batch and --idempotent")
	case (f.conditional || f.idempotent) && f.ack == "none":
		return nil, usagef("--ack none leaves nobody to tell what became of a record; use it without --if-offset and --idempotent")
	}
	var options []client.PublishOption
	if f.keyed {
		options = append(options, client.WithKey([]byte(f.key)))
	}
	switch {
	case f.ack == "none":
		return append(options, client.WithAck(client.AckNone)), nil
	case f.ack == "batch", f.batch > 1 && !f.acked:
		return append(options, client.WithAck(client.AckBatch)), nil
	case f.ack == "record":
		return append(options, client.WithAck(client.AckRecord)), nil
	}
	return nil, usagef("--ack is %q; use none, record or batch", f.ack)
}

// publishAll publishes messages in batches, many under way at once, and prints what came of them.
func (a *app) publishAll(ctx context.Context, b broker, f pubFlags, options []client.PublishOption, messages *input) error {
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	r := newReceipts(a, b.namespace, f, cancel)
	stop := a.progress(r.progress)
	err := f.send(sending, b, options, messages, r.under)
	close(r.under)
	<-r.done
	stop()
	return r.outcome(ctx, err)
}

// send reads messages and publishes them until they end, one fails to be sent, or ctx ends.
func (f *pubFlags) send(ctx context.Context, b broker, options []client.PublishOption, messages *input, under chan<- sentBatch) error {
	var batch [][]byte
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		sent, err := f.publish(ctx, b, batch, options)
		if err != nil {
			return err
		}
		sent.records = len(batch)
		under <- sent
		batch = batch[:0]
		return nil
	}
	for {
		message, ok, err := messages.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return flush()
		}
		if batch = append(batch, message); f.conditional && len(batch) > batchMax {
			return usagef("--if-offset takes at most %d records, which are one batch", batchMax)
		}
		if len(batch) >= f.batch && !f.conditional {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// publish sends a batch; one of a single record as that record.
func (f *pubFlags) publish(ctx context.Context, b broker, batch [][]byte, options []client.PublishOption) (sent sentBatch, err error) {
	switch {
	case f.conditional:
		var result client.PublishResult
		result, err = b.PublishIf(ctx, b.namespace, f.stream, id.Offset(f.expected), batch, options...)
		sent.pending = published(result)
	case f.producer != nil:
		sent.pending, err = f.producer.PublishBatchAsync(ctx, b.namespace, f.stream, batch, options...)
	case f.batch == 1:
		sent.pending, err = b.PublishAsync(ctx, b.namespace, f.stream, batch[0], options...)
	default:
		sent.pending, err = b.PublishBatchAsync(ctx, b.namespace, f.stream, batch, options...)
	}
	return sent, err
}

// published is a publish with its outcome.
type published client.PublishResult

func (p published) Wait(context.Context) (client.PublishResult, error) {
	return client.PublishResult(p), nil
}
