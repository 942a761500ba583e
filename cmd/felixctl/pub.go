package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
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
command; the error says how many were.`,
		Example: `  felixctl pub orders hello --key customer-1
  seq 1000 | felixctl pub orders --json
  felixctl pub orders --file picture.png --ack none`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			f.stream = args[0]
			f.keyed, f.acked = cmd.Flags().Changed("key"), cmd.Flags().Changed("ack")
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
			return a.withBroker(ctx, func(b broker) error {
				return a.publishAll(ctx, b, f, options, messages)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "key that chooses the shard; records of one key keep their order")
	flags.StringVar(&f.ack, "ack", "record", "what to wait for: none, record, batch")
	flags.IntVar(&f.batch, "batch", 1, "records per batch; more than 1 waits until so many lines came")
	f.input.register(flags)
	fixedValues(cmd, "ack", "none", "record", "batch")
	return cmd
}

// options turns flags into what the client takes.
func (f *pubFlags) options() ([]client.PublishOption, error) {
	if f.batch < 1 || f.batch > batchMax {
		return nil, usagef("--batch is %d; use 1 to %d", f.batch, batchMax)
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
		p, err := f.publish(ctx, b, batch, options)
		if err != nil {
			return err
		}
		under <- sentBatch{pending: p, records: len(batch)}
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
		if batch = append(batch, message); len(batch) >= f.batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// publish sends a batch; one of a single record as that record.
func (f *pubFlags) publish(ctx context.Context, b broker, batch [][]byte, options []client.PublishOption) (*client.PendingPublish, error) {
	if f.batch == 1 {
		return b.PublishAsync(ctx, b.namespace, f.stream, batch[0], options...)
	}
	return b.PublishBatchAsync(ctx, b.namespace, f.stream, batch, options...)
}
