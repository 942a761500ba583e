package reading

import (
	"io"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// KeyedCache is the reading of one log-backed cache: what the log says of its keys. One goroutine applies batches; any number get. Nothing
// is ever evicted: Admit refuses what does not fit.
type KeyedCache struct{ fold *keyed.Fold }

// NewKeyedCache returns the reading of a log that begins at base. Options are those of the index.
func NewKeyedCache(o keyed.Options, base id.Offset) *KeyedCache {
	return &KeyedCache{fold: keyed.NewFold(keyed.NewIndex(o), CacheDecoder, base)}
}

// LoadKeyedCache reads a snapshot, see keyed.Load: the log is to be applied from AsOf on, and nothing served before Fold is Complete.
func LoadKeyedCache(r io.Reader, o keyed.Options, log keyed.Source) (*KeyedCache, error) {
	f, err := keyed.Load(r, o, CacheDecoder, log)
	if err != nil {
		return nil, err
	}
	return &KeyedCache{fold: f}, nil
}

// Apply folds one batch in, see keyed.Fold.
func (c *KeyedCache) Apply(b *batch.Batch, each func(keyed.Applied)) error {
	return c.fold.Apply(b, each)
}

// Get returns what a key has that has not ended at now; the value is the caller's.
func (c *KeyedCache) Get(key string, nowMillis uint64) (Live, bool) {
	var short [shortKey]byte // a key that fits is not copied to the heap
	return c.Find(append(short[:0], key...), nowMillis)
}

// shortKey is a length that hardly any key goes over, and that costs a stack little.
const shortKey = 256

// Find is Get.
func (c *KeyedCache) Find(key []byte, nowMillis uint64) (Live, bool) {
	e, ok := c.fold.Index().Look(key, nowMillis, []byte{}) // an empty value is not nil
	return liveOf(e), ok
}

// Stat is Find without the value.
func (c *KeyedCache) Stat(key []byte, nowMillis uint64) (Live, bool) {
	e, ok := c.fold.Index().Stat(key, nowMillis)
	return liveOf(e), ok
}

func liveOf(e keyed.Entry) Live {
	l := Live{Value: e.Value, Cold: e.Cold, Version: e.Version, Offset: e.Offset, ExpiresAtMillis: e.ExpiresAtMillis}
	if e.Cold {
		l.ColdBytes = e.ValueBytes
	}
	return l
}

// Admit reports whether there is room for a value of so many bytes under a key, see keyed.Index.
func (c *KeyedCache) Admit(key []byte, valueBytes int, expires bool) error {
	return c.fold.Index().Admit(key, valueBytes, expires)
}

// Due returns an OpExpire for each of at most limit entries that have ended at now, in no order. The keys are the caller's. They are met
// again until the expiries are folded, so ask again when those that were returned are.
func (c *KeyedCache) Due(nowMillis uint64, limit int) []Record {
	var list []Record
	var keys []byte
	c.fold.Index().Due(nowMillis, limit, func(e keyed.Entry) {
		from := len(keys)
		keys = append(keys, e.Key...)
		list = append(list, Record{Op: OpExpire, Version: e.Version, Key: keys[from:len(keys):len(keys)]})
	})
	return list
}

// NextEnd is when the first entry ends, in milliseconds since the Unix epoch; false if none ever does.
func (c *KeyedCache) NextEnd() (millis uint64, ok bool) { return c.fold.Index().NextEnd() }

// Current returns the entries whose key begins with prefix and that have not ended at now, see keyed.Index.Range.
func (c *KeyedCache) Current(prefix []byte, nowMillis uint64, limit, maxBytes int) ([]keyed.Entry, bool) {
	return c.fold.Index().Range(prefix, nowMillis, limit, maxBytes)
}

// AsOf is the offset up to which the log is folded.
func (c *KeyedCache) AsOf() id.Offset { return c.fold.Next() }

// Index is the table behind it, for compactions and sizes.
func (c *KeyedCache) Index() *keyed.Index { return c.fold.Index() }

// Fold is what applies batches to it, for snapshots.
func (c *KeyedCache) Fold() *keyed.Fold { return c.fold }

// Close gives the memory back. Nothing is found afterwards.
func (c *KeyedCache) Close() { c.fold.Index().Close() }
