package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// written is a history of batches in memory; the readable end is that of the last.
type written struct {
	list []*batch.Batch
	cut  id.Offset // retention has removed what lies below
	step int       // most batches of one read; 0 is all
	err  error     // of reads that begin at failAt or later
	from id.Offset
}

func (w *written) add(kind batch.Kind, payloads ...string) {
	b := &batch.Batch{Base: 10, Count: uint32(max(1, len(payloads))), Kind: kind, AppendMicros: 1000, Publisher: "al"}
	if n := len(w.list); n > 0 {
		b.Base = w.list[n-1].End()
	}
	b.AppendMicros += uint64(b.Base)
	for _, p := range payloads {
		b.Body = wire.AppendPayload(b.Body, []byte(p))
	}
	w.list = append(w.list, b)
}

func (w *written) Bounds() (oldest, end id.Offset) {
	return max(w.list[0].Base, w.cut), w.list[len(w.list)-1].End()
}

func (w *written) Read(_ context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	if oldest, _ := w.Bounds(); from < oldest {
		return nil, &storage.TooOldError{Requested: from, Oldest: oldest}
	}
	if w.err != nil && from >= w.from {
		return nil, w.err
	}
	dst, bytes := dst[:0], 0
	for _, b := range w.list {
		if b.End() <= from || b.Base >= end {
			continue
		}
		if len(dst) == maxBatches || w.step > 0 && len(dst) == w.step || len(dst) > 0 && bytes+b.Size() > maxBytes {
			break
		}
		dst, bytes = append(dst, b), bytes+b.Size()
	}
	return dst, nil
}

func (w *written) OffsetForTime(context.Context, uint64) (id.Offset, bool, error) {
	return 0, false, nil
}

// history holds a b c at 10, nothing visible at 13, d at 14, e f at 15, nothing at 17.
func history(step int) *written {
	w := &written{step: step}
	w.add(batch.Records, "a", "b", "c")
	w.add(batch.GenerationStart)
	w.add(batch.Records, "d")
	w.add(batch.Records, "e", "f")
	w.add(batch.Moved)
	return w
}

// What a range read gives, whatever pieces it is read in: committed records from the very offset, none at or past the end, no hole in
// between but what holds no record, and where to read on.
func TestARangeHoldsExactlyTheRecordsThatWereAskedFor(t *testing.T) {
	for step := range 4 {
		for _, c := range []struct {
			from, end id.Offset // end 0: none
			records   uint32
			bytes     uint64
			want      string
			next      id.Offset
		}{
			{from: 10, want: "10a 11b 12c 14d 15e 16f", next: 18},
			{from: 11, want: "11b 12c 14d 15e 16f", next: 18},
			{from: 13, want: "14d 15e 16f", next: 18},
			{from: 17, want: "", next: 18}, // nothing that a client sees
			{from: 18, want: "", next: 18}, // the tail
			{from: 11, end: 16, want: "11b 12c 14d 15e", next: 16},
			{from: 11, end: 14, want: "11b 12c", next: 14},
			{from: 11, end: 99, want: "11b 12c 14d 15e 16f", next: 18},
			{from: 15, end: 15, want: "", next: 15},
			{from: 15, end: 3, want: "", next: 15},
			{from: 10, records: 2, want: "10a 11b", next: 12},
			{from: 10, records: 3, want: "10a 11b 12c", next: 13},
			{from: 10, records: 4, want: "10a 11b 12c 14d", next: 15},
			{from: 10, bytes: 1, want: "10a", next: 11},
			{from: 10, bytes: 5, want: "10a 11b 12c 14d 15e", next: 16},
		} {
			m := &wire.StreamRead{From: c.from, End: wire.Opt[id.Offset]{V: c.end, Set: c.end != 0}, MaxRecords: c.records, MaxBytes: c.bytes, RequestID: 9}
			got, err := readRange(t.Context(), history(step), m, rangeRecords)
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			var list []string
			for _, r := range got.Records {
				list = append(list, fmt.Sprintf("%d%s", r.Offset, r.Payload))
				if r.Publisher.V != "al" || r.TimestampMicros < 1010 || r.TimestampMicros > 1000+uint64(r.Offset) {
					t.Errorf("record %+v", r)
				}
			}
			if strings.Join(list, " ") != c.want || got.NextOffset != c.next || got.RequestID != 9 {
				t.Errorf("step %d, %+v: got %q and then %d", step, c, list, got.NextOffset)
			}
		}
	}
}

