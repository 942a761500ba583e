package reading

import "github.com/felixd/felixd/wire/id"

// Live is what a key has.
type Live struct {
	// Value is the value unless Cold is set; then the record at Offset has it. Whose it is says the method that returned it.
	Value []byte
	Cold  bool
	// ColdBytes is how long a Cold value is.
	ColdBytes int
	// Version is the offset of the put that wrote the value; Offset is where a record with it stands now.
	Version, Offset id.Offset
	// ExpiresAtMillis is when the entry ends, in milliseconds since the Unix epoch; 0 = never.
	ExpiresAtMillis uint64
}

func (l *Live) ended(nowMillis uint64) bool {
	return l.ExpiresAtMillis != 0 && l.ExpiresAtMillis <= nowMillis
}

// Table is what was folded: *MemoryCache, *KeyedCache and *Counters.
type Table interface {
	// Find returns what a key has that has not ended at now; with a clock of 0 also what has ended. The value is shared and not to be
	// changed, or the caller's.
	Find(key []byte, nowMillis uint64) (Live, bool)
	// Stat is Find without the value.
	Stat(key []byte, nowMillis uint64) (Live, bool)
}

// CacheView is where a cache is read: *MemoryCache and *KeyedCache. Get returns what a key has that has not ended at now. The value is
// shared and must not be changed (*MemoryCache), or the caller's (*KeyedCache); if it is Cold, the record at Offset has it, and if that is
// not in the log any more, a compaction was faster: Get again. It is safe for use by many goroutines.
type CacheView interface {
	Get(key string, nowMillis uint64) (Live, bool)
}
