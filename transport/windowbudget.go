package transport

import (
	"context"
	"sync"

	"github.com/quic-go/quic-go"
)

// WindowBudget bounds what the grown windows of all connections of a node may hold together. Each connection starts with
// its initial window, which MaxConnections bounds; growth beyond it is taken from the budget and given back when the
// connection ends. A connection that gets nothing keeps the window it has and goes on, more slowly. Safe for concurrent use.
type WindowBudget struct {
	total uint64

	mu   sync.Mutex
	used uint64
}

// NewWindowBudget makes a budget of so many bytes. Pass its Allow as ServerOptions.AllowWindow.
func NewWindowBudget(total uint64) *WindowBudget { return &WindowBudget{total: total} }

// Allow takes delta bytes for conn, or reports false when they are not left.
func (b *WindowBudget) Allow(conn *quic.Conn, delta uint64) bool {
	if !b.take(delta) {
		return false
	}
	context.AfterFunc(conn.Context(), func() { b.give(delta) })
	return true
}

// Used is how many bytes of the budget are taken; Total is its size.
func (b *WindowBudget) Used() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Total is the size of the budget in bytes.
func (b *WindowBudget) Total() uint64 { return b.total }

func (b *WindowBudget) take(delta uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if delta > b.total-b.used { // used never exceeds total
		return false
	}
	b.used += delta
	return true
}

func (b *WindowBudget) give(delta uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= delta
}
