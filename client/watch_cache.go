package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/felixd/felixd/wire/id"
)

// WatchOptions say which keys of a cache to watch, and from where. The zero value watches all keys of all shards from now on.
type WatchOptions struct {
	// Key is the one key to watch; nil watches all keys that begin with Prefix, and that of an empty Prefix are all.
	Key    *string
	Prefix string
	// Shard is the one shard to watch keys with a prefix in; nil watches all shards. A key has a shard of its own.
	Shard *uint32
	// From is where to go on, by shard: what CacheWatch.Positions returned, or the offset after that of the last change that
	// was dealt with. A shard that is not in it begins with what changes from now on, or with Retained, with what there is.
	// An offset past the end is a *CursorError. One whose history is gone is not: current values come instead, see
	// ItemSnapshot. A watch of one shard takes its own offset out of several, and refuses others alone.
	From map[uint32]id.Offset
	// Retained begins with the current values, and goes on with each change after those. Not for shards in From.
	Retained bool
	// Resume is what follows a lost event stream: ResumeExact, which is the default, or ResumeNever.
	Resume Resume
}

// CacheChange is one change of a cache, or with Retained the current value of a key.
type CacheChange struct {
	Shard     uint32
	Key       string
	Value     []byte    // belongs to the receiver
	Deleted   bool      // the key has no value any more: it was deleted or has expired
	Offset    id.Offset // of the change in the log of its shard, and the version of the value
	ExpiresAt time.Time // when the value ends by the broker's clock, to the millisecond; zero for never, and with Deleted
	// Retained says that this is no change but the current value of the key: part of a snapshot, see ItemSnapshot. Its offset
	// is that of the write that made it, may have been seen before, and the next one may be lower.
	Retained bool
	// Resnapshot says that changes may be missing before this one and the snapshot that comes instead has begun: this is the
	// first of its values, or the first change after it when it has none. Keys of this shard that are not among its
	// values are gone.
	Resnapshot bool
}

// CacheItem is what a watch has to tell: a change, or news of a shard.
type CacheItem struct {
	Kind   ItemKind
	Shard  uint32
	Change CacheChange // ItemEvent
	Err    error       // ItemShardLost, ItemShardMoved, ItemShardEnded; see there
	Exact  bool        // ItemShardRecovered: nothing is missing. Without it a snapshot follows
	// Count is how many values the snapshot has, with Counted: 0 says for certain that there are none. ItemSnapshot
	Count      uint64
	Counted    bool
	Resnapshot bool // ItemSnapshot: it replaces what was known of the shard, of which changes are missing
}

// WatchCache reads the changes of a key, or of all keys with a prefix, of a log-backed cache. It returns once the broker, or of
// each shard the broker that serves it, has accepted: what changes after that is delivered. Each change is returned once, in
// the order of its shard. Refusals the broker calls temporary are tried again as the options allow, and redirects
// followed. All shards are watched or the call fails, with a *SubscribeAllError that names each shard that could not be
// reached. An unknown cache matches ErrNotFound; one that is kept in memory only, ErrInvalidRequest. ctx bounds the
// opening, not the watch; Close ends it.
//
// A watch has no queue in the client: what is not taken stays in the receive windows (see QueueBlock), and besides that one change
// of each shard is held. Past the windows the broker waits, or ends the event stream of a reader that lags; the watch then goes on after the last
// change returned.
func (c *Client) WatchCache(ctx context.Context, namespace, cache string, o WatchOptions) (*CacheWatch, error) {
	op := o.op(namespace, cache)
	if err := o.check(op, namespace, cache); err != nil {
		return nil, err
	}
	shards, err := c.watchedShards(ctx, namespace, cache, &o)
	if err != nil {
		return nil, err
	}
	if err := o.checkFrom(op, shards); err != nil {
		return nil, err
	}
	sources, err := c.openWatches(ctx, op, namespace, cache, shards, &o)
	if err != nil {
		return nil, err
	}
	return newCacheWatch(c, op, sources)
}

// op is what is tried, in words.
func (o *WatchOptions) op(namespace, cache string) string {
	what := fmt.Sprintf("prefix %q", o.Prefix)
	if o.Key != nil {
		what = fmt.Sprintf("key %q", *o.Key)
	}
	return fmt.Sprintf("watch %s of cache %s/%s", what, namespace, cache)
}

func (o *WatchOptions) check(op, namespace, cache string) error {
	bad := func(argument, problem string) error {
		return &ArgumentError{Op: op, Argument: argument, Problem: problem}
	}
	if err := checkNames(op, namespace, "cache", cache); err != nil {
		return err
	}
	switch {
	case o.Key != nil && o.Prefix != "":
		return bad("Key", "is given besides Prefix; give one of them")
	case o.Key != nil && o.Shard != nil:
		return bad("Shard", "is given besides Key, which has a shard of its own; leave it out")
	case o.Resume != ResumeDefault && o.Resume != ResumeExact && o.Resume != ResumeNever:
		return bad("Resume", "is none of ResumeDefault, ResumeExact, ResumeNever")
	}
	text, argument := o.Prefix, "Prefix"
	if o.Key != nil {
		text, argument = *o.Key, "Key"
	}
	if problem := cacheKeyProblem(text); problem != "" {
		return bad(argument, problem)
	}
	return nil
}

// checkFrom refuses offsets that would be passed over in silence, and with them changes.
func (o *WatchOptions) checkFrom(op string, shards []uint32) error {
	bad := func(problem string) error { return &ArgumentError{Op: op, Argument: "From", Problem: problem} }
	if len(shards) == 1 && len(o.From) > 0 {
		if _, ok := o.From[shards[0]]; !ok {
			return bad(fmt.Sprintf("has no offset for shard %d, which is the one to watch", shards[0]))
		}
		return nil
	}
	for _, shard := range slices.Sorted(maps.Keys(o.From)) {
		if !slices.Contains(shards, shard) {
			return bad(fmt.Sprintf("has an offset for shard %d, but the cache has %d shards", shard, len(shards)))
		}
	}
	return nil
}

// matches reports whether a key is watched.
func (o *WatchOptions) matches(key string) bool {
	if o.Key != nil {
		return key == *o.Key
	}
	return strings.HasPrefix(key, o.Prefix)
}
