// Command sim runs whole worlds of brokers, clients and faults in one goroutine each, decided by a seed.
//
//	go run ./sim -seed 42 -trace     tells the story of one seed, a line for each step
//	go run ./sim -seeds 1..500       runs many, and prints what they reached
//	go run ./sim -seed 42 -keep why  writes sim/testdata/seeds/42.txt, which every test run plays again
//
// The same seed gives the same story, down to the last byte; the hash at the end proves it. It exits with 1 when a seed fails.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/felixd/felixd/actors/simrt"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command is main with everything it touches as arguments; it returns the exit code.
func command(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(errs)
	seed := flags.Uint64("seed", 1, "the seed to run")
	seeds := flags.String("seeds", "", "a range of seeds to run instead, like 1..500")
	trace := flags.Bool("trace", false, "print each step of the one seed")
	note := flags.String("keep", "", "write a file with the seed and this note, to be played by every test run")
	folder := flags.String("into", "sim/testdata/seeds", "where -keep writes")
	workers := flags.Int("workers", 2, "worlds that run side by side, with -seeds")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	w := bufio.NewWriter(out)
	defer w.Flush()
	if *note != "" {
		path, err := keep(*folder, Regression{*seed, *note})
		if err != nil {
			fmt.Fprintf(errs, "sim: keep seed %d: %v\n", *seed, err)
			return 1
		}
		fmt.Fprintln(w, "wrote", path)
	}
	if *seeds == "" {
		return tell(w, *seed, *trace)
	}
	from, to, err := parseRange(*seeds)
	if err != nil || *workers < 1 {
		fmt.Fprintf(errs, "sim: -seeds %q with %d workers: %v; use two numbers like 1..500 and at least one worker\n", *seeds, *workers, err)
		return 2
	}
	return many(w, from, to, *workers)
}

// tell runs one seed.
func tell(w io.Writer, seed uint64, trace bool) int {
	var line func(simrt.Line)
	if trace {
		line = func(l simrt.Line) { fmt.Fprintln(w, l) }
	}
	r := Run(NewPlan(seed), line)
	fmt.Fprintln(w, r)
	if r.Err != nil {
		return 1
	}
	return 0
}

// many runs a range of seeds.
func many(w io.Writer, from, to uint64, workers int) int {
	start, failed, steps := time.Now(), 0, 0
	var marks Marks
	for _, r := range Campaign(from, to, workers) {
		marks.Add(&r.Marks)
		steps += r.Steps
		if r.Err != nil {
			failed++
			fmt.Fprintln(w, r)
		}
	}
	n := to - from + 1
	fmt.Fprintf(w, "%d seeds, %d failed, %d steps each on average, %v each on average\n%s", n, failed, steps/int(n), time.Since(start)/time.Duration(n)*time.Duration(workers), marks.String())
	if failed > 0 {
		return 1
	}
	return 0
}

// String is the verdict on one seed.
func (r Result) String() string {
	verdict := "ok"
	if r.Err != nil {
		verdict = "FAILED: " + r.Err.Error()
	}
	return fmt.Sprintf("seed %d: hash %016x, %d steps, %v of virtual time, %d answers, %d records delivered: %s", r.Seed, r.Hash, r.Steps, r.Time, r.Answered, r.Delivered, verdict)
}

// parseRange reads two numbers with two dots between them.
func parseRange(s string) (from, to uint64, err error) {
	a, b, ok := strings.Cut(s, "..")
	if !ok {
		return 0, 0, fmt.Errorf("no .. in it")
	}
	if from, err = strconv.ParseUint(a, 10, 64); err != nil {
		return 0, 0, err
	}
	if to, err = strconv.ParseUint(b, 10, 64); err != nil {
		return 0, 0, err
	}
	if to < from || to-from >= 1<<20 {
		return 0, 0, fmt.Errorf("it is empty or holds more than a million seeds")
	}
	return from, to, nil
}
