package disklog

import (
	"sync/atomic"
	"time"
)

// Counters count what a store does, over all its logs. They only grow, except UnsyncedBytes.
type Counters struct {
	Appends          atomic.Uint64 // appends written
	AppendedBytes    atomic.Uint64 // of them, as stored
	Syncs            atomic.Uint64 // syncs of data that succeeded
	SyncFailures     atomic.Uint64 // syncs of anything that failed: each ended a log
	WriteFailures    atomic.Uint64 // appends refused because of a write that failed
	Full             atomic.Uint64 // of them, those for want of space
	Rolls            atomic.Uint64 // segments begun after a full one
	MarkFailures     atomic.Uint64 // durable.mark could not be written; it lags then, which only makes recovery stricter
	IndexFailures    atomic.Uint64 // an index could not be written; it is made anew when needed
	TruncatedBytes   atomic.Uint64 // cut off by recovery
	SnapshotsIgnored atomic.Uint64 // snapshots that could not be used
	ReadsCorrupt     atomic.Uint64 // reads that found damage
	CompressedIn     atomic.Uint64 // bytes of segments that were rewritten
	CompressedOut    atomic.Uint64 // what was left of them
	UnsyncedBytes    atomic.Int64  // written and not known to be durable
	OpenLogs         atomic.Int64  // logs that are open
	AwakeLogs        atomic.Int64  // of them, those with files open for writing

	// Synced, when not nil, hears of each sync of data: how many records it made durable and how long it took. Set it before the first
	// log is opened; it must not block.
	Synced func(records uint64, took time.Duration)
}

func (c *Counters) synced(records uint64, took time.Duration) {
	c.Syncs.Add(1)
	if c.Synced != nil {
		c.Synced(records, took)
	}
}
