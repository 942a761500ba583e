package keyed

import (
	"sync"

	"github.com/felixd/felixd/wire/id"
)

// Options are what an Index is made with.
type Options struct {
	// Budget is what the index books its entries in. It must be set.
	Budget *Budget
	// Seed fixes where keys stand in the table. Clients must not know it.
	Seed uint64
	// InlineMax is the largest value, in bytes, that is kept in memory; of longer ones the place in the log is. 0 means
	// DefaultInlineMax; 64 KiB is the most, and a negative number keeps none.
	InlineMax int
}

// DefaultInlineMax covers what caches mostly hold, and costs a reader of a longer value one read of at least as many bytes.
const DefaultInlineMax = 4096

// Entry is the newest value of one key.
type Entry struct {
	Key []byte
	// Value is the value unless Cold is set; then the record at Offset has it.
	Value      []byte
	Cold       bool
	ValueBytes int
	// Version is the offset of the record that gave the key this value; Offset is where a record with it stands now. See the package.
	Version, Offset id.Offset
	// ExpiresAtMillis is when the entry ends, since the Unix epoch; 0 = never.
	ExpiresAtMillis uint64
	// LogBytes is what the record at Offset takes in the log.
	LogBytes int
}

// Expired reports whether the entry has ended for a clock that says now.
func (e *Entry) Expired(nowMillis uint64) bool {
	return e.ExpiresAtMillis != 0 && e.ExpiresAtMillis <= nowMillis
}

// Index maps keys to their entries. One goroutine changes it, through a Fold or by itself; any number read.
//
//  1. each block in the table is live in the arena, and no other block is;
//  2. exactly the entries with an expiry are in ends, once;
//  3. cost is the sum of EntryCost of the entries, and is booked in the budget.
type Index struct {
	budget    *Budget
	hash      hasher
	inlineMax int

	mu      sync.RWMutex
	table   table
	arena   arena
	ends    ends
	cost    int64
	booked  int64
	logLive int64
	cold    int
	asOf    id.Offset
	last    Last
	closed  bool
}

// NewIndex returns an empty index.
func NewIndex(o Options) *Index {
	if o.Budget == nil {
		panic("keyed: an index needs a budget")
	}
	inline := o.InlineMax
	switch {
	case inline == 0:
		inline = DefaultInlineMax
	case inline > inlineLimit:
		panic("keyed: InlineMax is above 64 KiB")
	}
	return &Index{budget: o.Budget, hash: newHasher(o.Seed), inlineMax: inline}
}

// slotCost is what an entry takes in the table: 8 bytes at the least load that a growing table has.
const slotCost = 20

// EntryCost is what is booked for an entry, in bytes: what it takes in memory, garbage aside. inline is the length of its value if that is
// kept in memory, else 0.
func EntryCost(key, inline int, expires bool) int64 {
	n := int64(blockSize(key, inline)) + slotCost
	if expires {
		n += endBytes
	}
	return n
}

// inlineOf is how many bytes of a value are kept in memory.
func (x *Index) inlineOf(value int) int {
	if value > x.inlineMax {
		return 0
	}
	return value
}

