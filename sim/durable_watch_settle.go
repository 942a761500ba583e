package main

import (
	"fmt"
	"strings"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// watchValues are the current values that an event stream began with.
type watchValues struct {
	frontier id.Offset
	count    wire.Opt[uint64]
	of       *dwatch
	got      map[string]id.Offset // versions; never iterated
	whole    bool                 // all of them came
}

// watchesBehind lists the watches that have not been told of everything that is known.
func (r *drun) watchesBehind() string {
	var out []string
	for _, x := range r.watches {
		if missing := x.missing(); missing != "" || !x.live {
			out = append(out, fmt.Sprintf("%s (live: %v) %s", x, x.live, missing))
		}
	}
	return strings.Join(out, ", ")
}

// missing is a change that a watch was not told of and should have been, "" if there is none.
func (x *dwatch) missing() string {
	for _, k := range x.shard.keys {
		if !x.has(k.name) {
			continue
		}
		for i := len(k.changes) - 1; i >= 0 && k.changes[i].at >= x.since; i-- {
			if c := k.changes[i]; !x.got[c.at] {
				return fmt.Sprintf("was not told at %d of %s", c.at, c)
			}
		}
	}
	return ""
}

// settleCaches judges what is known of the caches, now that every watch has come to the end.
func (r *drun) settleCaches() error {
	if r.caches == nil {
		return nil
	}
	for _, x := range r.watches {
		if err := x.settle(); err != nil {
			return fmt.Errorf("%s: %w", x, err)
		}
	}
	for _, v := range r.snapshots {
		if err := v.settle(); err != nil {
			return fmt.Errorf("%s: %w", v.of, err)
		}
	}
	return nil
}

// settle judges what a watch has missed: nothing of what was acknowledged since it began. One that is of all keys knows their history.
func (x *dwatch) settle() error {
	if missing := x.missing(); missing != "" {
		return fmt.Errorf("%s", missing)
	}
	for _, k := range x.shard.keys {
		if !x.has(k.name) {
			continue
		}
		for _, w := range k.writes {
			if w.answered && w.value != 0 && w.sent > x.sinceAt && !(w.at.Set && x.got[w.at.V]) {
				return fmt.Errorf("value %x of %s was acknowledged, it lies at %v, and the watch was told nothing of it since offset %d, step %d", w.value, k, w.at, x.since, x.sinceAt)
			}
		}
		if err := k.settle(x.since); err != nil {
			return err
		}
	}
	return nil
}

// settle judges the current values that a watch began with: those that the keys had, and all of them.
func (v *watchValues) settle() error {
	if !v.whole {
		return nil
	}
	for _, k := range v.of.shard.keys {
		if !v.of.has(k.name) {
			continue
		}
		version, there := v.got[k.name]
		var last *cacheChange // below the frontier
		later := false
		for _, c := range k.changes {
			if c.at >= v.frontier {
				later = true
				break
			}
			last = c
		}
		switch {
		case last == nil:
		case there && version < last.at:
			return fmt.Errorf("begins with version %d of %s, and before %d there is %s at %d", version, k, v.frontier, last, last.at)
		case !there && last.write != nil && !last.write.ttl.Set && !later && v.of.shard.history.since <= last.at:
			return fmt.Errorf("begins without %s, and before %d there is %s at %d", k, v.frontier, last, last.at)
		}
	}
	return nil
}
