// Package reading holds the folds that turn a shard's log into what people ask of it, and decides the writes that depend on them.
//
//   - KeyedCache is the reading of a log-backed cache: key to newest value, with expiry; Counters that of its counters.
//   - MemoryCache is that of an in-memory cache, with eviction.
//   - Ledger and CounterLedger know what is claimed and not folded yet, and judge writes against both.
//   - State is the reading of the commits of a stream: what they say of their entities.
//
// There is no clock and no goroutine in this package: the time comes with each call.
package reading

var (
	_ Table     = (*MemoryCache)(nil)
	_ Table     = (*KeyedCache)(nil)
	_ Table     = (*Counters)(nil)
	_ CacheView = (*MemoryCache)(nil)
	_ CacheView = (*KeyedCache)(nil)
)
