package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixd/felixd/internal/bench"
)

// The kinds of caches in reports.
const (
	inMemory  = "in memory"
	logBacked = "log-backed"
)

// cacheFlags are the flags of bench cache.
type cacheFlags struct {
	op              string
	payloads        []int
	memory, durable string
	disk            string
	redis           redisFlags
	concurrency     int
	connections     int
	keys            int
}

func (b *benchCommands) cacheCommand() *cobra.Command {
	var f cacheFlags
	cmd := &cobra.Command{
		Use:   "cache [CACHE]",
		Short: "How long cache requests take, beside a raw echo and a redis-server",
		Long: `Let --concurrency callers put and get, each on a stream of its own and each again as soon as it was answered. A closed
loop. A raw echo sends back the same payload to as many callers. Each size of --payload is a report of its own.

Caches that are named with --in-memory and --durable are measured side by side, in turn, and CACHE as well if it is named. How
many puts one sync has stored is told where the broker's metrics are read.

A redis-server in PATH, or that of --redis, is started in a folder that is removed, with TLS on a loopback port and a
certificate of its own, and asked for the same; with --durable a second one that syncs each write (appendfsync always)
is asked to put. Each caller has a connection, or shares the --redis-connections without waiting for others' answers.
Without one the report says so.`,
		Example: `  felixctl bench cache bench
  felixctl bench cache --in-memory bench --durable bench-logged --payload 256
  felixctl bench cache bench --op hit --redis-connections 1`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: b.completeNames("caches"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			sides, err := f.check(cmd.Flags(), args)
			if err != nil {
				return err
			}
			var stop func() error
			err = b.measureAll(cmd, func(s *benchSession) ([]bench.Experiment, error) {
				var disk bench.Disk
				if f.durable != "" && !f.redis.none {
					if disk, err = b.diskFor(durableFlags{disk: f.disk}); err != nil {
						return nil, err
					}
				}
				if stop, err = b.startRedis(cmd.Context(), s, f.redis, disk); err != nil {
					return nil, err
				}
				return f.experiments(s, sides), nil
			})
			if stop != nil {
				err = errors.Join(err, stop())
			}
			return err
		}),
	}
	f.register(cmd)
	names := b.completeNames("caches")
	for _, flag := range []string{"in-memory", "durable"} {
		completeFlag(cmd, flag, func(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return names(cmd, nil, begun)
		})
	}
	return cmd
}

func (f *cacheFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.op, "op", "all", "what to ask: put, hit (a get of what is there), miss (of what is not), or all of them in turn")
	flags.IntSliceVar(&f.payloads, "payload", []int{0, 256, 4096}, "bytes of a value; may be several, each measured for itself")
	flags.StringVar(&f.memory, "in-memory", "", "a cache in memory to measure")
	flags.StringVar(&f.durable, "durable", "", "a cache in a log to measure")
	flags.StringVar(&f.disk, "disk", "", "with --durable: folder on the disk of the broker's logs, for the redis-server that syncs; default that of the context file")
	flags.IntVar(&f.concurrency, "concurrency", 32, "callers, each on a stream of its own")
	flags.IntVar(&f.connections, "connections", 1, "connections to spread the streams over")
	flags.IntVar(&f.keys, "keys", 1024, "keys that are used in turn")
	f.redis.register(flags)
	fixedValues(cmd, "op", "all", "put", "hit", "miss")
}

// check judges the flags and returns the caches to measure.
func (f *cacheFlags) check(set *pflag.FlagSet, args []string) ([]bench.CacheSide, error) {
	if err := firstError(inRange("concurrency", f.concurrency, 1, benchCallersMax), inRange("connections", f.connections, 1, min(f.concurrency, benchConnsMax)),
		inRange("keys", f.keys, 1, 1_000_000), f.redis.check(set)); err != nil {
		return nil, err
	}
	if _, err := f.ops(); err != nil {
		return nil, err
	}
	if len(f.payloads) == 0 {
		return nil, usagef("--payload is empty; use 0 to %d", benchPayloadMax)
	}
	for _, p := range f.payloads {
		if err := inRange("payload", p, 0, benchPayloadMax); err != nil {
			return nil, err
		}
	}
	if f.durable == "" && set.Changed("disk") {
		return nil, usagef("--disk is for --durable")
	}
	var sides []bench.CacheSide
	for _, cache := range args {
		sides = append(sides, bench.CacheSide{Cache: cache})
	}
	if f.memory != "" {
		sides = append(sides, bench.CacheSide{Label: inMemory, Cache: f.memory})
	}
	if f.durable != "" {
		sides = append(sides, bench.CacheSide{Label: logBacked, Cache: f.durable, Durable: true})
	}
	if len(sides) == 0 {
		return nil, usagef("no cache is named: give CACHE, --in-memory or --durable")
	}
	return sides, nil
}

func (f *cacheFlags) ops() ([]bench.CacheOp, error) {
	switch op := bench.CacheOp(f.op); op {
	case "all":
		return []bench.CacheOp{bench.Put, bench.Hit, bench.Miss}, nil
	case bench.Put, bench.Hit, bench.Miss:
		return []bench.CacheOp{op}, nil
	}
	return nil, usagef("--op is %q; use all, put, hit or miss", f.op)
}

// experiments are one for each payload.
func (f *cacheFlags) experiments(s *benchSession, sides []bench.CacheSide) []bench.Experiment {
	ops, err := f.ops()
	if err != nil {
		panic("felixctl: " + err.Error()) // check has judged it
	}
	var all []bench.Experiment
	for _, payload := range f.payloads {
		name, title := "cache", "cache"
		if len(f.payloads) > 1 {
			name, title = fmt.Sprintf("cache-%d", payload), fmt.Sprintf("cache, %d B values", payload)
		}
		all = append(all, bench.CacheExperiment(s.felixd, s.raw, bench.CacheSpec{
			Name: name, Title: title, Sides: sides, Ops: ops, Payload: payload, Keys: f.keys, Concurrency: f.concurrency, Conns: f.connections, Redis: s.redis,
		}))
	}
	return all
}
