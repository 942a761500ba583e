package disklog

import (
	"time"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// place is what does not change about a log: where it is and whose.
type place struct {
	shard    string // as errors call it
	dir      string
	log      id.LogID
	salt     segment.Salt
	nameHash uint64
	compress bool
	fsync    FsyncMode
	once     bool // see Spec.GivenOnce
}

// segmentMeta is what a log keeps in memory of each of its segments.
type segmentMeta struct {
	id       uint64
	base     id.Offset
	end      id.Offset // after its last record
	bytes    int64     // up to the end of its batches
	least    uint64    // append time of its oldest and newest record, in microseconds; 0 if it has none
	greatest uint64
	batches  uint32
	sum      uint32 // of the file up to bytes, if summed
	summed   bool
	sealed   bool
	packed   bool // CompressSealed is done with it
}

// fileBytes is the size of the segment's file.
func (m *segmentMeta) fileBytes() int64 {
	if m.sealed {
		return m.bytes + segment.FooterSize
	}
	return m.bytes
}

// RecoveryInfo says what opening a log found and did.
type RecoveryInfo struct {
	TruncatedBytes int64  // cut off the end: an append that was under way
	Repaired       string // what was done about it; empty if nothing
	Duration       time.Duration
	Segments       int
	Created        bool // the log is new
}
