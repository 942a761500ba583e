package wire

import "github.com/felixd/felixd/wire/id"

// Watching a cache, for clients with FeatureCacheWatch. The events come on an event stream, as JSON.

// CacheWatch asks for the changes of one key or of all keys with a prefix. Exactly one of Key and Prefix is to be set;
// that is left to whoever serves the watch.
type CacheWatch struct {
	TenantID, Namespace, Cache string
	Key                        Opt[string]    // at most MaxCacheKeyBytes
	Prefix                     Opt[string]    // at most MaxCacheKeyBytes; empty: all keys of the shard
	Shard                      Opt[uint32]    // of a prefix
	FromOffset                 Opt[id.Offset] // first change not seen yet; unset: from now on
	Retained                   bool           // current values first, needs FeatureCacheWatchRetained
	SubscriptionID             Opt[uint64]    // of old clients; the broker chooses the id
}

// CacheWatchStarted accepts a CacheWatch.
type CacheWatchStarted struct {
	SubscriptionID uint64
	ResumeOffset   id.Offset   // live changes come from here on
	Resnapshot     bool        // the history asked for is gone: current values come first instead
	RetainedCount  Opt[uint64] // how many current values come first; set exactly when Retained was asked for
}

// CacheEvent is one change.
type CacheEvent struct {
	Key             string      // at most MaxCacheKeyBytes
	Value           Opt[[]byte] // unset: the key was deleted
	Offset          id.Offset   // in the log of the cache's shard; others in between belong to other keys
	ExpiresAtMillis uint64      // milliseconds since the Unix epoch, 0: never
}

// CacheWatchLagged is the last frame of a watch that fell behind.
type CacheWatchLagged struct{ ResumeFrom id.Offset }

// MessageType returns "cache_watch".
func (*CacheWatch) MessageType() string { return "cache_watch" }

func (m *CacheWatch) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.optStr("key", MaxCacheKeyBytes, &m.Key)
	f.optStr("prefix", MaxCacheKeyBytes, &m.Prefix)
	optUint(f, "shard", &m.Shard)
	optUint(f, "from_offset", &m.FromOffset)
	f.flag("retained", &m.Retained)
	optUint(f, "subscription_id", &m.SubscriptionID)
}

// MessageType returns "cache_watch_started".
func (*CacheWatchStarted) MessageType() string { return "cache_watch_started" }

func (m *CacheWatchStarted) fields(f *fields) {
	uintField(f, "subscription_id", &m.SubscriptionID)
	uintField(f, "resume_offset", &m.ResumeOffset)
	f.defBool("resnapshot", &m.Resnapshot)
	optUint(f, "retained_count", &m.RetainedCount)
}

// MessageType returns "cache_event".
func (*CacheEvent) MessageType() string { return "cache_event" }

func (m *CacheEvent) fields(f *fields) {
	f.str("key", MaxCacheKeyBytes, &m.Key)
	f.optBytes("value", &m.Value)
	uintField(f, "offset", &m.Offset)
	defUint(f, "expires_at_millis", &m.ExpiresAtMillis)
}

// MessageType returns "cache_watch_lagged".
func (*CacheWatchLagged) MessageType() string { return "cache_watch_lagged" }

func (m *CacheWatchLagged) fields(f *fields) { uintField(f, "resume_from", &m.ResumeFrom) }
