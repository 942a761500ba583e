// Command sim runs whole worlds of brokers, clients and faults in one goroutine each, decided by a seed.
//
//	go run ./sim -seed 42 -trace     tells the story of one seed, a line for each step
//	go run ./sim -seeds 1..500       runs many, and prints what they reached
//	go run ./sim -seed 42 -keep why  writes sim/testdata/seeds/42.txt, which every test run plays again
//
// With -durable the worlds are those of one node with a disk, which is killed, loses its power and finds its disk full or broken; a
// third of them have caches beside their streams, another third a consumer group. What is kept of them lies in sim/testdata/durable.
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
	durable := flags.Bool("durable", false, "run worlds with a disk")
	folder := flags.String("into", "", "where -keep writes; sim/testdata/seeds, or sim/testdata/durable, if empty")
	workers := flags.Int("workers", 2, "worlds that run side by side, with -seeds")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	w := bufio.NewWriter(out)
	defer w.Flush()
	kind := worldsOf(*durable)
	if *folder == "" {
		*folder = kind.folder
	}
	if *note != "" {
		path, err := keep(*folder, Regression{*seed, *note})
		if err != nil {
			fmt.Fprintf(errs, "sim: keep seed %d: %v\n", *seed, err)
			return 1
		}
		fmt.Fprintln(w, "wrote", path)
	}
	if *seeds == "" {
		return tell(w, kind, *seed, *trace)
	}
	from, to, err := parseRange(*seeds)
	if err != nil || *workers < 1 {
		fmt.Fprintf(errs, "sim: -seeds %q with %d workers: %v; use two numbers like 1..500 and at least one worker\n", *seeds, *workers, err)
		return 2
	}
	return kind.many(w, from, to, *workers)
}

// worlds is one kind of them.
type worlds struct {
	folder string // of the seeds that are kept
	one    func(seed uint64, trace func(simrt.Line)) (verdict fmt.Stringer, err error)
	many   func(w io.Writer, from, to uint64, workers int) int
}

func worldsOf(durable bool) worlds {
	if durable {
		return worlds{"sim/testdata/durable", func(seed uint64, trace func(simrt.Line)) (fmt.Stringer, error) {
			r := RunDurable(NewDurablePlan(seed), trace)
			return r, r.Err
		}, manyDurable}
	}
	return worlds{"sim/testdata/seeds", func(seed uint64, trace func(simrt.Line)) (fmt.Stringer, error) {
		r := Run(NewPlan(seed), trace)
		return r, r.Err
	}, many}
}

// tell runs one seed.
func tell(w io.Writer, kind worlds, seed uint64, trace bool) int {
	var line func(simrt.Line)
	if trace {
		line = func(l simrt.Line) { fmt.Fprintln(w, l) }
	}
	r, err := kind.one(seed, line)
	fmt.Fprintln(w, r)
	if err != nil {
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
	return sum(w, int(to-from+1), failed, steps, time.Since(start)*time.Duration(workers), marks.String())
}

// manyDurable is many for durable worlds.
func manyDurable(w io.Writer, from, to uint64, workers int) int {
	start, failed, steps := time.Now(), 0, 0
	var marks DurableMarks
	for _, r := range DurableCampaign(from, to, workers, nil) {
		marks.Add(&r.Marks)
		steps += r.Steps
		if r.Err != nil {
			failed++
			fmt.Fprintln(w, r)
		}
	}
	return sum(w, int(to-from+1), failed, steps, time.Since(start)*time.Duration(workers), marks.String())
}

// sum prints what n worlds came to, and returns the exit code.
func sum(w io.Writer, n, failed, steps int, took time.Duration, marks string) int {
	fmt.Fprintf(w, "%d seeds, %d failed, %d steps each on average, %v each on average\n%s", n, failed, steps/n, took/time.Duration(n), marks)
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
