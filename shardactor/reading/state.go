package reading

import (
	"sync"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// State is what the commits of one shard's log say of its entities: the newest value of each key and the offset of the commit that
// wrote it. It is a fold of the log and nothing else: built again from the commits the log still holds, it is the same. One goroutine
// applies commits and trims; any number get.
//
//  1. keys holds exactly the keys whose newest change, at or above the offset the state was trimmed to, is a put;
//  2. from oldest to newest the entries ascend by version;
//  3. bytes is the sum of the entries' costs and is booked in the budget.
type State struct {
	budget *StateBudget

	mu             sync.RWMutex
	keys           map[stateKey]*stateEntry
	oldest, newest *stateEntry
	bytes          int64
	asOf           id.Offset // of the last commit
	any            bool      // there was one
	closed         bool
}

type stateKey struct{ entity, key string }

type stateEntry struct {
	at           stateKey
	value        []byte
	version      id.Offset
	older, newer *stateEntry
}

func (e *stateEntry) cost() int64 {
	return stateCost(len(e.at.entity), len(e.at.key), len(e.value))
}

func stateCost(entity, key, value int) int64 { return int64(entity+key+value) + StateEntryOverhead }

// StateValue is what a State says of one key.
type StateValue struct {
	// Value is the newest, shared and not to be changed, and Version the offset of the commit that wrote it; Found is false and both
	// are zero when there is none.
	Found   bool
	Value   []byte
	Version id.Offset
	// AsOf is the offset of the last commit that this reflects; Any is false when there was none.
	Any  bool
	AsOf id.Offset
}

// NewState returns the state of a log without commits.
func NewState(budget *StateBudget) *State {
	return &State{budget: budget, keys: make(map[stateKey]*stateEntry)}
}

// Get returns the newest value of an entity's key.
func (s *State) Get(entity []byte, key string) StateValue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := StateValue{Any: s.any, AsOf: s.asOf}
	if e := s.keys[stateKey{entity: string(entity), key: key}]; e != nil {
		v.Found, v.Value, v.Version = true, e.value, e.version
	}
	return v
}

// Len is the number of keys.
func (s *State) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.keys)
}

// Bytes is what the state has booked in its budget.
func (s *State) Bytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes
}

// Admit reports whether the budget has room for a commit, before it is appended; the error is a *StateFullError. Commits that make the
// state no larger are always admitted. Nothing is booked: commits that are admitted before one of them is applied can go over the budget
// together, by no more than the shard lets be on its way to the log.
func (s *State) Admit(c Commit) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	need := int64(0)
	for change := range c.Changes() {
		e := s.keys[stateKey{entity: string(c.Entity), key: string(change.Key)}]
		switch {
		case change.Delete && e != nil:
			need -= e.cost()
		case change.Delete:
		case e != nil:
			need += int64(len(change.Value) - len(e.value))
		default:
			need += stateCost(len(c.Entity), len(change.Key), len(change.Value))
		}
	}
	if used := s.budget.used.Load(); need > 0 && used+need > s.budget.limit {
		return &StateFullError{Needed: need, Used: used, Limit: s.budget.limit}
	}
	return nil
}

// Apply folds one commit in, in the order of the log; readers see all of its changes or none. The state keeps no bytes of the batch. The
// error is a *CommitError: the body is none, and the state is as it was.
func (s *State) Apply(b *batch.Batch) error {
	c, err := DecodeCommit(b.Body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.any && b.Base <= s.asOf {
		panic("reading: commits are applied in the order of their log")
	}
	before := s.bytes
	for change := range c.Changes() {
		s.change(c.Entity, change, b.Base)
	}
	s.asOf, s.any = b.Base, true
	s.budget.used.Add(s.bytes - before)
	return nil
}

func (s *State) change(entity []byte, change Change, version id.Offset) {
	e := s.keys[stateKey{entity: string(entity), key: string(change.Key)}]
	if e != nil {
		s.remove(e)
	}
	if change.Delete {
		return
	}
	if e == nil {
		e = &stateEntry{at: stateKey{entity: string(entity), key: string(change.Key)}}
	}
	e.version, e.value = version, append(make([]byte, 0, len(change.Value)), change.Value...)
	s.keys[e.at] = e
	s.bytes += e.cost()
	if e.older = s.newest; e.older != nil {
		e.older.newer = e
	} else {
		s.oldest = e
	}
	s.newest = e
}

// remove takes an entry out of the table and the order.
func (s *State) remove(e *stateEntry) {
	delete(s.keys, e.at)
	s.bytes -= e.cost()
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		s.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		s.newest = e.older
	}
	e.older, e.newer = nil, nil
}

// Trim forgets what commits below base wrote: retention removed them from the log.
func (s *State) Trim(base id.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.bytes
	for s.oldest != nil && s.oldest.version < base {
		s.remove(s.oldest)
	}
	if s.any && s.asOf < base {
		s.any, s.asOf = false, 0
	}
	s.budget.used.Add(s.bytes - before)
}

// Close gives the memory back: the shard is over. Get finds nothing afterwards.
func (s *State) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.used.Add(-s.bytes)
	clear(s.keys)
	s.oldest, s.newest, s.bytes, s.asOf, s.any, s.closed = nil, nil, 0, 0, false, true
}
