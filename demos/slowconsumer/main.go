// Command slowconsumer shows what one subscriber that does not keep up does to the others, under both overflow policies of a
// broker. It brings its own broker and runs the same load twice:
//
//	go run ./demos/slowconsumer
//
// Four phases for each policy: all subscribers read; one stops; it reads again; it reads at a fifth of the rate. Every record
// carries a number, so that a subscriber counts what it misses. Under drop_new the one that is slow loses records and nobody else
// notices; under block nobody loses anything, and everybody goes at its pace.
//
// The exit code is 0 when both claims held, 1 when one did not or something failed, 2 for a wrong flag, 3 when the machine was too
// busy to compare rates.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, isTerminal(os.Stdout))) // exits of the process need no stop
}

// run is the whole demo; it returns the exit code. terminal says that stdout is one.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, terminal bool) int {
	o, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "slowconsumer: %v\n", err)
		return 2
	}
	fmt.Fprintln(stdout, o.headline())
	worst := holds
	for _, p := range o.policies {
		s := newScreen(stdout, p, terminal && !o.plain)
		r, err := experiment(ctx, o, p, s)
		if err != nil {
			fmt.Fprintf(stderr, "slowconsumer: %s: %v\n", p, err)
			return 1
		}
		if v := s.verdict(r); worst == holds || v == broken {
			worst = v
		}
	}
	switch worst {
	case broken:
		fmt.Fprintln(stderr, "slowconsumer: a claim did not hold; if the machine is busy with something else, try --rate 5000 --others-capacity 4096")
	case unclear:
		fmt.Fprintln(stderr, "slowconsumer: the machine is too busy to tell; try a lower --rate")
	}
	return int(worst)
}

// isTerminal reports whether f is a terminal that understands cursor movements.
func isTerminal(f *os.File) bool {
	if term := os.Getenv("TERM"); term == "" || term == "dumb" {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
