package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// watchFlags are the flags of cache watch.
type watchFlags struct {
	key, prefix string
	shard       string
	from        []string
	retained    bool
	count       int
}

func (a *app) cacheWatchCommand() *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch CACHE",
		Short: "Print changes of a cache as they happen",
		Long: `Print each change of a log-backed cache: of one key, of all keys with a prefix, or of all keys, until --count is reached or
the command is interrupted, which is a success. Order holds within a shard. A lost connection, a lag and a shard that
moves are told, and the watch goes on from the first change that was not printed: every change is printed once.

--from goes on where another watch ended: an offset for a single shard, or SHARD=OFFSET for each. Where that history is
gone, as after a compaction, a snapshot comes instead: the current values. Keys of that shard that are not among them
have none. --retained begins with the current values.

With --json, and elsewhere than on a terminal, each line is an object. Its "event" is put, delete (also of a value that
ended by its time to live), current (a value of a snapshot), snapshot, snapshot_end, shard_lost, shard_moved,
shard_recovered or shard_ended.`,
		Example: `  felixctl cache watch users --prefix user- --retained
  felixctl cache watch users --key alice --count 1
  felixctl cache watch users --from 0=120 --from 1=98 --json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeNames("caches"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if f.count < 0 {
				return usagef("--count is %d; use a positive number, or 0 for no end", f.count)
			}
			o, from, err := f.options(cmd.Flags())
			if err != nil {
				return err
			}
			return a.withBroker(cmd.Context(), func(b broker) error { return a.watch(cmd.Context(), b, args[0], o, from, f.count) })
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "watch this key")
	flags.StringVar(&f.prefix, "prefix", "", "watch keys that begin so; default all")
	flags.StringVar(&f.shard, "shard", "all", "one shard by its number, or all")
	flags.StringSliceVar(&f.from, "from", nil, "first change wanted: OFFSET of a single shard, or SHARD=OFFSET, which may be given several times;\ndefault what changes from now on")
	flags.BoolVar(&f.retained, "retained", false, "begin with the current values")
	flags.IntVar(&f.count, "count", 0, "end after so many changes, current values included; 0 for no end")
	fixedValues(cmd, "shard", "all")
	return cmd
}

// watchStart is where a watch begins: at an offset of its only shard, whichever that is, or at one of each named shard.
type watchStart struct {
	only   *id.Offset
	shards map[uint32]id.Offset
}

// options judges the flags.
func (f *watchFlags) options(set *pflag.FlagSet) (o client.WatchOptions, from watchStart, err error) {
	o = client.WatchOptions{Prefix: f.prefix, Retained: f.retained}
	shard, all, err := parseShard(f.shard)
	if err != nil {
		return o, from, err
	}
	if from, err = parseWatchStart(f.from); err != nil {
		return o, from, err
	}
	switch {
	case set.Changed("key") && (set.Changed("prefix") || !all):
		return o, from, usagef("--key is given with --prefix or --shard; a key has a shard of its own")
	case from.only != nil && f.retained:
		return o, from, usagef("--from and --retained are given; current values are of no use to one that goes on")
	}
	if set.Changed("key") {
		o.Key = &f.key
	}
	if !all {
		o.Shard = &shard
	}
	return o, from, nil
}

func parseWatchStart(texts []string) (watchStart, error) {
	s := watchStart{shards: make(map[uint32]id.Offset)}
	for _, text := range texts {
		number, offset, pair := strings.Cut(text, "=")
		if !pair {
			number, offset = "0", text
		}
		shard, err := strconv.ParseUint(number, 10, 32)
		at, wrong := strconv.ParseUint(offset, 10, 64)
		if err != nil || wrong != nil {
			return s, usagef("--from is %q; use an offset, or SHARD=OFFSET", text)
		}
		_, twice := s.shards[uint32(shard)]
		switch {
		case twice:
			return s, usagef("--from names shard %d twice", shard)
		case !pair && len(texts) > 1:
			return s, usagef("--from is %q besides others; use SHARD=OFFSET", text)
		case !pair:
			s.only = new(id.Offset(at))
			return s, nil
		}
		s.shards[uint32(shard)] = id.Offset(at)
	}
	return s, nil
}

// in finds the shards.
func (s watchStart) in(ctx context.Context, b broker, cache string, o *client.WatchOptions) (map[uint32]id.Offset, error) {
	if s.only == nil {
		return s.shards, nil
	}
	if o.Shard != nil {
		return map[uint32]id.Offset{*o.Shard: *s.only}, nil
	}
	count, err := b.CacheShards(ctx, b.namespace, cache)
	switch {
	case err != nil:
		return nil, err
	case o.Key != nil && count > 0:
		return map[uint32]id.Offset{wire.RoutingModulo.Shard([]byte(*o.Key), true, count): *s.only}, nil // as all caches route
	case count > 1:
		return nil, usagef("cache %s/%s has %d shards, each with offsets of its own; use --from SHARD=OFFSET, or name one --shard", b.namespace, cache, count)
	}
	return map[uint32]id.Offset{0: *s.only}, nil
}

// watch prints changes until there are enough, or somebody interrupts.
func (a *app) watch(ctx context.Context, b broker, cache string, o client.WatchOptions, from watchStart, count int) (err error) {
	stop := a.progress(func() string { return "asking to watch " + b.namespace + "/" + cache })
	if o.From, err = from.in(ctx, b, cache, &o); err != nil {
		stop()
		return interruptionIsFine(ctx, err)
	}
	w, err := b.WatchCache(ctx, b.namespace, cache, o)
	stop()
	if err != nil {
		return interruptionIsFine(ctx, err)
	}
	defer w.Close()
	a.note("watching %s/%s (%s)", b.namespace, cache, plural(len(w.Shards()), "shard"))
	for n := 0; count == 0 || n < count; {
		item, err := w.NextItem(ctx)
		switch {
		case err == io.EOF:
			return errors.New("the broker ended the watch")
		case err != nil:
			a.notePositions(w)
			return interruptionIsFine(ctx, err)
		}
		if err := a.printItem(b.namespace, cache, item); err != nil {
			return err
		}
		if item.Kind == client.ItemEvent {
			n++
		}
		if item.Kind == client.ItemShardEnded && item.Err != nil {
			return &client.ShardError{Shard: item.Shard, Err: item.Err}
		}
	}
	a.notePositions(w)
	return nil
}

// notePositions tells people how to go on.
func (a *app) notePositions(w *client.CacheWatch) {
	positions := w.Positions()
	var parts []string
	for _, shard := range w.Shards() {
		if offset, known := positions[shard]; known {
			parts = append(parts, fmt.Sprintf("%d=%d", shard, offset))
		}
	}
	if len(parts) > 0 {
		a.note("to go on from here: --from %s", strings.Join(parts, ","))
	}
}
