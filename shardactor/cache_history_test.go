package shardactor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// keyState is what a key has between two ends of the log: from the record before `from` on.
type keyState struct {
	from            id.Offset
	has             bool
	version         id.Offset
	expiresAtMillis uint64
	value           string
}

func (s keyState) live(nowMillis uint64) bool {
	return s.has && (s.expiresAtMillis == 0 || s.expiresAtMillis > nowMillis)
}

// logged is one record of a cache's log.
type logged struct {
	op         reading.Op
	key, value string
}

// cacheHistory is all that the log of a cache's shard has ever told, record by record. Each is checked against those before it.
type cacheHistory struct {
	t       testing.TB
	now     func() uint64 // milliseconds of the wall clock
	next    id.Offset
	records map[id.Offset]logged
	states  map[string][]keyState // by key, in the order of from
	removed map[string]int        // deletes by key
	moves   int
	ends    int

	of     *Handle // whose log is followed
	cursor storage.Cursor
}

func newCacheHistory(t testing.TB, now func() uint64) *cacheHistory {
	return &cacheHistory{t: t, now: now, records: map[id.Offset]logged{}, states: map[string][]keyState{}, removed: map[string]int{}}
}

// reads reads on from the log of a handle, and reports whether all of it is still there: a compaction may have been faster.
func (c *cacheHistory) reads(h *Handle) bool {
	c.t.Helper()
	var old *storage.TooOldError
	if c.of != h { // else it is in the tail, and misses nothing
		c.leave()
		cursor, err := h.Log.Register(storage.CursorOptions{Start: storage.StartOffset, Offset: c.next, Capacity: 1 << 16, Ring: func() {}})
		if errors.As(err, &old) {
			return false
		}
		if err != nil {
			c.t.Fatal(err)
		}
		c.of, c.cursor = h, cursor
	}
	for {
		page, err := c.cursor.Take(c.t.Context(), 256, 1<<20, nil)
		switch {
		case errors.As(err, &old):
			return false
		case err != nil:
			c.t.Fatal(err)
		case page.Lost > 0:
			c.t.Fatalf("%d records are lost before %d", page.Lost, page.Next)
		case len(page.Batches) == 0:
			return true
		}
		for _, b := range page.Batches {
			c.add(b)
		}
	}
}

// leave lets go of the log that is followed.
func (c *cacheHistory) leave() {
	if c.cursor != nil {
		c.cursor.Release()
		c.of, c.cursor = nil, nil
	}
}

// add takes the next batch.
func (c *cacheHistory) add(b *batch.Batch) {
	c.t.Helper()
	if b.Base != c.next {
		c.t.Fatalf("the log goes on at %d, want %d", b.Base, c.next)
	}
	if b.Kind != batch.Records { // offsets that are passed over
		c.next = b.End()
		return
	}
	for r, err := range reading.Records(b.Body) {
		if err != nil {
			c.t.Fatal(err)
		}
		c.record(&r)
	}
}

// record takes the next record.
func (c *cacheHistory) record(r *reading.Record) {
	c.t.Helper()
	at, key := c.next, string(r.Key)
	had, now := c.last(key), keyState{from: at + 1}
	switch r.Op {
	case reading.OpPut:
		now.has, now.version, now.expiresAtMillis, now.value = true, at, r.ExpiresAtMillis, string(r.Value)
	case reading.OpMove:
		c.moves++
		if !had.has || had.version != r.Version || had.expiresAtMillis != r.ExpiresAtMillis || had.value != string(r.Value) {
			c.t.Fatalf("the copy at %d of %s says version %d, end %d, %.20s; it had %+.40v", at, key, r.Version, r.ExpiresAtMillis, r.Value, had)
		}
		now = had
		now.from = at + 1
	case reading.OpDelete:
		if !had.has {
			c.t.Fatalf("a delete at %d of %s, which had nothing", at, key)
		}
		c.removed[key]++
	case reading.OpExpire:
		c.ends++
		if !had.has || had.version != r.Version || had.live(c.now()) {
			c.t.Fatalf("the end at %d of version %d of %s, which had %+.40v, at %d", at, r.Version, key, had, c.now())
		}
	default:
		c.t.Fatalf("a record of kind %d at %d", r.Op, at)
	}
	c.records[at] = logged{r.Op, key, string(r.Value)}
	c.states[key] = append(c.states[key], now)
	c.next++
}

// last is what a key has.
func (c *cacheHistory) last(key string) keyState {
	s := c.states[key]
	if len(s) == 0 {
		return keyState{}
	}
	return s[len(s)-1]
}

// before is what a key had when the log ended at an offset.
func (c *cacheHistory) before(key string, end id.Offset) (s keyState) {
	c.during(key, end, end, func(had keyState) bool { s = had; return true })
	return s
}

// during reports whether ok holds for something that a key had from one end of the log to another.
func (c *cacheHistory) during(key string, from, to id.Offset, ok func(keyState) bool) bool {
	s := c.states[key]
	i := len(s) - 1
	for i >= 0 && s[i].from > from {
		i--
	}
	if i < 0 {
		if ok(keyState{}) {
			return true
		}
		i = 0
	}
	for ; i < len(s) && s[i].from <= to; i++ {
		if ok(s[i]) {
			return true
		}
	}
	return false
}

// lately says what a key had last, for failures.
func (c *cacheHistory) lately(key string) string {
	var b strings.Builder
	s := c.states[key]
	for _, x := range s[max(0, len(s)-5):] {
		fmt.Fprintf(&b, "[from %d: %v, version %d, end %d] ", x.from, x.has, x.version, x.expiresAtMillis)
	}
	return b.String()
}
