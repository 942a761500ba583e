package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	"github.com/felixd/felixd/controlplane/model"
)

const (
	// ResourcesMax bounds streams and caches together in a memory store. Each costs at most about 1.2 KiB (three names
	// of 128 bytes and a display name of 512), 120 MiB in all, and every broker holds the same in its routing table.
	ResourcesMax = 100_000
	// ScopesMax bounds tenants and namespaces together in a memory store; at most about 0.8 KiB each, 40 MiB in all.
	ScopesMax = 50_000
)

// MemoryOptions configures a Memory store. The zero value is a usable store for tests.
type MemoryOptions struct {
	Capabilities Capabilities
	// Epoch is the identity of this store's sequence, from NewEpoch. It may be empty only where no reader outlives the
	// store: a reader that does would not notice that a restart began a new history.
	Epoch string
	// ResourcesMax and ScopesMax lower or raise the bounds of the same name; zero means the constants.
	ResourcesMax int
	ScopesMax    int
}

// Memory is a Store in the memory of this process; a restart loses everything. One lock covers all families, so that
// every operation, cascades included, is one step.
type Memory struct {
	options MemoryOptions

	mu         sync.Mutex
	tenants    table[model.Tenant]
	namespaces table[model.Namespace]
	streams    table[model.Stream]
	caches     table[model.Cache]
	history    history
	changed    chan struct{} // closed, and replaced, by the next write
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(o MemoryOptions) *Memory {
	if o.ResourcesMax == 0 {
		o.ResourcesMax = ResourcesMax
	}
	if o.ScopesMax == 0 {
		o.ScopesMax = ScopesMax
	}
	return &Memory{options: o, changed: make(chan struct{})}
}

// NewEpoch draws an epoch, 32 hex digits, from source; nil means the system's source of random bytes.
func NewEpoch(source io.Reader) (string, error) {
	if source == nil {
		source = rand.Reader
	}
	var b [16]byte
	if _, err := io.ReadFull(source, b[:]); err != nil {
		return "", fmt.Errorf("draw epoch: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// enter takes the lock for one operation unless ctx has ended.
func (m *Memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	return nil
}

// note numbers a write and wakes everybody who waits for one. The lock is held.
func (m *Memory) note(op Op, r model.Record) {
	m.history.add(op, r)
	close(m.changed)
	m.changed = make(chan struct{})
}

// Snapshot implements Feed.
func (m *Memory) Snapshot(ctx context.Context, kind model.Kind) (Snapshot, error) {
	if err := m.enter(ctx); err != nil {
		return Snapshot{}, fmt.Errorf("snapshot of %s: %w", kind, err)
	}
	defer m.mu.Unlock()
	s := Snapshot{Seq: m.history.last, Epoch: m.options.Epoch}
	switch kind {
	case model.KindTenants:
		s.Items = asRecords(m.tenants.rows)
	case model.KindNamespaces:
		s.Items = asRecords(m.namespaces.rows)
	case model.KindStreams:
		s.Items = asRecords(m.streams.rows)
	case model.KindCaches:
		s.Items = asRecords(m.caches.rows)
	default:
		return Snapshot{}, unknownKind("snapshot", kind)
	}
	return s, nil
}

// Changes implements Feed.
func (m *Memory) Changes(ctx context.Context, kind model.Kind, since uint64, limit int) (ChangePage, error) {
	mustBePositive(limit)
	if !known(kind) {
		return ChangePage{}, unknownKind("changes", kind)
	}
	if err := m.enter(ctx); err != nil {
		return ChangePage{}, fmt.Errorf("changes of %s: %w", kind, err)
	}
	defer m.mu.Unlock()
	items, next, err := m.history.list(kind, since, limit)
	if err != nil {
		return ChangePage{}, fmt.Errorf("changes of %s: %w", kind, err)
	}
	return ChangePage{Items: items, Seq: next, Epoch: m.options.Epoch}, nil
}

// WaitChanges implements Feed. A waiter costs the store nothing: all of them wait on one channel.
func (m *Memory) WaitChanges(ctx context.Context, since uint64) (uint64, error) {
	for {
		if err := m.enter(ctx); err != nil {
			return 0, fmt.Errorf("wait for changes: %w", err)
		}
		last, changed := m.history.last, m.changed
		m.mu.Unlock()
		if since > last {
			return 0, fmt.Errorf("wait for changes: %w", &PositionError{Since: since, Last: last})
		}
		if last > since {
			return last, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for changes: %w", ctx.Err())
		}
	}
}

func asRecords[R model.Record](rows []R) []model.Record {
	out := make([]model.Record, len(rows))
	for i, r := range rows {
		out[i] = r
	}
	return out
}

func known(kind model.Kind) bool {
	for _, k := range model.Kinds() {
		if k == kind {
			return true
		}
	}
	return false
}

func unknownKind(operation string, kind model.Kind) error {
	return fmt.Errorf("%s: %w", operation, &model.FieldError{Field: "kind", Problem: fmt.Sprintf("%.64q is not known", string(kind)),
		Advice: "use tenants, namespaces, streams or caches"})
}

// mustBePositive panics on a page size no caller may pass: the API checks limits before they get here.
func mustBePositive(limit int) {
	if limit <= 0 {
		panic(fmt.Sprintf("store: limit is %d, must be positive", limit))
	}
}
