package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
)

// subFlags are the flags of sub.
type subFlags struct {
	from   string
	count  int
	shard  string
	stream string
}

func (a *app) subCommand() *cobra.Command {
	var f subFlags
	cmd := &cobra.Command{
		Use:   "sub STREAM",
		Short: "Print records as they arrive",
		Long: `Print the records of one shard or of all shards merged, until --count is reached or the command is interrupted,
which is a success. Order holds within a shard.

On a terminal, bytes that cannot be printed are escaped; elsewhere each record is written byte for byte and followed
by a line feed. With --json each record is an object with its payload as text, or as payload_base64 where it is not
UTF-8, its shard, and its offset and timestamp where the stream has them.

--from an offset, earliest or a time reads what a durable stream holds and goes on with what comes. An offset is that of the
first record wanted; one that is no longer kept, or not there yet, is refused with exit code 4, and the error names the
nearest that can be had.`,
		Example: `  felixctl sub orders --from earliest --count 10
  felixctl sub orders --from -5m
  felixctl sub orders --shard 2 --from 1200 --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			f.stream = args[0]
			if f.count < 0 {
				return usagef("--count is %d; use a positive number, or 0 for no end", f.count)
			}
			start, err := parseStart("--from", f.from, time.Now())
			if err != nil {
				return err
			}
			shard, all, err := parseShard(f.shard)
			if err != nil {
				return err
			}
			return a.withBroker(cmd.Context(), func(b broker) error {
				return a.subscribe(cmd.Context(), b, f, start.Start, shard, all)
			}, a.withTimes)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "latest", "where to begin: latest, "+startHelp)
	flags.IntVar(&f.count, "count", 0, "end after so many records; 0 for no end")
	flags.StringVar(&f.shard, "shard", "all", "one shard by its number, or all")
	fixedValues(cmd, "from", "latest", "earliest")
	fixedValues(cmd, "shard", "all")
	return cmd
}

// withTimes asks for the times of records where they are printed.
func (a *app) withTimes(o *client.Options) { o.Timestamps = a.flags.json }

func parseShard(text string) (shard uint32, all bool, err error) {
	if text == "all" {
		return 0, true, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, false, usagef("--shard is %q; use a number or all", text)
	}
	return uint32(n), false, nil
}

// reader is a subscription to one shard or to all.
type reader interface {
	Next(ctx context.Context) (client.Event, error)
	Close()
}

// subscribe prints events until there are enough, or somebody interrupts.
func (a *app) subscribe(ctx context.Context, b broker, f subFlags, start client.Start, shard uint32, all bool) error {
	stop := a.progress(func() string { return "subscribing to " + b.namespace + "/" + f.stream })
	r, shards, err := open(ctx, b, f.stream, start, shard, all)
	stop()
	if err != nil {
		return interruptionIsFine(ctx, err)
	}
	defer r.Close()
	a.note("subscribed to %s/%s (%s)", b.namespace, f.stream, plural(shards, "shard"))
	for n := 0; f.count == 0 || n < f.count; n++ {
		e, err := r.Next(ctx)
		if err == io.EOF {
			return errors.New("the broker ended the subscription")
		}
		if err != nil {
			return interruptionIsFine(ctx, err)
		}
		if err := a.printEvent(b.namespace, f.stream, e); err != nil {
			return err
		}
	}
	return nil
}

// open subscribes. A loss ends the command, whose exit code tells of it.
func open(ctx context.Context, b broker, stream string, start client.Start, shard uint32, all bool) (reader, int, error) {
	if all {
		m, err := b.SubscribeAll(ctx, b.namespace, stream, client.SubscribeAllOptions{From: start, Resume: client.ResumeNever})
		if err != nil {
			return nil, 0, err
		}
		return m, m.Shards(), nil
	}
	s, err := b.Subscribe(ctx, b.namespace, stream, client.SubscribeOptions{Shard: shard, From: start, Resume: client.ResumeNever})
	if err != nil {
		return nil, 0, err
	}
	return s, 1, nil
}

// interruptionIsFine turns the end by a signal into success.
func interruptionIsFine(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// eventLine is an event in JSON.
type eventLine struct {
	Namespace     string  `json:"namespace"`
	Stream        string  `json:"stream"`
	Shard         uint32  `json:"shard"`
	Offset        *uint64 `json:"offset,omitempty"`
	SkippedBefore uint64  `json:"skipped_before,omitempty"`
	Timestamp     string  `json:"timestamp,omitempty"` // when the broker appended it
	Publisher     string  `json:"publisher,omitempty"`
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
}

// printEvent writes one event in one piece. A reader that went away ends the command.
func (a *app) printEvent(namespace, stream string, e client.Event) error {
	var err error
	switch {
	case a.flags.json:
		line := eventLine{Namespace: namespace, Stream: stream, Shard: e.Shard, SkippedBefore: e.SkippedBefore, Publisher: e.Publisher}
		if !e.Time.IsZero() {
			line.Timestamp = e.Time.UTC().Format(time.RFC3339Nano)
		}
		line.Payload, line.PayloadBase64 = blob(e.Payload).members()
		if e.HasOffset {
			offset := uint64(e.Offset)
			line.Offset = &offset
		}
		err = writeJSON(a.sys.stdout, line)
	case a.sys.stdoutTerminal:
		_, err = io.WriteString(a.sys.stdout, escape(e.Payload)+"\n")
	default:
		_, err = a.sys.stdout.Write(append(e.Payload, '\n'))
	}
	return err
}
