package storage

import "sync/atomic"

// Budget is a number of bytes that many owners share. It never blocks: an owner that is told no frees something of
// its own. Safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of limit bytes; limit must be positive.
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		panic("storage: a budget needs a positive limit")
	}
	return &Budget{limit: limit}
}

// Take books n bytes and reports whether the budget still held after it. The bytes are booked in either case; an owner
// that hears false frees what it can and gives it back.
func (b *Budget) Take(n int64) bool { return b.used.Add(n) <= b.limit }

// Give returns n bytes.
func (b *Budget) Give(n int64) {
	if b.used.Add(-n) < 0 {
		panic("storage: more was returned to a budget than was taken")
	}
}

// Over reports whether more than the limit is booked.
func (b *Budget) Over() bool { return b.used.Load() > b.limit }

// Used is what is booked now, in bytes.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit is the size of the budget, in bytes.
func (b *Budget) Limit() int64 { return b.limit }
