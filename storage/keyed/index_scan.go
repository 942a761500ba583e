package keyed

import (
	"bytes"
	"slices"
)

// Cursor is how far a Scan has come. The zero Cursor is the beginning.
type Cursor uint64

// scanEnd is behind the last tag.
const scanEnd Cursor = 1 << 32

// Done reports whether a scan is over.
func (c Cursor) Done() bool { return c >= scanEnd }

// Scan calls f for entries whose key begins with prefix, ended or not, and returns where the next call goes on; it looks at one segment of
// the table, a thousand entries at most, and may find none. Calls until Done meet each key that is there all the while exactly once, in no
// order that means anything, whatever is written between the calls; of a key that is written to meanwhile they meet one of its entries or
// none.
//
// The entry's bytes are the index's, good until f returns. f must not call the index.
func (x *Index) Scan(c Cursor, prefix []byte, f func(Entry)) Cursor {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.scan(c, prefix, f)
}

func (x *Index) scan(c Cursor, prefix []byte, f func(Entry)) Cursor {
	if c.Done() {
		return c
	}
	s := x.table.of(uint32(c))
	if s == nil {
		return scanEnd
	}
	for _, slot := range s.slots {
		if slot == 0 || Cursor(tagOf(slot)) < c {
			continue
		}
		if b := x.arena.at(refOf(slot)); bytes.HasPrefix(b.key(), prefix) {
			f(b.entry())
		}
	}
	return Cursor(s.last()) + 1
}

// Range returns the entries whose key begins with prefix and that have not ended at now, in the order of their keys; the bytes are the
// caller's. It looks at the whole index, in steps that don't hold up the writer. If there are more than limit, or their keys and inline
// values are more than maxBytes, ok is false and nothing is returned.
func (x *Index) Range(prefix []byte, nowMillis uint64, limit, maxBytes int) (list []Entry, ok bool) {
	var arena []byte
	fits := true
	add := func(e Entry) {
		if e.Expired(nowMillis) || !fits {
			return
		}
		if len(list) == limit || len(arena)+len(e.Key)+len(e.Value) > maxBytes {
			fits = false
			return
		}
		from := len(arena)
		arena = append(append(arena, e.Key...), e.Value...)
		middle := from + len(e.Key)
		e.Key = arena[from:middle:middle]
		if !e.Cold {
			e.Value = arena[middle:len(arena):len(arena)]
		}
		list = append(list, e)
	}
	for c := Cursor(0); !c.Done() && fits; {
		c = x.Scan(c, prefix, add)
	}
	if !fits {
		return nil, false
	}
	slices.SortFunc(list, func(a, b Entry) int { return bytes.Compare(a.Key, b.Key) })
	return list, true
}

// Due calls f for entries that have ended at now, limit at most, in no order: those whose deletes are to be appended. They stay until
// their deletes are folded, so the next call meets them again; ask again when all of them are.
//
// The entry's bytes are the index's, good until f returns. f must not call the index.
func (x *Index) Due(nowMillis uint64, limit int, f func(Entry)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.ends.due(nowMillis, limit, func(r ref) { f(x.arena.at(r).entry()) })
}

// NextEnd is when the first entry ends, in milliseconds since the Unix epoch; false if none ever does.
func (x *Index) NextEnd() (millis uint64, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.ends.n == 0 {
		return 0, false
	}
	return x.ends.get(0).expires, true
}
