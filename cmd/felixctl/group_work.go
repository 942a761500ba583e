package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixd/felixd/client"
)

// workFlags are the flags of group work.
type workFlags struct {
	command     string
	concurrency int
	visibility  time.Duration
	timeout     time.Duration
	retryDelay  time.Duration
	stopTimeout time.Duration
	idle        time.Duration
	member      string
}

const (
	// workersMax bounds commands at a time: each is a process of its own, and more than that is a mistake on any machine.
	workersMax = 1024
	// retryLongest is up to where the pause of a record that keeps failing is doubled.
	retryLongest = time.Minute
)

func (a *app) groupWorkCommand() *cobra.Command {
	var f workFlags
	cmd := &cobra.Command{
		Use:   "work STREAM GROUP --exec CMD",
		Short: "Run a command for each record",
		Long: `Run a command for each record of a durable stream, together with whoever else works for the group. CMD is given to the shell;
it finds the payload on its standard input, and in its environment FELIX_NAMESPACE, FELIX_STREAM, FELIX_GROUP, FELIX_SHARD,
FELIX_OFFSET, FELIX_ATTEMPTS (which delivery this is, from 1), FELIX_SKIPPED_BEFORE, FELIX_TIMESTAMP and FELIX_PUBLISHER
(empty where they are not known). What becomes of the record is what the command ends with:

  0           it is finished
  65          it is given up, and becomes a dead letter (EX_DATAERR)
  75          not now: it is given back, and comes again after a pause (EX_TEMPFAIL)
  126, 127    the command cannot be run: the record is given back, and the work ends, before all records fail
  others      it has failed: it is given back like with 75, and told on standard error

The pause is --retry-delay, and twice as long after each further delivery, up to a minute. A record that is handed out too
often becomes a dead letter by itself. No worker is told of that: the summary counts those that were given up with 65, and
"group dead-letters" lists all. Give up for what is wrong with the record itself: "|| exit 65" behind a command gives up every
record when a program is missing or the disk is full.

Claims are prolonged while a command runs. One whose claim is gone all the same, as after a seek, is ended. A record may come
more than once, as when this command is killed: CMD has to bear it.

Interrupted, it claims no more, waits for the commands that run, and is a success. After --stop-timeout, or when it is
interrupted again, it ends them and gives their records back. With --idle it ends by itself once nothing was handed out for so
long, also while records are in their pause or claimed by another worker: "group lag" is 0 only when nothing is left.

What commands print is passed on line by line. With --json standard output has an object for each command that ended, for
each trouble with the broker, and one at the end ("event" is record, trouble or summary), and all that commands print goes to
standard error.`,
		Example: `  felixctl group work orders billing --exec ./bill --concurrency 8
  felixctl group work orders billing --exec 'jq -e .total >>totals' --idle 2m`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("streams"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.withBroker(cmd.Context(), func(b broker) error {
				return a.work(cmd.Context(), b, groupName{Namespace: b.namespace, Stream: args[0], Group: args[1]}, f)
			}, withPublishers)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.command, "exec", "", "the command, for the shell")
	flags.IntVar(&f.concurrency, "concurrency", 1, "commands at a time, and records claimed")
	flags.DurationVar(&f.visibility, "visibility", client.DefaultVisibility, "after how long others get the records when this command is gone")
	flags.DurationVar(&f.timeout, "timeout", 0, "end a command after so long, which is a failure; 0 for never")
	flags.DurationVar(&f.retryDelay, "retry-delay", time.Second, "first pause of a record that failed")
	flags.DurationVar(&f.stopTimeout, "stop-timeout", client.DefaultStopTimeout, "how long running commands have when this one is interrupted")
	flags.DurationVar(&f.idle, "idle", 0, "end, which is a success, when no shard had anything to hand out for so long; 0 for never")
	flags.StringVar(&f.member, "member", "", "claim under this name, which nobody else has at the same time, and take back what was claimed under it before")
	return cmd
}

// withPublishers asks for who published a record.
func withPublishers(o *client.Options) { o.Publishers = true }

func (f *workFlags) check() error {
	switch {
	case f.command == "":
		return usagef("no command: give --exec")
	case min(f.timeout, f.retryDelay, f.idle) < 0:
		return usagef("--timeout, --retry-delay and --idle take a positive time, or 0")
	case f.stopTimeout <= 0:
		return usagef("--stop-timeout is %v; use a positive time", f.stopTimeout)
	case f.visibility < client.ConsumeVisibilityMin || f.visibility > client.ConsumeVisibilityMax:
		return usagef("--visibility is %v; use %v to %v", f.visibility, client.ConsumeVisibilityMin, client.ConsumeVisibilityMax)
	}
	return inRange("concurrency", f.concurrency, 1, workersMax)
}

// delayOf is the pause of a record that failed.
func (f *workFlags) delayOf(m client.Message, _ error) time.Duration {
	delay, longest := f.retryDelay, max(f.retryDelay, retryLongest)
	for n := uint32(1); n < m.Attempts && delay > 0 && delay < longest; n++ {
		delay *= 2
	}
	return min(delay, longest)
}

// work runs commands until it is interrupted, idle, or something is wrong for good.
func (a *app) work(ctx context.Context, b broker, g groupName, f workFlags) error {
	w := newWorker(a, g, f)
	defer w.watchInterrupts()()
	stop := a.progress(func() string { return "joining " + g.text() })
	c, err := b.Consume(ctx, g.Namespace, g.Stream, g.Group, w.handle, client.ConsumeOptions{
		Concurrency: f.concurrency, MaxInHand: f.concurrency, Visibility: f.visibility, Member: f.member,
		RetryDelay: f.delayOf, StopTimeout: f.stopTimeout, OnError: w.tell,
	})
	stop()
	w.join(c)
	if err != nil {
		return interruptionIsFine(ctx, err)
	}
	a.note("working on %s, %s at a time", g.text(), plural(f.concurrency, "command"))
	stop = a.progress(func() string { return w.progress(time.Now(), c.Stats()) })
	w.until(ctx, b, c)
	if n := c.Stats().Running; n > 0 && ctx.Err() != nil {
		w.say("stopping: %s still running; interrupt again to end what runs", plural(n, "command"))
	}
	err = c.Stop(context.WithoutCancel(ctx))
	w.ended.Wait()
	stop()
	if failed := w.failure(c); failed != nil {
		err = failed
	}
	if told := w.summary(c.Stats()); err == nil {
		err = told
	}
	return err
}
