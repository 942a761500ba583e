package reading

import (
	"io"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// Counters is the reading of one log of counters: the sum of each. One goroutine applies batches; any number get.
type Counters struct{ fold *keyed.Fold }

// NewCounters returns the reading of a log that begins at base. Options are those of the index; InlineMax is not looked at: sums are kept
// in memory.
func NewCounters(o keyed.Options, base id.Offset) *Counters {
	o.InlineMax = sumBytes
	return &Counters{fold: keyed.NewFold(keyed.NewIndex(o), CounterDecoder, base)}
}

// LoadCounters reads a snapshot, see keyed.Load: the log is to be applied from AsOf on, and nothing served before Fold is Complete. One
// that holds something else than sums is a *keyed.SnapshotError too.
func LoadCounters(r io.Reader, o keyed.Options, log keyed.Source) (*Counters, error) {
	o.InlineMax = sumBytes
	f, err := keyed.Load(r, o, CounterDecoder, log)
	if err != nil {
		return nil, err
	}
	sums := true
	for c := keyed.Cursor(0); !c.Done(); {
		c = f.Index().Scan(c, nil, func(e keyed.Entry) { sums = sums && len(e.Value) == sumBytes && e.ExpiresAtMillis == 0 })
	}
	if !sums {
		f.Index().Close()
		return nil, &keyed.SnapshotError{What: "a value in it is not the sum of a counter"}
	}
	return &Counters{fold: f}, nil
}

// Apply folds one batch in, see keyed.Fold. A sum that does not follow from the one before is a *keyed.RecordError.
func (c *Counters) Apply(b *batch.Batch) error { return c.fold.Apply(b, nil) }

// Get returns the sum of a counter; false if it was never added to.
func (c *Counters) Get(key string) (sum int64, ok bool) {
	var short [shortKey]byte
	var value [sumBytes]byte
	e, ok := c.fold.Index().Look(append(short[:0], key...), 0, value[:0])
	if !ok {
		return 0, false
	}
	return sumOf(e.Value), true
}

// Find returns the sum of a counter as 8 bytes big-endian, which are the caller's. Counters do not end.
func (c *Counters) Find(key []byte, nowMillis uint64) (Live, bool) {
	e, ok := c.fold.Index().Look(key, nowMillis, nil)
	return liveOf(e), ok
}

// Stat is Find without the sum.
func (c *Counters) Stat(key []byte, nowMillis uint64) (Live, bool) {
	e, ok := c.fold.Index().Stat(key, nowMillis)
	return liveOf(e), ok
}

// Admit reports whether there is room for a counter, see keyed.Index.
func (c *Counters) Admit(key []byte) error { return c.fold.Index().Admit(key, sumBytes, false) }

// AsOf is the offset up to which the log is folded.
func (c *Counters) AsOf() id.Offset { return c.fold.Next() }

// Index is the table behind it, for compactions and sizes.
func (c *Counters) Index() *keyed.Index { return c.fold.Index() }

// Fold is what applies batches to it, for snapshots.
func (c *Counters) Fold() *keyed.Fold { return c.fold }

// Close gives the memory back. Nothing is found afterwards.
func (c *Counters) Close() { c.fold.Index().Close() }
