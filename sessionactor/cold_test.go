package sessionactor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// stored is a history of batches that the test makes.
type stored struct {
	storage.History
	oldest, end id.Offset
	batches     []*batch.Batch
	err         error
	reads       int
}

func (s *stored) Bounds() (oldest, end id.Offset) { return s.oldest, s.end }

func (s *stored) Read(_ context.Context, from, _ id.Offset, _, _ int, dst []*batch.Batch) ([]*batch.Batch, error) {
	s.reads++
	for _, b := range s.batches {
		if b.Base <= from && from < b.End() {
			return append(dst[:0], b), s.err
		}
	}
	return dst[:0], s.err
}

func recordsAt(base id.Offset, list ...reading.Record) *batch.Batch {
	b := &batch.Batch{Base: base, Count: uint32(len(list)), Kind: batch.Records}
	for _, r := range list {
		b.Body = reading.AppendRecord(b.Body, r)
	}
	return b
}

func TestAValueIsReadFromItsRecordAndFromNoOther(t *testing.T) {
	key, value := []byte("k"), []byte("v")
	log := &stored{oldest: 10, end: 14, batches: []*batch.Batch{
		recordsAt(10, reading.Record{Op: reading.OpPut, Key: key, Value: value}, reading.Record{Op: reading.OpMove, Version: 3, Key: key, Value: value}),
		recordsAt(12, reading.Record{Op: reading.OpDelete, Key: key}),
	}}
	live := func(version, offset id.Offset) *reading.Live {
		return &reading.Live{Cold: true, Version: version, Offset: offset}
	}
	for name, q := range map[string]struct {
		key  string
		live *reading.Live
		good bool
	}{
		"a put":                        {"k", live(10, 10), true},
		"a moved one":                  {"k", live(3, 11), true},
		"of another version":           {"k", live(4, 11), false},
		"of another key":               {"other", live(10, 10), false},
		"a delete":                     {"k", live(12, 12), false},
		"removed":                      {"k", live(9, 9), false},
		"not readable yet":             {"k", live(14, 14), false},
		"a hole, which there can't be": {"k", live(13, 13), false},
	} {
		var r recordReader
		got, err := r.read(t.Context(), log, q.key, q.live)
		if q.good && (err != nil || string(got) != "v") || !q.good && !errors.Is(err, errNotThere) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	log.reads = 0
	var r recordReader
	for _, l := range []*reading.Live{live(10, 10), live(3, 11), live(10, 10)} {
		if _, err := r.read(t.Context(), log, "k", l); err != nil {
			t.Error(err)
		}
	}
	if log.reads != 1 {
		t.Errorf("%d reads for values of one batch", log.reads)
	}
	log.err = &storage.TooOldError{Requested: 10, Oldest: 12}
	if _, err := (&recordReader{}).read(t.Context(), log, "k", live(10, 10)); !errors.Is(err, errNotThere) {
		t.Errorf("removed while it was read: %v", err)
	}
	log.err = errDisk
	if _, err := (&recordReader{}).read(t.Context(), log, "k", live(10, 10)); !errors.Is(err, errDisk) {
		t.Errorf("damage: %v", err)
	}
	log.err = nil
	log.batches[0].Body[4] = 99
	var bad *reading.RecordError
	if _, err := (&recordReader{}).read(t.Context(), log, "k", live(10, 10)); !errors.As(err, &bad) {
		t.Errorf("an unknown operation: %v", err)
	}
}

// shifty is a history in which records are not where they were said to be, so many times.
type shifty struct {
	storage.History
	mu     sync.Mutex
	misses int
	missed func() // nil: nothing
	err    error
}

func (s *shifty) Bounds() (oldest, end id.Offset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.misses == 0 {
		return s.History.Bounds()
	}
	if s.misses--; s.missed != nil {
		s.missed()
	}
	return 1 << 40, 1 << 40
}

func (s *shifty) Read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.History.Read(ctx, from, end, maxBatches, maxBytes, dst)
}

// A get that finds its value gone from where it was looks its key up again, and gives up before it holds up its stream for long.
func TestAGetLooksAgainForAValueThatWasMoved(t *testing.T) {
	long := strings.Repeat("v", 100)
	for name, q := range map[string]struct {
		misses int
		now    wire.Message // what is done meanwhile
		err    error
		value  wire.Opt[[]byte]
		code   wire.Code
	}{
		"moved once":       {misses: 1, value: wire.Some([]byte(long))},
		"moved often":      {misses: coldTries - 1, value: wire.Some([]byte(long))},
		"moved for ever":   {misses: coldTries, code: wire.CodeShardUnavailable},
		"deleted":          {misses: 1, now: deleteFrom("users", "k")},
		"overwritten":      {misses: 1, now: putTo("users", "k", "new"), value: wire.Some([]byte("new"))},
		"on a broken disk": {err: errDisk, code: wire.CodeStorage},
	} {
		d := newSiteDisk()
		d.inline = 8
		x := d.caching(t, setting{})
		writer, l := dial(t, x.connect(), today()), dial(t, x.connect(), today())
		writer.put("users", "k", long)
		log := &shifty{misses: q.misses, err: q.err}
		if q.now != nil {
			log.missed = func() { writer.ask(q.now) }
		}
		x.meddle("users", func(h *shardactor.Handle) { log.History, h.History = h.History, log })
		f := l.ask(getFrom("users", "k"))
		if q.code != 0 {
			if r := refused(t, f); r.Code != q.code || r.Retry == wire.RetryFatal {
				t.Errorf("%s: answered %+v", name, r)
			}
		} else if m, ok := f.message.(*wire.CacheValue); !ok || string(m.Value.V) != string(q.value.V) || m.Value.Set != q.value.Set {
			t.Errorf("%s: answered %.200s", name, f.payload)
		}
		x.close()
	}
}
