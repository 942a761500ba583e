package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire/id"
)

// readFlags are the flags of read.
type readFlags struct {
	from   string
	end    uint64
	count  int
	shard  uint32
	stream string
}

func (a *app) readCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "read STREAM",
		Short: "Print records that are there already",
		Long: `Print the records of one shard of a durable stream, up to --end, --count, or the end of the log, and stop. Nothing is
waited for, and nothing is subscribed. An offset that is no longer kept, or not there yet, is refused with exit code 4; the
error names the nearest that can be had.

Records are written as sub writes them.`,
		Example: `  felixctl read orders --from 1200 --count 10
  felixctl read orders --shard 2 --from -5m --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			f.stream = args[0]
			if f.count < 0 {
				return usagef("--count is %d; use a positive number, or 0 for all", f.count)
			}
			from, err := parseStart("--from", f.from, time.Now())
			switch {
			case err != nil:
				return err
			case from.latest:
				return usagef("--from is latest, where nothing is to be read yet; use %s", startHelp)
			}
			return a.withBroker(cmd.Context(), func(b broker) error { return a.read(cmd.Context(), b, f, from) })
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "earliest", "where to begin: "+startHelp)
	flags.Uint64Var(&f.end, "end", 0, "end before this offset; 0 for the end of the log")
	flags.IntVar(&f.count, "count", 0, "end after so many records; 0 for all")
	flags.Uint32Var(&f.shard, "shard", 0, "shard to read")
	fixedValues(cmd, "from", "earliest")
	return cmd
}

// pageRecords is how many records felixctl asks for at once: what it prints before it asks for more.
const pageRecords = 1000

// read prints records until there are enough, or no more.
func (a *app) read(ctx context.Context, b broker, f readFlags, from start) error {
	o := client.ReadOptions{Shard: f.shard, From: from.offset, End: id.Offset(f.end), MaxRecords: pageRecords}
	if f.count > 0 {
		o.MaxRecords = uint32(min(f.count, pageRecords))
	}
	if from.timed {
		at, found, err := b.OffsetForTime(ctx, b.namespace, f.stream, f.shard, from.since)
		if err != nil || !found {
			return err
		}
		o.From = at
	}
	n, err := a.readFrom(ctx, b, f, o)
	var gone *client.CursorError
	if from.earliest && n == 0 && errors.Is(err, client.ErrTooOld) && errors.As(err, &gone) {
		o.From = gone.Available
		n, err = a.readFrom(ctx, b, f, o)
	}
	if err != nil && n > 0 {
		err = fmt.Errorf("%w (%s printed before)", err, plural(n, "record"))
	}
	return interruptionIsFine(ctx, err)
}

func (a *app) readFrom(ctx context.Context, b broker, f readFlags, o client.ReadOptions) (n int, err error) {
	for r, err := range b.ReadRange(ctx, b.namespace, f.stream, o) {
		if err != nil {
			return n, err
		}
		e := client.Event{Payload: r.Payload, Shard: r.Shard, Offset: r.Offset, HasOffset: true, Publisher: r.Publisher, Time: r.Time}
		if err := a.printEvent(b.namespace, f.stream, e); err != nil {
			return n, err
		}
		if n++; n == f.count {
			return n, nil
		}
	}
	return n, nil
}
