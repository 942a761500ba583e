package storage

import (
	"sync/atomic"

	"github.com/felixd/felixd/wire/id"
)

// ReaderOptions are the rules for all readers of a node.
type ReaderOptions struct {
	// Policy is what happens to a batch that arrives at a full window.
	Policy Policy
	// WindowBytes is how far a reader may fall behind, in bytes as Batch.Size counts them. Its capacity in batches is its
	// own, see CursorOptions.
	WindowBytes int64
	// Budget bounds what is kept for readers after it has left the tail of its log: bytes of the whole node, each counted
	// once however many readers it is kept for.
	Budget *Budget
	// Dropped, when not nil, is told of each hole as it grows, with the lock of the log held: it must not block and must not
	// call back.
	Dropped func(Drop)
}

// Drop is one batch that one reader will not get.
type Drop struct {
	Owner    any // of the cursor
	From, To id.Offset
	Records  uint64 // that clients would have seen
	Why      DropReason
}

// DropReason says why a reader does not get a batch.
type DropReason uint8

const (
	// WindowFull: it arrived when the reader had no room for it.
	WindowFull DropReason = iota
	// BudgetUsed: it was queued, and left the ring of its log while the readers' budget was used up.
	BudgetUsed
	// NotPassedOn: the reader took it and could not pass it on.
	NotPassedOn
)

// Readers is what the readers of a node share: rules, memory, and counts for its operator. It is safe for concurrent use.
type Readers struct {
	opts     ReaderOptions
	numbered atomic.Uint64
	lagging  atomic.Int64
	dropped  atomic.Uint64
}

// NewReaders returns the shared part of a node's readers. WindowBytes must be positive and Budget not nil.
func NewReaders(o ReaderOptions) *Readers {
	if o.WindowBytes <= 0 || o.Budget == nil {
		panic("storage: readers need a window and a budget")
	}
	return &Readers{opts: o}
}

// Told returns readers with the same windows and memory that are told of each hole by their log, so that nothing is lost silently: the policy
// is DropNew, nobody else hears of it, and what they miss is counted apart.
func (r *Readers) Told() *Readers {
	return NewReaders(ReaderOptions{Policy: DropNew, WindowBytes: r.opts.WindowBytes, Budget: r.opts.Budget})
}

// Number gives a new reader its number.
func (r *Readers) Number() uint64 { return r.numbered.Add(1) }

// Policy is what happens to a batch that arrives at a full window.
func (r *Readers) Policy() Policy { return r.opts.Policy }

// Budget is the memory for what has left the tails; its Used may exceed its Limit by what readers have in hand and, under
// Block, by what publishers wait for.
func (r *Readers) Budget() *Budget { return r.opts.Budget }

// Lagging is how many readers have batches that they have not finished with.
func (r *Readers) Lagging() int64 { return r.lagging.Load() }

// Dropped counts the records that readers did not get, since the node began. A record that two readers missed counts twice.
func (r *Readers) Dropped() uint64 { return r.dropped.Load() }

// Lose counts a loss, and tells of it.
func (r *Readers) Lose(d Drop) { r.drop(d) }

func (r *Readers) drop(d Drop) {
	r.dropped.Add(d.Records)
	if r.opts.Dropped != nil {
		r.opts.Dropped(d)
	}
}
