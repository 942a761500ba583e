package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/felixd/felixd/client"
)

// condition is what a write asks of its key: that it has no value, or a value of a version.
type condition struct {
	absent  bool
	version uint64
}

// conditionOf reads --if-absent, where there is one, and --if-version; nil when neither was given.
func conditionOf(set *pflag.FlagSet) (*condition, error) {
	version, err := given(set, "if-version", set.GetUint64)
	if err != nil {
		return nil, err
	}
	absent := false
	if set.Lookup("if-absent") != nil {
		if absent, err = set.GetBool("if-absent"); err != nil {
			return nil, err
		}
	}
	switch {
	case absent && version != nil:
		return nil, usagef("--if-absent and --if-version are given; use one of them")
	case absent:
		return &condition{absent: true}, nil
	case version != nil:
		return &condition{version: *version}, nil
	}
	return nil, nil
}

func (c *condition) client() client.Condition {
	if c.absent {
		return client.IfAbsent()
	}
	return client.IfVersion(c.version)
}

// conditionError says that a condition did not hold, so that nothing was done.
type conditionError struct {
	namespace, cache, key string
	wanted                *condition
	found                 client.ConditionResult
}

// Error says what the key has.
func (e *conditionError) Error() string {
	has := "has no value"
	if e.found.HasVersion {
		has = fmt.Sprintf("has version %d", e.found.Version)
	}
	text := fmt.Sprintf("key %q in cache %s/%s %s", e.key, e.namespace, e.cache, has)
	if !e.wanted.absent {
		text += fmt.Sprintf(", not version %d", e.wanted.version)
	}
	return text + ": nothing was done"
}

// cacheGetVersion prints a value and its version.
func (a *app) cacheGetVersion(ctx context.Context, b broker, cache, key string) error {
	stop := a.progress(func() string { return "reading from cache " + cache })
	entry, err := b.CacheGetVersion(ctx, b.namespace, cache, key)
	stop()
	switch {
	case err != nil:
		return err
	case !entry.Found:
		return absent(b.namespace, cache, key)
	}
	out := cacheValue{Namespace: b.namespace, Cache: cache, Key: key, Version: &entry.Version}
	out.Value, out.ValueBase64 = blob(entry.Value).members()
	return a.result(out, "%s\nversion %d", escape(entry.Value), entry.Version)
}
