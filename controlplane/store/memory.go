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

	// Start is what the store begins with; its Epoch, if it has one, wins over the one above. Readers that followed the
	// store it came from go on from the Seq they know.
	Start Catalog
	// Save, if there is one, is given the whole catalog as it is after a write, before the write is answered and before
	// anybody can see it. An error leaves the store as it was and is the answer of the write. One write is under way at a
	// time; readers see the old catalog meanwhile. The slices are lent for the call.
	Save func(Catalog) error
}

// Memory is a Store in the memory of this process; a restart loses what was not saved elsewhere. One lock covers all
// families, so that every operation, cascades included, is one step.
type Memory struct {
	options MemoryOptions
	writing chan struct{} // holds one token, which every write takes: with it the state may be read without the lock

	mu      sync.Mutex
	state   state
	history history
	changed chan struct{} // closed, and replaced, by the next write
}

var _ Store = (*Memory)(nil)

// NewMemory returns a store that holds o.Start. It panics on a Start that breaks a rule of Catalog.Validate.
func NewMemory(o MemoryOptions) *Memory {
	if o.ResourcesMax == 0 {
		o.ResourcesMax = ResourcesMax
	}
	if o.ScopesMax == 0 {
		o.ScopesMax = ScopesMax
	}
	if o.Start.Epoch != "" {
		o.Epoch = o.Start.Epoch
	}
	if err := o.Start.Validate(); err != nil {
		panic("store: start of a memory store: " + err.Error())
	}
	m := &Memory{options: o, writing: make(chan struct{}, 1), changed: make(chan struct{}), history: history{base: o.Start.Seq, last: o.Start.Seq}}
	m.state = state{capabilities: o.Capabilities, resourcesMax: o.ResourcesMax, scopesMax: o.ScopesMax}
	m.state.load(o.Start)
	m.options.Start = Catalog{} // its rows are the state's now
	m.writing <- struct{}{}
	return m
}

// Catalog returns a copy of everything the store holds.
func (m *Memory) Catalog(ctx context.Context) (Catalog, error) {
	if err := m.enter(ctx); err != nil {
		return Catalog{}, wrap("copy the catalog", err)
	}
	defer m.mu.Unlock()
	copied := m.state.clone()
	c := copied.catalog()
	c.Epoch, c.Seq = m.options.Epoch, m.history.last
	return c, nil
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

// write runs change and makes all that it did visible as one step, or nothing of it. change notes each record it changed,
// and changes nothing where it returns an error.
func (m *Memory) write(ctx context.Context, operation string, change func(*state) error) error {
	if err := ctx.Err(); err != nil {
		return wrap(operation, err)
	}
	select {
	case <-m.writing:
	case <-ctx.Done():
		return wrap(operation, ctx.Err())
	}
	defer func() { m.writing <- struct{}{} }()
	if m.options.Save == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if err := change(&m.state); err != nil {
			return wrap(operation, err)
		}
		m.publish()
		return nil
	}
	next := m.state.clone()
	if err := change(&next); err != nil || len(next.noted) == 0 {
		return wrap(operation, err)
	}
	c := next.catalog()
	c.Epoch, c.Seq = m.options.Epoch, m.history.last+uint64(len(next.noted))
	if err := m.options.Save(c); err != nil {
		return wrap(operation, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = next
	m.publish()
	return nil
}

// publish numbers what the last change noted and wakes everybody who waits for a write. The lock is held.
func (m *Memory) publish() {
	if len(m.state.noted) == 0 {
		return
	}
	for _, c := range m.state.noted {
		m.history.add(c.Op, c.Record)
	}
	m.state.noted = nil
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
		s.Items = asRecords(m.state.tenants.rows)
	case model.KindNamespaces:
		s.Items = asRecords(m.state.namespaces.rows)
	case model.KindStreams:
		s.Items = asRecords(m.state.streams.rows)
	case model.KindCaches:
		s.Items = asRecords(m.state.caches.rows)
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
