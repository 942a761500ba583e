package shardactor

import (
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/wire"
)

// CommitBody returns the body of a commit's batch behind headroom bytes of room: what State reads and, at its beginning, what subscribers
// see. Nothing of m is kept.
func CommitBody(headroom int, m *wire.Commit) []byte {
	changes := make([]reading.Change, len(m.Changes))
	for i, c := range m.Changes {
		changes[i] = reading.Change{Delete: c.Delete, Key: []byte(c.Key), Value: c.Value}
	}
	buf := make([]byte, headroom, headroom+reading.CommitSize(m.Event, m.EntityKey, changes))
	return reading.AppendCommit(buf, m.Event, m.EntityKey, changes)
}
