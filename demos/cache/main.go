// Command cache measures an in-memory cache over QUIC and checks what it promises: put, hit and miss latency for several
// payload sizes, times to live, and deletes. It brings its own broker:
//
//	go run ./demos/cache
//
// FELIX_CACHE_BENCH_WARMUP, _SAMPLES, _PAYLOADS, _CONCURRENCY and _KEYS change what is measured. The exit code is 0 when every
// check held, 1 when one did not or something failed, 2 for a wrong setting.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
)

// cacheName is the one cache that the demo uses.
const cacheName = "bench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) // exits of the process need no stop
}

// run is the whole demo; it returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("cache", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, "usage: go run ./demos/cache\n\n", help()) }
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "cache: %q is not understood; the settings are variables, see --help\n", flags.Arg(0))
		return 2
	}
	s, err := readSettings(getenv)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	if err := measureAndCheck(ctx, s, stdout); err != nil {
		fmt.Fprintf(stderr, "cache: %v\n", err)
		return 1
	}
	return 0
}

// measureAndCheck runs broker, measurements and checks; an error is a failure or a check that did not hold.
func measureAndCheck(ctx context.Context, s settings, out io.Writer) (err error) {
	b, err := local.Start(local.Options{Caches: []string{cacheName}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	c, err := client.Connect(ctx, b.Client())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()

	fmt.Fprintln(out, s)
	fmt.Fprintln(out)
	if err := measure(ctx, c, s, out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return check(ctx, c, out)
}
