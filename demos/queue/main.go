// Command queue shows a work queue that loses nothing, finishes each record once and never gets stuck. It brings its own broker, in a process
// of its own:
//
//	go run ./demos/queue
//
// Jobs are published to a durable stream and worked off by a group of consumers, while the broker is killed (SIGKILL) again and again and
// started on the same files, and a consumer is taken away without a word after each kill. Some handlers fail or panic the first time, and one
// job in so many fails always. In the end the ledger is balanced: every job was worked off or is a dead letter, and none is both. Then the bad
// jobs are mended and redriven, and nothing is left.
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

	"github.com/felixd/felixd/client"
)

// options are the size of the demo.
type options struct {
	jobs    int
	workers int
	kills   int
	dir     string // "" is one that is removed in the end
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
	flags := flag.NewFlagSet("queue", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.jobs, "jobs", 20_000, "how many jobs are published, 100 to 1000000")
	flags.IntVar(&o.workers, "workers", 4, "how many consumers work on them, 2 to 64")
	flags.IntVar(&o.kills, "kills", 3, "how often the broker is killed, 1 to 100")
	flags.StringVar(&o.dir, "dir", "", "an empty folder for the broker's files, which stay; by default they are removed")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0 || o.jobs < 100 || o.jobs > 1_000_000 || o.workers < 2 || o.workers > 64 || o.kills < 1 || o.kills > 100:
		fmt.Fprintln(stderr, "queue: a flag is outside its bounds, or there is something besides flags; see --help")
		return 2
	}
	balanced, err := show(ctx, o, stdout)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "queue: %v\n", err)
		return 1
	case !balanced:
		fmt.Fprintln(stderr, "queue: the ledger does not balance")
		return 1
	}
	return 0
}

// show runs the demo and prints what it finds.
func show(ctx context.Context, o options, out io.Writer) (balanced bool, err error) {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "queue")
		if err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.dir = dir
	}
	fmt.Fprintf(out, "queue: %d jobs, %d consumers, %d kills of the broker\n\n", o.jobs, o.workers, o.kills)
	b, err := durable().Start(o.dir)
	if err != nil {
		return false, err
	}
	defer func() { b.Kill() }()
	l := newLedger(o.jobs)
	c, err := client.Connect(ctx, b.Place.Client())
	if err != nil {
		return false, err
	}
	defer hangUp(c)
	if err := l.publish(ctx, c); err != nil {
		return false, err
	}
	s := &staff{ledger: l, place: b.Place}
	defer s.dismiss()
	for range o.workers {
		if err := s.hire(ctx); err != nil {
			return false, err
		}
	}
	for n := range o.kills {
		worked, err := l.reach(ctx, o.jobs*(n+1)/(o.kills+1)*9/10)
		if err != nil {
			return false, err
		}
		b.Kill()
		began := time.Now()
		if b, err = durable().Start(o.dir); err != nil {
			return false, err
		}
		fmt.Fprintf(out, "kill %2d: %8d jobs were worked off before it; the broker serves again after %4d ms\n", n+1, worked, time.Since(began).Milliseconds())
		if err := s.replace(ctx); err != nil {
			return false, err
		}
	}
	r, err := l.settle(ctx, c)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\n%s", r)
	if !r.balanced() {
		return false, nil
	}
	if err := l.redrive(ctx, c, r.dead); err != nil {
		return false, err
	}
	again, err := l.settle(ctx, c)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\nthe bad jobs are mended and redriven: %d of %d are worked off, %d dead letters are left\n", again.worked, o.jobs, len(again.dead))
	return again.balanced() && again.worked == o.jobs && len(again.dead) == 0 && len(r.dead) > 0, s.dismiss()
}
