package reading

import "github.com/felixd/felixd/wire/id"

// Ledger is the Claims of a cache's log and the judge of its writes. Each write is decided when it is claimed, against all that was claimed
// before it; a failed claim voids all later ones; so what was decided holds when it is folded. Judges change nothing.
type Ledger struct{ Claims }

// NewLedger returns a ledger without claims.
func NewLedger(t Table) *Ledger { return &Ledger{newClaims(t, CacheDecoder)} }

// Condition is what a conditional put asks for: that the key has this version, or, without one, that it has no value that has not ended.
type Condition struct {
	HasVersion bool
	Version    id.Offset
}

func (c Condition) holds(l *Live, ok bool) bool {
	if c.HasVersion {
		return ok && l.Version == c.Version
	}
	return !ok
}

// Decision is what is to be done with a write.
type Decision struct {
	// Append says that Record is to be appended; its bytes are those that were given to the judge. If not, nothing is done: the answer
	// is below, and rests on claims below Until; 0 if all that it rests on is folded.
	Append bool
	Record Record
	Until  id.Offset
	// Applied says that a conditional write's condition holds; always true for Put and for what Delete and Expire append.
	Applied bool
	// Version is what the key has, if HasVersion: of a condition that does not hold, and of a value to be deleted. The version that a put
	// writes is the offset that it is appended at.
	HasVersion bool
	Version    id.Offset
	// Found says that a delete removes a value of ValueBytes. The record at Offset has it, and will once the delete is appended: no compaction
	// copies what is about to change. Value is the same, shared and not to be changed, unless it is Cold.
	Found      bool
	Value      []byte
	Cold       bool
	ValueBytes int
	Offset     id.Offset
}

// Put decides a put: it is appended. Whether there is room for it says Admit.
func (l *Ledger) Put(key, value []byte, expiresAtMillis uint64) Decision {
	return Decision{Append: true, Applied: true, Record: Record{Op: OpPut, ExpiresAtMillis: expiresAtMillis, Key: key, Value: value}}
}

// PutIf decides a conditional put. An entry that has ended counts as absent, whether it stands in the index or not.
func (l *Ledger) PutIf(key, value []byte, expiresAtMillis uint64, c Condition, nowMillis uint64) Decision {
	had, ok, until := l.newestStat(key, nowMillis)
	if !c.holds(&had, ok) {
		return Decision{HasVersion: ok, Version: had.Version, Until: until}
	}
	return l.Put(key, value, expiresAtMillis)
}

// Delete decides a delete that answers what it removed, if that has not ended. Of what has ended, and is not removed yet, the end is
// recorded: who was told that there is nothing must not find it again when the clock is set back.
func (l *Ledger) Delete(key []byte, nowMillis uint64) Decision {
	had, ok, until := l.Newest(key, nowMillis)
	if !ok {
		if ended, stands, _ := l.stand(key); stands {
			return Decision{Append: true, Applied: true, Record: Record{Op: OpExpire, Version: ended.Version, Key: key}}
		}
		return Decision{Until: until}
	}
	d := Decision{Append: true, Applied: true, Record: Record{Op: OpDelete, Key: key}, HasVersion: true, Version: had.Version, Found: true, Offset: had.Offset}
	if had.Cold {
		d.Cold, d.ValueBytes = true, had.ColdBytes
	} else {
		d.Value, d.ValueBytes = had.Value, len(had.Value)
	}
	return d
}

// DeleteIf decides a delete of the value of one version.
func (l *Ledger) DeleteIf(key []byte, version id.Offset, nowMillis uint64) Decision {
	had, ok, until := l.newestStat(key, nowMillis)
	if !ok || had.Version != version {
		return Decision{HasVersion: ok, Version: had.Version, Until: until}
	}
	return Decision{Append: true, Applied: true, HasVersion: true, Version: version, Record: Record{Op: OpDelete, Key: key}}
}

// Expire decides whether the end of an entry is to be recorded: if the key still has this version, and that has ended at now. Several of
// different keys may be appended as one batch.
func (l *Ledger) Expire(key []byte, version id.Offset, nowMillis uint64) Decision {
	had, ok, until := l.stand(key)
	if !ok || had.Version != version || !had.ended(nowMillis) {
		return Decision{Until: until}
	}
	return Decision{Append: true, Applied: true, HasVersion: true, Version: version, Record: Record{Op: OpExpire, Version: version, Key: key}}
}

// CounterLedger is the Claims of a log of counters and the judge of its adds, as Ledger is for a cache.
type CounterLedger struct{ Claims }

// NewCounterLedger returns a ledger without claims. t is the *Counters of the log.
func NewCounterLedger(t Table) *CounterLedger { return &CounterLedger{newClaims(t, CounterDecoder)} }

// CounterDecision is what is to be done with an add.
type CounterDecision struct {
	// Append says that Record is to be appended and Sum is the answer. Its key is the one that was given to the judge. If not, the add is
	// refused: the sum would not fit into 64 bits, which rests on claims below Until; 0 if all of it is folded. Sum is then what it is now.
	Append bool
	Record CounterRecord
	Sum    int64
	Until  id.Offset
}

// Sum returns the sum of a counter once all that is claimed is done; ok is false if it was never added to. until is as in Newest.
func (l *CounterLedger) Sum(key []byte) (sum int64, ok bool, until id.Offset) {
	had, ok, until := l.Newest(key, 0)
	if !ok {
		return 0, false, until
	}
	return sumOf(had.Value), true, until
}

// Add decides an add. A counter that was never added to is 0.
func (l *CounterLedger) Add(key []byte, delta int64) CounterDecision {
	sum, _, until := l.Sum(key)
	after, fits := addSums(sum, delta)
	if !fits {
		return CounterDecision{Sum: sum, Until: until}
	}
	return CounterDecision{Append: true, Sum: after, Record: CounterRecord{Op: CounterAdd, Delta: delta, Sum: after, Key: key}}
}