// Admit reports whether there is room for a value under a key, before it is appended to the log: a *FullError, *KeyTooLongError or
// *ValueTooLongError says why not. What makes the index no larger is always admitted. Nothing is booked: what is admitted before any of it
// is folded can go over the budget together, by no more than the shard lets be on its way to the log.
func (x *Index) Admit(key []byte, value int, expires bool) error {
	if err := sizes(len(key), value); err != nil {
		return err
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	need := EntryCost(len(key), x.inlineOf(value), expires)
	if b := x.lookup(key); b != nil {
		if need -= costOf(b); need <= 0 {
			return nil
		}
	}
	if x.arena.live+need > ArenaMax {
		return &FullError{Needed: need, Used: x.arena.live, Limit: ArenaMax}
	}
	return x.budget.admit(need)
}

func sizes(key, value int) error {
	if key > KeyMax {
		return &KeyTooLongError{Bytes: key}
	}
	if value > ValueMax {
		return &ValueTooLongError{Bytes: value}
	}
	return nil
}

func costOf(b block) int64 {
	return EntryCost(b.keyLen(), len(b.value()), b.expires() != 0)
}

// Get returns the entry of a key that has not ended at now. Its Key is key, and its Value is appended to dst[:0], so that it is the
// caller's. A cold entry's value is read from the log at Offset; if that is not kept there any more, a compaction was faster: Get again.
func (x *Index) Get(key []byte, nowMillis uint64, dst []byte) (Entry, bool) {
	e, ok := x.Look(key, nowMillis, dst)
	if ok {
		e.Key = key
	}
	return e, ok
}

// Look is Get without the Key, for callers whose key is not to outlive the call.
func (x *Index) Look(key []byte, nowMillis uint64, dst []byte) (Entry, bool) {
	return x.look(key, nowMillis, dst, true)
}

// Stat is Look without the Value, which is what a write is decided by.
func (x *Index) Stat(key []byte, nowMillis uint64) (Entry, bool) {
	return x.look(key, nowMillis, nil, false)
}

func (x *Index) look(key []byte, nowMillis uint64, dst []byte, value bool) (Entry, bool) {
	tag := x.hash.tag(key)
	x.mu.RLock()
	_, _, r := x.find(tag, key)
	if r == 0 {
		x.mu.RUnlock()
		return Entry{}, false
	}
	b := x.arena.at(r)
	if ends := b.expires(); ends != 0 && ends <= nowMillis {
		x.mu.RUnlock()
		return Entry{}, false
	}
	e := b.entry()
	e.Key = nil
	if value {
		e.Value = append(dst[:0], e.Value...)
	} else {
		e.Value = nil
	}
	x.mu.RUnlock()
	return e, true
}

// Put sets the entry of a key, whatever it was. Of e, Cold is not looked at; if the value is not given, because it is in the log alone,
// ValueBytes says how long it is, else ValueBytes may be 0. The bytes are copied. The errors are those of a key or value that is too long.
func (x *Index) Put(e Entry) error {
	if e.Value != nil || e.ValueBytes == 0 {
		e.ValueBytes = len(e.Value)
	}
	if err := sizes(len(e.Key), e.ValueBytes); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(x.hash.tag(e.Key), e)
	x.book()
	return nil
}

// Delete removes a key and reports whether it was there, ended or not.
func (x *Index) Delete(key []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	tag := x.hash.tag(key)
	s, i, r := x.find(tag, key)
	if r != 0 {
		x.remove(s, i, r)
		x.book()
	}
	return r != 0
}

// Close gives the memory back: the shard is over. Nothing is found afterwards, and changes do nothing.
func (x *Index) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.table, x.arena, x.ends = table{}, arena{}, ends{}
	x.cost, x.logLive, x.cold, x.closed = 0, 0, 0, true
	x.book()
}

// AsOf is the offset up to which a Fold has applied the log.
func (x *Index) AsOf() id.Offset {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.asOf
}

// Stats are sizes of an index.
type Stats struct {
	Entries, Cold, Expiring int
	// Cost is what is booked in the budget, Memory what is really taken, GarbageBytes the part of it that is to be tidied up.
	Cost, Memory, GarbageBytes int64
	// LogLiveBytes is what the records of the entries take in the log.
	LogLiveBytes int64
}

// Stats returns the sizes. It is cheap.
func (x *Index) Stats() Stats {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return Stats{
		Entries: x.table.count, Cold: x.cold, Expiring: x.ends.n,
		Cost: x.cost, Memory: x.arena.capacity + x.table.bytes + x.ends.bytes(), GarbageBytes: x.arena.garbage(), LogLiveBytes: x.logLive,
	}
}
