package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"
)

func (a *app) counterCommand() *cobra.Command {
	g := group("counter", "Add to counters of a cache, and read them", a.counterAddCommand(), a.counterGetCommand())
	g.Long = `Add to counters of a cache, and read them. Counters are durable and lie beside the values of a log-backed cache, under keys
of their own: cache get and cache watch do not see them. A cache in memory has none.`
	return g
}

// counterValue is a counter in JSON.
type counterValue struct {
	Namespace string `json:"namespace"`
	Cache     string `json:"cache"`
	Key       string `json:"key"`
	Sum       int64  `json:"sum"`
}

func (a *app) counterAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add CACHE KEY [DELTA]",
		Short: "Add to a counter and print the sum",
		Long: `Add DELTA, or 1, to a counter and print the sum after it. A counter that was never written begins at 0. A sum that does not
fit into 64 bits is refused. When the answer is lost the addition may have been done or not; it is never tried again.

A DELTA below 0 goes behind --, or it would be taken for a flag.`,
		Example: `  felixctl counter add users visits
  felixctl counter add users stock -- -3`,
		Args: cobra.RangeArgs(2, 3), ValidArgsFunction: a.completeNames("caches"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			delta := int64(1)
			if len(args) == 3 {
				var err error
				if delta, err = strconv.ParseInt(args[2], 10, 64); err != nil {
					return usagef("DELTA is %q; use a whole number of 64 bits", args[2])
				}
			}
			return a.withBroker(cmd.Context(), func(b broker) error {
				stop := a.progress(func() string { return "adding to a counter of cache " + args[0] })
				sum, err := b.CounterAdd(cmd.Context(), b.namespace, args[0], args[1], delta)
				stop()
				if err != nil {
					return err
				}
				return a.printCounter(counterValue{Namespace: b.namespace, Cache: args[0], Key: args[1], Sum: sum})
			})
		}),
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if negativeFlag.MatchString(err.Error()) {
			return usagef("%v; a DELTA below 0 goes behind --: counter add CACHE KEY -- -5", err)
		}
		return err
	})
	return cmd
}

// negativeFlag is how the command line is complained about when a negative number was taken for flags.
var negativeFlag = regexp.MustCompile(` in -[0-9]+$`)

func (a *app) counterGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "get CACHE KEY",
		Short:   "Print a counter",
		Long:    "Print the sum of a counter. One that was never written ends with exit code 5.",
		Example: `  felixctl counter get users visits`,
		Args:    cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("caches"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return a.withBroker(cmd.Context(), func(b broker) error { return a.counterGet(cmd.Context(), b, args[0], args[1]) })
		}),
	}
}

func (a *app) counterGet(ctx context.Context, b broker, cache, key string) error {
	stop := a.progress(func() string { return "reading a counter of cache " + cache })
	sum, found, err := b.CounterGet(ctx, b.namespace, cache, key)
	stop()
	switch {
	case err != nil:
		return err
	case !found:
		return &absentError{fmt.Sprintf("counter %q of cache %s/%s", key, b.namespace, cache)}
	}
	return a.printCounter(counterValue{Namespace: b.namespace, Cache: cache, Key: key, Sum: sum})
}

// printCounter writes the sum alone, for people and scripts alike, or an object with --json.
func (a *app) printCounter(v counterValue) error {
	if a.flags.json {
		return writeJSON(a.sys.stdout, v)
	}
	_, err := fmt.Fprintln(a.sys.stdout, v.Sum)
	return err
}
