package reading

import (
	"fmt"
	"sync/atomic"
)

// StateEntryOverhead is what one key of a State costs beside its entity, key and value, in bytes: its place in the table and in the order
// of offsets.
const StateEntryOverhead = 128

// StateBudget is the memory that the states of a node's streams share. A commit that would go over it is refused; no key that a log
// holds is ever given up for another.
type StateBudget struct {
	limit int64
	used  atomic.Int64
}

// NewStateBudget returns a budget of limit bytes.
func NewStateBudget(limit int64) *StateBudget {
	if limit <= 0 {
		panic("reading: a state budget needs a positive limit")
	}
	return &StateBudget{limit: limit}
}

// Used is how many bytes are taken; it is over Limit when a log that was opened holds more, and by what commits that were on their way
// together added.
func (b *StateBudget) Used() int64 { return b.used.Load() }

// Limit is the size of the budget in bytes.
func (b *StateBudget) Limit() int64 { return b.limit }

// StateFullError says that a commit needs memory that the node does not have for state. Deleting keys makes room; so does a larger
// budget.
type StateFullError struct{ Needed, Used, Limit int64 }

func (e *StateFullError) Error() string {
	return fmt.Sprintf("commit: its changes need %d bytes of the node's memory for state, and %d of %d are in use; delete keys or raise the budget", e.Needed, e.Used, e.Limit)
}
