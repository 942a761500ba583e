package route

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Retention bounds how much of a durable log is kept, per shard. A zero field is no bound of the resource's own: the node's
// applies there.
type Retention struct {
	Bytes int64
	Age   time.Duration
}

// Assignment is what this node is to host of one resource: all of its shards, at one generation. It comes from the
// control plane and is never changed once made. Two equal values ask for the same.
type Assignment struct {
	Name        Name
	Incarnation id.Incarnation
	Generation  id.Generation
	Shards      uint32
	Routing     wire.Routing
	Durable     bool

	// Logs is the identity of every shard's log, 16 bytes each in the order of the shards; all zeros where the control
	// plane knows of none yet, and "" when it knows of none at all. Read it with Log.
	Logs string
	// Retention and Compress hold for durable streams. They change while shards run.
	Retention Retention
	Compress  bool
}

// Log is the identity of the log that shard n is to open; zero where none was ever reported, so that it may be made.
func (a Assignment) Log(n uint32) (l id.LogID) {
	if end := (uint64(n) + 1) * uint64(len(l)); end <= uint64(len(a.Logs)) {
		copy(l[:], a.Logs[end-uint64(len(l)):end])
	}
	return l
}

// SameHosting reports whether shards that run for a can go on for other: everything is equal but what may change under a
// running shard. Logs may, because a shard knows its own log since it opened it; Retention and Compress may, and whoever
// hosts the shards has to tell them.
func (a Assignment) SameHosting(other Assignment) bool {
	a.Logs, a.Retention, a.Compress = other.Logs, other.Retention, other.Compress
	return a == other
}

// Desired is everything this node is to host, in the order of the names. Version grows with every change.
type Desired struct {
	Version     uint64
	Assignments []Assignment
}
