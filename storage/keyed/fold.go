package keyed

import (
	"fmt"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// Kind is what a record does to its key.
type Kind uint8

const (
	// None changes nothing: a record that is of no concern to this fold.
	None Kind = iota
	// Put gives the key a value. Its version is the record's offset.
	Put
	// Delete removes the key.
	Delete
	// Expire removes the key if it still has the version that the record names: a value that was put again meanwhile stays.
	Expire
	// Move says again what the key had: value, expiry, and the version that the record names. It changes nothing but where that stands in
	// the log.
	Move
)

// Change is one decoded record. Key and Value are borrowed from it.
type Change struct {
	Kind            Kind
	Key             []byte
	Value           []byte    // of Put and Move
	ExpiresAtMillis uint64    // of Put and Move; 0 = never
	Version         id.Offset // of Expire and Move
}

// Lookup returns the value that a key has in the fold before the record that is being decoded, ended or not; false if it has none. A
// cold value is not at hand: the result is nil, true. The bytes are good until the decoder returns. A value of a later record, which a
// snapshot that was written while the log was folded on may show, is not told: such a key is as if it had none, and what is decoded for it
// is without effect.
type Lookup func(key []byte) (value []byte, ok bool)

// Decoder says what a record of a log does. old is for readings whose records change a value rather than replace it, such as the delta of
// a counter: the Change then carries the value that comes out, which may be a buffer of the decoder's own that it uses again for the next
// record. A decoder depends on nothing but its arguments, and does not keep them.
type Decoder func(payload []byte, at id.Offset, old Lookup) (Change, error)

// Applied is one record as it was folded. Its bytes are good until the function returns that it is given to, which must not call the index.
type Applied struct {
	At     id.Offset
	Change Change
	// Before is what the key had, ended or not; Existed is false if it had nothing.
	Before  Entry
	Existed bool
	// Effect is false for a record that changed nothing: the delete of an absent key, an expiry or a move that came too late.
	Effect bool
}

// Last identifies the last batch that was folded, so that a snapshot can be held against the log that it is said to be of. Sum counts only
// if Summed says so.
type Last struct {
	Base       id.Offset
	Count      uint32
	Generation id.Generation
	Sum        uint32
	Summed     bool
}

// Agrees reports whether b can be that batch.
func (l Last) Agrees(b *batch.Batch) bool {
	return l.Base == b.Base && l.Count == b.Count && l.Generation == b.Generation && (!l.Summed || !b.Summed || l.Sum == b.Sum)
}

// Fold applies the batches of one log to an index, in order. It is used by one goroutine.
type Fold struct {
	index  *Index
	decode Decoder
	old    Lookup
	at     id.Offset // of the record that is being decoded
	until  id.Offset // of a snapshot: what it was loaded from is the state of the log only from here on
	failed error
}

// NewFold returns the fold of a log that begins at base, into an index that is empty.
func NewFold(x *Index, decode Decoder, base id.Offset) *Fold {
	f := &Fold{index: x, decode: decode, until: base}
	f.old = f.lookup
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.table.count != 0 {
		panic("keyed: a fold begins with an empty index")
	}
	x.asOf, x.last = base, Last{}
	return f
}

// Index is what the fold applies to.
func (f *Fold) Index() *Index { return f.index }

// Next is the offset of the record that comes next.
func (f *Fold) Next() id.Offset { return f.index.AsOf() }

// Complete reports whether the index is the state of the log as of Next. After Load it is not, until the log is folded as far as the
// snapshot's writer was when it ended.
func (f *Fold) Complete() bool { return f.failed == nil && f.Next() >= f.until }

func (f *Fold) lookup(key []byte) ([]byte, bool) {
	b := f.index.lookup(key)
	if b == nil || id.Offset(b.offset()) >= f.at {
		return nil, false
	}
	return b.value(), true
}

// Apply folds one batch in; readers see all of it or nothing. each, if not nil, is called for each of its records. Batches that are not
// Records change nothing; one that was folded before is skipped. The index keeps no bytes of it.
//
// Errors: a *GapError if b does not continue what was folded, after which it is as it was; a *RecordError or *BodyError if it can't be
// understood, after which the fold is over and returns the same error for ever: what it holds must not be served.
func (f *Fold) Apply(b *batch.Batch, each func(Applied)) error {
	if f.failed != nil {
		return f.failed
	}
	x := f.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if b.End() <= x.asOf {
		return nil
	}
	if b.Base != x.asOf {
		return &GapError{Want: x.asOf, Got: b.Base}
	}
	if b.Kind == batch.Records {
		if f.failed = f.records(b, each); f.failed != nil {
			return f.failed
		}
	}
	x.asOf = b.End()
	x.last = identify(b)
	x.book()
	return nil
}

func (f *Fold) records(b *batch.Batch, each func(Applied)) error {
	body := b.Body
	share := int(storedBatch / max(b.Count, 1))
	for at := b.Base; at < b.End(); at = at.Add(1) {
		payload, rest, err := cutRecord(body, at.Since(b.Base), b.Count)
		if err != nil {
			return err
		}
		body = rest
		f.at = at
		c, err := f.decode(payload, at, f.old)
		if err == nil {
			err = f.index.apply(c, at, recordOverhead+len(payload)+share, each)
		}
		if err != nil {
			return &RecordError{At: at, Err: err}
		}
	}
	if len(body) > 0 {
		return &BodyError{What: fmt.Sprintf("has %d bytes behind the last record", len(body))}
	}
	return nil
}

// apply makes one change; mu is held for writing. An entry that already shows a later record is left alone: it comes from a snapshot that
// was written while the log was folded on.
func (x *Index) apply(c Change, at id.Offset, logBytes int, each func(Applied)) error {
	if c.Kind == None {
		return nil
	}
	if err := sizes(len(c.Key), len(c.Value)); err != nil {
		return err
	}
	tag := x.hash.tag(c.Key)
	s, i, r := x.find(tag, c.Key)
	done := Applied{At: at, Change: c, Existed: r != 0}
	if r != 0 {
		if done.Before = x.arena.at(r).entry(); done.Before.Offset >= at {
			return nil
		}
	}
	version, err := versionOf(c, at)
	if err != nil {
		return err
	}
	switch c.Kind {
	case Put:
		done.Effect = true
	case Delete:
		done.Effect = r != 0
	case Expire:
		done.Effect = r != 0 && done.Before.Version == version
	case Move:
		done.Effect = r == 0 || done.Before.Version <= version
	}
	if each != nil {
		each(done) // before the change, which may overwrite what Before shows
	}
	switch {
	case !done.Effect:
	case c.Kind == Put || c.Kind == Move:
		x.put(tag, Entry{
			Key: c.Key, Value: c.Value, ValueBytes: len(c.Value), Version: version, Offset: at, ExpiresAtMillis: c.ExpiresAtMillis, LogBytes: logBytes,
		})
	default:
		x.remove(s, i, r)
	}
	return nil
}

// versionOf is the version that a change gives its key, or asks for.
func versionOf(c Change, at id.Offset) (id.Offset, error) {
	switch c.Kind {
	case Put, Delete:
		return at, nil
	case Expire, Move:
		if c.Version >= at {
			return 0, fmt.Errorf("it names version %s, which is not before it", c.Version)
		}
		return c.Version, nil
	case None:
	}
	return 0, fmt.Errorf("a decoder made a change of unknown kind %d", c.Kind)
}