// A page is bounded in records, in payload bytes, and in what it takes as a frame; one longer record comes alone, if a frame can hold it.
func TestARangeIsBoundedWhateverIsAskedFor(t *testing.T) {
	many := &written{}
	for range 12 {
		many.add(batch.Records, slices.Repeat([]string{"x"}, 1000)...)
	}
	for _, bound := range []int{1, 7, rangeRecords} {
		for _, asked := range []uint32{0, uint32(bound), uint32(bound) + 1, math.MaxUint32} {
			got, err := readRange(t.Context(), many, &wire.StreamRead{From: 10, MaxRecords: asked}, bound)
			if err != nil || len(got.Records) != bound || got.NextOffset != 10+id.Offset(bound) {
				t.Errorf("bound %d, asked for %d: %d records, then %d, %v", bound, asked, len(got.Records), got.NextOffset, err)
			} else if frame := wire.AppendJSONFrame(nil, got); len(frame) > wire.MaxPayload {
				t.Errorf("a frame of %d bytes", len(frame))
			}
		}
	}
	large := &written{}
	for _, n := range []int{3 << 20, 3 << 20, 11 << 20, 13 << 20, 1} {
		large.add(batch.Records, strings.Repeat("x", n))
	}
	for from, want := range map[id.Offset]int{10: 1, 11: 1, 12: 1, 14: 1} {
		got, err := readRange(t.Context(), large, &wire.StreamRead{From: from}, rangeRecords)
		if err != nil || len(got.Records) != want {
			t.Errorf("from %d: %d records, %v", from, len(got.Records), err)
		} else if frame := wire.AppendJSONFrame(nil, got); len(frame) > wire.MaxPayload+wire.HeaderSize {
			t.Errorf("from %d: a frame of %d bytes", from, len(frame))
		}
	}
	var long *recordTooLongError
	if _, err := readRange(t.Context(), large, &wire.StreamRead{From: 13}, rangeRecords); !errors.As(err, &long) || long.offset != 13 {
		t.Errorf("a record that no frame holds: %v", err)
	}
}

// STR-07: outside of what there is the answer is an error that says what there is, also when retention is faster than the read.
func TestARangeOutsideOfTheLogIsATypedError(t *testing.T) {
	w := history(0)
	w.cut = 12
	var old *storage.TooOldError
	for _, from := range []id.Offset{0, 11} {
		if _, err := readRange(t.Context(), w, &wire.StreamRead{From: from}, rangeRecords); !errors.As(err, &old) || old.Requested != from || old.Oldest != 12 {
			t.Errorf("from %d: %v", from, err)
		}
	}
	var future *storage.InFutureError
	if _, err := readRange(t.Context(), w, &wire.StreamRead{From: 19}, rangeRecords); !errors.As(err, &future) || future.Tail != 18 {
		t.Errorf("from 19: %v", err)
	}
	w = history(1)
	w.err, w.from = &storage.TooOldError{Requested: 13, Oldest: 15}, 13
	got, err := readRange(t.Context(), w, &wire.StreamRead{From: 10}, rangeRecords)
	if err != nil || len(got.Records) != 3 || got.NextOffset != 13 {
		t.Errorf("what was read before retention overtook it: %+v, %v", got, err)
	}
	w.err = errDisk
	if _, err := readRange(t.Context(), w, &wire.StreamRead{From: 10}, rangeRecords); !errors.Is(err, errDisk) {
		t.Errorf("damage behind what was read: %v", err)
	}
}
