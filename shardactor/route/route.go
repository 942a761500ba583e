// Package route answers, for a name and a key, where a request belongs: to a shard here, to another node, or nowhere yet.
//
// A Table has two levels. The first maps a resource to its Entry and changes only when resources come and go; the second
// is the list of an entry's shards, swapped as one when any of them changes. Both are read without a lock. An Entry that a
// caller keeps stays valid: it sees every later change of its shards, and says so once the resource is gone.
package route

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Kind tells streams from caches: the two may share a name.
type Kind uint8

const (
	// Stream is an event stream (or a queue, which is the same log).
	Stream Kind = iota + 1
	// Cache is a key-value cache.
	Cache
)

func (k Kind) String() string {
	switch k {
	case Stream:
		return "stream"
	case Cache:
		return "cache"
	}
	return "unknown"
}

// Name is the full name of a resource.
type Name struct {
	Kind                    Kind
	Tenant, Namespace, Name string
}

func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Name }

// Compare orders names by tenant, namespace, kind and name.
func (n Name) Compare(o Name) int {
	if c := strings.Compare(n.Tenant, o.Tenant); c != 0 {
		return c
	}
	if c := strings.Compare(n.Namespace, o.Namespace); c != 0 {
		return c
	}
	if n.Kind != o.Kind {
		return int(n.Kind) - int(o.Kind)
	}
	return strings.Compare(n.Name, o.Name)
}

// State says what a Target is.
type State uint8

const (
	// Refused: nobody can be asked; Reason says why, in the words of detail.reason.
	Refused State = iota
	// Local: a shard of this node.
	Local
	// Remote: a shard of Node.
	Remote
)

// Target is the answer for one shard. S is what a local shard is to the caller.
type Target[S any] struct {
	State      State
	Shard      S // Local
	Generation id.Generation
	Node, Addr string // Remote
	Reason     string // Refused
}

// Entry is one resource.
type Entry[S any] struct {
	Name        Name
	Incarnation id.Incarnation
	Routing     wire.Routing
	Durable     bool
	shards      atomic.Pointer[[]Target[S]]
	gone        atomic.Bool
}

// NewEntry returns an entry with the given shards; there is at least one.
func NewEntry[S any](name Name, incarnation id.Incarnation, routing wire.Routing, durable bool, shards []Target[S]) *Entry[S] {
	if len(shards) == 0 {
		panic("route: an entry without shards")
	}
	e := &Entry[S]{Name: name, Incarnation: incarnation, Routing: routing, Durable: durable}
	e.SetShards(shards)
	return e
}

// SetShards swaps all shards at once. The slice is the entry's from then on.
func (e *Entry[S]) SetShards(shards []Target[S]) { e.shards.Store(&shards) }

// Shards is the current list, not to be changed.
func (e *Entry[S]) Shards() []Target[S] { return *e.shards.Load() }

// Gone reports whether the resource was removed: look the name up again.
func (e *Entry[S]) Gone() bool { return e.gone.Load() }

// Resolve returns the shard that a key belongs to, and where it is.
func (e *Entry[S]) Resolve(key []byte, keyed bool) (uint32, Target[S]) {
	shards := e.Shards()
	n := e.Routing.Shard(key, keyed, uint32(len(shards)))
	return n, shards[n]
}

// Shard returns the target of shard n; ok is false when there is no such shard.
func (e *Entry[S]) Shard(n uint32) (t Target[S], ok bool) {
	shards := e.Shards()
	if uint64(n) >= uint64(len(shards)) {
		return t, false
	}
	return shards[n], true
}

// Table maps names to entries. One goroutine changes it; any number look up.
type Table[S any] struct {
	entries atomic.Pointer[map[string]*Entry[S]]
}

// NewTable returns an empty table.
func NewTable[S any]() *Table[S] {
	t := &Table[S]{}
	t.entries.Store(&map[string]*Entry[S]{})
	return t
}

// Lookup finds an entry by the parts of its name; nil when there is none. scratch is reused to build the key, so that a
// lookup of borrowed bytes allocates nothing; the possibly grown scratch is returned.
func (t *Table[S]) Lookup(scratch []byte, kind Kind, tenant, namespace, name []byte) (*Entry[S], []byte) {
	scratch = append(scratch[:0], byte(kind))
	scratch = appendPart(appendPart(scratch, tenant), namespace)
	scratch = append(scratch, name...)
	return (*t.entries.Load())[string(scratch)], scratch
}

// Get finds an entry by its name; nil when there is none.
func (t *Table[S]) Get(n Name) *Entry[S] { return (*t.entries.Load())[n.key()] }

// Entries returns all entries in the order of their names.
func (t *Table[S]) Entries() []*Entry[S] {
	return slices.SortedFunc(maps.Values(*t.entries.Load()), func(a, b *Entry[S]) int { return a.Name.Compare(b.Name) })
}

// Update adds and removes entries in one swap. An added entry replaces one of the same name, which then is gone.
func (t *Table[S]) Update(add []*Entry[S], remove []Name) {
	next := maps.Clone(*t.entries.Load())
	drop := func(k string) {
		if e := next[k]; e != nil {
			e.gone.Store(true)
			delete(next, k)
		}
	}
	for _, n := range remove {
		drop(n.key())
	}
	for _, e := range add {
		k := e.Name.key()
		if next[k] != e {
			drop(k)
			next[k] = e
		}
	}
	t.entries.Store(&next)
}

// key is injective: the parts before the last carry their length.
func (n Name) key() string {
	b := append(make([]byte, 0, 16+len(n.Tenant)+len(n.Namespace)+len(n.Name)), byte(n.Kind))
	b = appendPart(appendPart(b, []byte(n.Tenant)), []byte(n.Namespace))
	return string(append(b, n.Name...))
}

func appendPart(dst, part []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(part))), part...)
}
