package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) cacheCommand() *cobra.Command {
	return group("cache", "Read and write caches; list, show, create and remove them",
		a.cacheGetCommand(), a.cachePutCommand(), a.cacheRmCommand(), a.cacheWatchCommand(),
		a.lsCommand(caches()), a.infoCommand(caches()), a.cacheCreateCommand())
}

// cacheValue is a value in JSON.
type cacheValue struct {
	Namespace   string  `json:"namespace"`
	Cache       string  `json:"cache"`
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
	Version     *uint64 `json:"version,omitempty"` // with --version
}

func (a *app) cacheGetCommand() *cobra.Command {
	var version bool
	cmd := &cobra.Command{
		Use:   "get CACHE KEY",
		Short: "Print a value",
		Long: `Print a value: escaped on a terminal, byte for byte and without a line feed elsewhere, as an object with --json.
A key that is not there ends with exit code 5.

With --version its version is told too, which is what --if-version of put and rm take: on a line of its own on a
terminal, in an object elsewhere.`,
		Example: `  felixctl cache get users alice
  felixctl cache get users alice --version`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeNames("caches"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			return a.withBroker(cmd.Context(), func(b broker) error {
				if version {
					return a.cacheGetVersion(cmd.Context(), b, args[0], args[1])
				}
				return a.cacheGet(cmd.Context(), b, args[0], args[1])
			})
		}),
	}
	cmd.Flags().BoolVar(&version, "version", false, "tell the version of the value too")
	return cmd
}

func (a *app) cacheGet(ctx context.Context, b broker, cache, key string) error {
	stop := a.progress(func() string { return "reading from cache " + cache })
	value, found, err := b.CacheGet(ctx, b.namespace, cache, key)
	stop()
	switch {
	case err != nil:
		return err
	case !found:
		return absent(b.namespace, cache, key)
	case a.flags.json:
		out := cacheValue{Namespace: b.namespace, Cache: cache, Key: key}
		out.Value, out.ValueBase64 = blob(value).members()
		return writeJSON(a.sys.stdout, out)
	case a.sys.stdoutTerminal:
		_, err = io.WriteString(a.sys.stdout, escape(value)+"\n")
	default:
		_, err = a.sys.stdout.Write(value)
	}
	return err
}

func absent(namespace, cache, key string) error {
	return &absentError{fmt.Sprintf("key %q in cache %s/%s", key, namespace, cache)}
}

func (a *app) cachePutCommand() *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "put CACHE KEY [VALUE|-]",
		Short: "Write a value",
		Long: `Write a value from the command line, or all of standard input when VALUE is - or is left out and standard input is no terminal.

With --if-absent or --if-version it is written only if that holds; otherwise nothing is, which is exit code 4, and the
error says which version the key has.`,
		Example: `  felixctl cache put users alice 42 --ttl 30s
  felixctl cache put locks nightly "$(hostname)" --if-absent --ttl 5m
  felixctl cache put users alice 43 --if-version 17`,
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: a.completeNames("caches"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			if ttl < 0 {
				return usagef("--ttl is %v; use a positive one, or 0 for none", ttl)
			}
			only, err := conditionOf(cmd.Flags())
			if err != nil {
				return err
			}
			value, err := a.value(args[2:])
			if err != nil {
				return err
			}
			return a.withBroker(cmd.Context(), func(b broker) error {
				return a.cachePut(cmd.Context(), b, args[0], args[1], value, ttl, only)
			})
		}),
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the value lives, such as 30s or 5m; 0 for ever")
	cmd.Flags().Bool("if-absent", false, "only if the key has no value")
	cmd.Flags().Uint64("if-version", 0, "only if the value has this version, see get --version")
	return cmd
}

// cachePut writes a value; only, if not nil, is what has to hold.
func (a *app) cachePut(ctx context.Context, b broker, cache, key string, value []byte, ttl time.Duration, only *condition) error {
	stop := a.progress(func() string { return "writing to cache " + cache })
	defer stop()
	done := map[string]any{"namespace": b.namespace, "cache": cache, "key": key, "bytes": len(value)}
	if only == nil {
		if err := b.CachePut(ctx, b.namespace, cache, key, value, ttl); err != nil {
			return err
		}
		stop()
		return a.result(done, "wrote %s to key %q in cache %s/%s", plural(len(value), "byte"), key, b.namespace, cache)
	}
	result, err := b.CachePutIf(ctx, b.namespace, cache, key, value, only.client(), ttl)
	stop()
	switch {
	case err != nil:
		return err
	case !result.Applied:
		return &conditionError{namespace: b.namespace, cache: cache, key: key, wanted: only, found: result}
	}
	done["version"] = result.Version
	return a.result(done, "wrote %s to key %q in cache %s/%s, version %d", plural(len(value), "byte"), key, b.namespace, cache, result.Version)
}

// value takes a value from the command line or from standard input.
func (a *app) value(args []string) ([]byte, error) {
	switch {
	case len(args) == 1 && args[0] != "-":
		return []byte(args[0]), nil
	case len(args) == 0 && a.sys.stdinTerminal:
		return nil, usagef("no value: give one, or - to type it")
	}
	var value []byte
	err := read(a.sys.stdin, "standard input", false, func(all []byte) bool {
		value = all
		return true
	})
	return value, err
}

func (a *app) cacheRmCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm CACHE [KEY]",
		Short: "Remove a key, or a whole cache",
		Long: `With a KEY: remove it, which needs no confirmation; exit code 5 when it was not there. With --if-version it is removed only
if its value has that version; another version is exit code 4.
Without one: remove the cache itself, after asking.`,
		Example: `  felixctl cache rm users alice
  felixctl cache rm users alice --if-version 18
  felixctl cache rm users --yes`,
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.completeNames("caches"),
		RunE: does(func(cmd *cobra.Command, args []string) error {
			only, err := conditionOf(cmd.Flags())
			switch {
			case err != nil:
				return err
			case len(args) == 1 && only != nil:
				return usagef("--if-version is for a KEY: name one")
			case len(args) == 1:
				return a.remove(cmd, caches(), args[0], yes)
			}
			return a.withBroker(cmd.Context(), func(b broker) error { return a.cacheRemoveKey(cmd.Context(), b, args[0], args[1], only) })
		}),
	}
	cmd.Flags().Uint64("if-version", 0, "only if the value has this version, see get --version")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before removing a cache")
	return cmd
}

// cacheRemoveKey removes a key; only, if not nil, is what has to hold.
func (a *app) cacheRemoveKey(ctx context.Context, b broker, cache, key string, only *condition) error {
	stop := a.progress(func() string { return "removing from cache " + cache })
	found, err := removeKey(ctx, b, cache, key, only)
	stop()
	switch {
	case err != nil:
		return err
	case !found:
		return absent(b.namespace, cache, key)
	}
	return a.result(map[string]string{"namespace": b.namespace, "cache": cache, "key": key, "status": "removed"},
		"removed key %q from cache %s/%s", key, b.namespace, cache)
}

func removeKey(ctx context.Context, b broker, cache, key string, only *condition) (found bool, err error) {
	if only == nil {
		_, found, err = b.CacheDelete(ctx, b.namespace, cache, key)
		return found, err
	}
	result, err := b.CacheDeleteIf(ctx, b.namespace, cache, key, only.version)
	if err == nil && !result.Applied && result.HasVersion {
		err = &conditionError{namespace: b.namespace, cache: cache, key: key, wanted: only, found: result}
	}
	return result.Applied, err
}
