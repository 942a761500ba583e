package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
)

// pollFlags are the flags of group poll.
type pollFlags struct {
	shard      string
	count      int
	wait       time.Duration
	visibility time.Duration
	member     string
	reclaim    bool
	ack        bool
}

func (a *app) groupPollCommand() *cobra.Command {
	var f pollFlags
	cmd := &cobra.Command{
		Use:   "poll STREAM GROUP",
		Short: "Claim records and print them",
		Long: `Claim up to --count records for --visibility, and print them. Nothing to be had is a success that prints nothing. Whoever has
claimed a record settles it with ack or nack; one that is not settled in time is handed out again.

On a terminal each line has SHARD/OFFSET, which delivery it is, and the payload, escaped. Elsewhere each payload is
written byte for byte and followed by a line feed; with --json each record is an object. With --ack each is acked as soon
as it is printed.

Of a poll that is interrupted records may be claimed that are not printed. They come again when their visibility lapses.`,
		Example: `  felixctl group poll orders billing --count 10 --wait 5s --json
  felixctl group poll orders billing --ack
  felixctl group poll orders billing --member worker-1 --reclaim`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.withGroup(cmd, args, func(ctx context.Context, b broker, g groupName) error {
				return interruptionIsFine(ctx, a.poll(ctx, b, g, f))
			})
		}),
	}
	flags := cmd.Flags()
	shardFlag(cmd, &f.shard, "one shard by its number, or all, one after the other")
	flags.IntVar(&f.count, "count", 1, "claim at most so many records")
	flags.DurationVar(&f.wait, "wait", 0, "wait so long for records when there are none; the broker has a bound of its own")
	flags.DurationVar(&f.visibility, "visibility", 0, "how long the records stay claimed; 0 leaves it to the broker")
	flags.StringVar(&f.member, "member", "", "claim under this name")
	flags.BoolVar(&f.reclaim, "reclaim", false, "with --member: first what it has claimed on older connections")
	flags.BoolVar(&f.ack, "ack", false, "ack each record as soon as it is printed")
	return cmd
}

func (f *pollFlags) check() error {
	switch {
	case f.count < 1 || f.count > client.GroupPollMax:
		return usagef("--count is %d; use 1 to %d", f.count, client.GroupPollMax)
	case f.wait < 0 || f.visibility < 0:
		return usagef("--wait and --visibility take a positive time, or 0")
	case f.reclaim && f.member == "":
		return usagef("--reclaim needs --member")
	}
	_, _, err := parseShard(f.shard)
	return err
}

// pollTurn is how long a poll waits at one of several shards until it looks at the next: a second poll beside it would claim records
// too, which may be more than were asked for.
const pollTurn = 250 * time.Millisecond

// poll claims and prints. Shards are asked in turn until there are enough records, or some and no more, or the time is up.
func (a *app) poll(ctx context.Context, b broker, g groupName, f pollFlags) error {
	stop := a.progress(func() string { return "polling for " + g.text() })
	defer stop()
	shards, err := shardsOf(ctx, b, g.Stream, f.shard)
	if err != nil {
		return err
	}
	end := time.Now().Add(f.wait)
	var wait time.Duration
	for n := 0; ; {
		for _, shard := range shards {
			records, err := b.GroupPoll(ctx, g.Namespace, g.Stream, shard, g.Group, client.GroupPollOptions{
				Max: f.count - n, Wait: wait, Visibility: f.visibility, Member: f.member, Reclaim: f.reclaim,
			})
			if len(records) > 0 {
				stop()
			}
			if err == nil {
				err = a.printPolled(ctx, b, g, records, f.ack)
			}
			if n += len(records); err != nil || n >= f.count {
				return err
			}
			if n > 0 {
				wait = 0
			}
		}
		left := time.Until(end)
		if n > 0 || left <= 0 {
			return nil
		}
		if wait = left; len(shards) > 1 {
			wait = min(left, pollTurn)
		}
	}
}

// polledLine is a claimed record in JSON.
type polledLine struct {
	groupName
	Shard         uint32  `json:"shard"`
	Offset        uint64  `json:"offset"`
	Attempts      uint32  `json:"attempts"` // which delivery this is, from 1; 0: not told
	SkippedBefore uint64  `json:"skipped_before,omitempty"`
	Timestamp     string  `json:"timestamp,omitempty"` // when the broker appended it
	Publisher     string  `json:"publisher,omitempty"`
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 *string `json:"payload_base64,omitempty"`
}

// printPolled writes each record in one piece, and acks it then if it is to be.
func (a *app) printPolled(ctx context.Context, b broker, g groupName, records []client.Message, ack bool) error {
	for _, m := range records {
		err := a.printClaim(g, m)
		if err == nil && ack {
			err = b.GroupAck(ctx, g.Namespace, g.Stream, m.Shard, g.Group, m.Offset)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printClaim(g groupName, m client.Message) (err error) {
	switch {
	case a.flags.json:
		line := polledLine{groupName: g, Shard: m.Shard, Offset: uint64(m.Offset), Attempts: m.Attempts, SkippedBefore: m.SkippedBefore, Publisher: m.Publisher, Timestamp: timeText(m.Timestamp)}
		line.Payload, line.PayloadBase64 = blob(m.Payload).members()
		err = writeJSON(a.sys.stdout, line)
	case a.sys.stdoutTerminal:
		_, err = io.WriteString(a.sys.stdout, fmt.Sprintf("%-10s %d  %s\n", place{Shard: m.Shard, Offset: m.Offset}.text(), m.Attempts, escape(m.Payload)))
	default:
		_, err = a.sys.stdout.Write(append(m.Payload, '\n'))
	}
	return err
}

// timeText is a time for programs; empty when it is not known.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
