// Command durablerestart shows that what a broker acknowledged is there after it was killed, and at which offsets. It brings its own
// broker, in a process of its own:
//
//	go run ./demos/durablerestart
//
// Publishers write numbered records to a durable stream while the broker is killed (SIGKILL) again and again and started on the same
// files. A subscriber stays subscribed through all of it. In the end the ledger is balanced: every acknowledged record is there once and
// at its offset, and the subscriber got every record once and in order.
//
// The exit code is 0 when the ledger balances, 1 when it does not or something failed, 2 for a wrong flag.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// options are the size of the demo.
type options struct {
	kills      int
	publishers int
	between    time.Duration // from a start to the next kill
	dir        string        // "" is one that is removed in the end
}

func main() {
	if code, asked := durable().Main(); asked {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr)) // exits of the process need no stop
}

// run is the whole demo; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := options{}
	flags := flag.NewFlagSet("durablerestart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.kills, "kills", 5, "how often the broker is killed, 1 to 1000")
	flags.IntVar(&o.publishers, "publishers", 4, "how many publish at once, 1 to 64")
	flags.DurationVar(&o.between, "between", 300*time.Millisecond, "from a start of the broker to its next kill, up to a minute")
	flags.StringVar(&o.dir, "dir", "", "an empty folder for the broker's files, which stay; by default they are removed")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0 || o.kills < 1 || o.kills > 1000 || o.publishers < 1 || o.publishers > 64 || o.between < 0 || o.between > time.Minute:
		fmt.Fprintln(stderr, "durablerestart: a flag is outside its bounds, or there is something besides flags; see --help")
		return 2
	}
	balanced, err := show(ctx, o, stdout)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "durablerestart: %v\n", err)
		return 1
	case !balanced:
		fmt.Fprintln(stderr, "durablerestart: the ledger does not balance")
		return 1
	}
	return 0
}

// show runs the demo and prints what it finds.
func show(ctx context.Context, o options, out io.Writer) (balanced bool, err error) {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "durablerestart")
		if err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.dir = dir
	}
	fmt.Fprintf(out, "durablerestart: %d publishers, %d kills of the broker, one durable stream\n\n", o.publishers, o.kills)
	b, err := durable().Start(o.dir)
	if err != nil {
		return false, err
	}
	defer func() { b.Kill() }()
	l := newLedger()
	quiet, stop, err := l.begin(ctx, b.Place, o.publishers)
	if err != nil {
		return false, err
	}
	defer stop()
	before := 0
	for n := range o.kills {
		wait(ctx, o.between)
		acknowledged, err := l.countAbove(ctx, before)
		if err != nil {
			return false, err
		}
		before = acknowledged
		b.Kill()
		began := time.Now()
		if b, err = durable().Start(o.dir); err != nil {
			return false, err
		}
		fmt.Fprintf(out, "kill %2d: %8d records acknowledged before it; the broker serves again after %4d ms\n", n+1, acknowledged, time.Since(began).Milliseconds())
	}
	if _, err := l.countAbove(ctx, before); err != nil {
		return false, err
	}
	wait(ctx, o.between)
	quiet()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	r, err := l.balance(ctx, b.Place)
	if err != nil {
		return false, err
	}
	r.seen, r.wrong = l.seenAll(ctx, r.there)
	fmt.Fprintf(out, "\n%s", r)
	return r.balanced(), nil
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
