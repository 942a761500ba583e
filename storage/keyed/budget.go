package keyed

import "sync/atomic"

// Budget is the memory that the indexes of a node share. It is safe for use by many goroutines.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of limit bytes, which is positive.
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		panic("keyed: a budget needs a positive limit")
	}
	return &Budget{limit: limit}
}

// Used is how many bytes are booked. It is over Limit when logs that were opened hold more, and by what was admitted together before any of
// it was folded.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit is the size of the budget in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// admit reports whether n more bytes fit. Nothing is booked.
func (b *Budget) admit(n int64) error {
	if used := b.used.Load(); n > 0 && used+n > b.limit {
		return &FullError{Needed: n, Used: used, Limit: b.limit}
	}
	return nil
}
