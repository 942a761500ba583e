package groupcore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// sample are entries of each kind, with the largest numbers they have room for.
func sample() []Entry {
	top := uint64(1<<64 - 1)
	return []Entry{
		{Kind: KindPosition, Epoch: 7, Born: 3, Cursor: 99},
		{Kind: KindPosition, Epoch: top, Born: top, Deleted: true},
		{Kind: KindRange, Offset: 5, Epoch: 1, End: 6},
		{Kind: KindRun, Offset: 1 << 40, Epoch: 1, Count: wire.MaxGroupRecords},
		{Kind: KindNumber, Offset: 9, Epoch: 2, Number: 1<<32 - 1, Failures: 4},
		{Kind: KindDead, Offset: 9, Epoch: 2, Owed: true, Number: 3, Failures: 1},
		{Kind: KindDead, Epoch: 2},
	}
}

func encoded(group string, e Entry, op Op) []byte {
	return AppendPayload(nil, Record{Op: op, Version: 77, Key: AppendKey(nil, group, e.Kind, e.Offset), Value: AppendValue(nil, &e)})
}

func TestEntriesComeBackFromTheirRecords(t *testing.T) {
	for _, e := range sample() {
		for _, op := range []Op{Put, Moved} {
			r, err := DecodeRecord(encoded("orders", e, op))
			if err != nil {
				t.Fatal(err)
			}
			group, got, err := DecodeEntry(r.Key, r.Value)
			if err != nil || got != e || string(group) != "orders" || op == Moved && r.Version != 77 {
				t.Fatalf("%+v comes back as %+v of %q at %d: %v", e, got, group, r.Version, err)
			}
		}
		r, err := DecodeRecord(encoded("orders", e, Delete))
		if _, got, keyErr := DecodeKey(r.Key); err != nil || keyErr != nil || got.Kind != e.Kind || got.Offset != e.Offset || len(r.Value) > 0 {
			t.Fatalf("delete of %+v: %+v, %v %v", e, r, err, keyErr)
		}
	}
}

// The bytes of the format: a change of any of these strands every group that was ever written.
func TestTheBytesOfAPositionAndARangeAreFixed(t *testing.T) {
	want := "\x01\x00\x0b\x01g\x01\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x07" + "\x00\x00\x00\x00\x00\x00\x00\x03" + "\x00\x00\x00\x00\x00\x00\x00\x63" + "\x00"
	if got := encoded("g", sample()[0], Put); string(got) != want {
		t.Errorf("position %q", got)
	}
	want = "\x03\x00\x00\x00\x00\x00\x00\x00\x4d\x00\x0b\x01g\x02\x00\x00\x00\x00\x00\x00\x00\x05" + "\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x06"
	if got := encoded("g", sample()[2], Moved); string(got) != want {
		t.Errorf("range %q", got)
	}
	if got := AppendRecord([]byte("x"), Record{Op: Delete, Key: []byte("k")}); string(got) != "x\x00\x00\x00\x04\x02\x00\x01k" {
		t.Errorf("delete %q", got)
	}
}

func TestNoKeyOfAGroupHasThePrefixOfAnother(t *testing.T) {
	names := []string{"", "a", "ab", "a\x01", "\x00", strings.Repeat("n", MaxGroupBytes)}
	for _, a := range names {
		for _, b := range names {
			if key := AppendKey(nil, b, KindPosition, 0); bytes.HasPrefix(key, AppendKeyPrefix(nil, a)) != (a == b) {
				t.Errorf("a key of %q has the prefix of %q", b, a)
			}
		}
	}
}

// I20: the shell does not open such a group; the stream goes on.
func TestI20WhatNoGroupWritesIsRefusedByTypeAndReason(t *testing.T) {
	good := func(change func(*Entry)) []byte {
		e := Entry{Kind: KindRange, Offset: 5, Epoch: 1, End: 6, Count: 1, Born: 1}
		change(&e)
		return encoded("g", e, Put)
	}
	for name, payload := range map[string][]byte{
		"it is empty":            {},
		"unknown operation 9":    {9},
		"too few for a version":  {3, 1},
		"the length of a key":    {1, 0},
		"key of 5 bytes":         {1, 0, 5, 1},
		"bytes behind its key":   {2, 0, 1, 'k', 1},
		"the length it names":    {1, 0, 1, 'k'},
		"unknown kind 6":         append([]byte{1, 0, 10, 0, 6}, make([]byte, 8)...),
		"a range from 5 to 5":    good(func(e *Entry) { e.End = 5 }),
		"epoch 0":                good(func(e *Entry) { e.Epoch = 0 }),
		"a run of 0":             good(func(e *Entry) { e.Kind, e.Count = KindRun, 0 }),
		"a run of 1001":          good(func(e *Entry) { e.Kind, e.Count = KindRun, 1001 }),
		"a run of 2 records":     good(func(e *Entry) { e.Kind, e.Count, e.Offset = KindRun, 2, 1<<64-1 }),
		"born in epoch 2":        good(func(e *Entry) { e.Kind, e.Offset, e.Born = KindPosition, 0, 2 }),
		"5 in its key":           good(func(e *Entry) { e.Kind = KindPosition }),
		"has 15 bytes, not 16":   good(func(*Entry) {})[:len(good(func(*Entry) {}))-1],
		"a flag of kind 1 is 2":  append(good(func(e *Entry) { e.Kind, e.Offset = KindPosition, 0 })[:38], 2),
		"a flag of kind 5 is 99": replace(good(func(e *Entry) { e.Kind = KindDead }), 22, 99),
	} {
		r, err := DecodeRecord(payload)
		if err == nil {
			err = NewState("g").Add(r.Key, r.Value)
		}
		if wrong := (*RecordError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "decode group record: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := NewState("h").Add(AppendKey(nil, "g", KindRange, 5), make([]byte, 16)); err == nil {
		t.Error("a state takes a wrong entry")
	}
	e := sample()[2]
	if err := NewState("h").Add(AppendKey(nil, "g", KindRange, 5), AppendValue(nil, &e)); err == nil || !strings.Contains(err.Error(), `of group "g", not "h"`) {
		t.Errorf("a state takes another group's entry: %v", err)
	}
}

func replace(b []byte, i int, with byte) []byte {
	b[i] = with
	return b
}

// FuzzRecord takes bytes for a record, and if they are one, for what a group was when it was last written.
func FuzzRecord(f *testing.F) {
	for _, e := range sample() {
		for _, op := range []Op{Put, Delete, Moved} {
			f.Add(encoded("g", e, op))
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := DecodeRecord(payload)
		if err != nil {
			return
		}
		if again := AppendPayload(nil, r); !bytes.Equal(again, payload) {
			t.Fatalf("%x comes back as %x", payload, again)
		}
		group, e, err := DecodeEntry(r.Key, r.Value)
		if err != nil {
			return
		}
		if key, value := AppendKey(nil, string(group), e.Kind, e.Offset), AppendValue(nil, &e); !bytes.Equal(key, r.Key) || !bytes.Equal(value, r.Value) {
			t.Fatalf("%+v comes back as %x %x", e, key, value)
		}
	})
}

// FuzzState makes a group of any entries, whatever they say together, over a log in which any records are missing or fit no answer, and works
// it to its end.
func FuzzState(f *testing.F) {
	f.Add([]byte{1, 1, 0, 3, 0, 2, 1, 5, 2, 0, 3, 1, 6, 2, 0, 4, 1, 7, 1, 1, 5, 1, 2, 0, 0, 5, 1, 4, 1, 9})
	f.Add([]byte{1, 2, 1, 9, 1, 5, 1, 1, 0, 0, 5, 3, 2, 1, 0})
	f.Add([]byte{1, 2, 0, 40, 0, 2, 2, 50, 9, 0, 2, 1, 3, 3, 1, 3, 2, 8, 30, 0})
	f.Add([]byte{1, 1, 0, 0, 3, 6, 0, 0, 5, 0, 6, 0, 0, 8, 0, 7, 0, 0, 7, 0, 4, 1, 2, 5, 1, 5, 1, 2, 8, 1, 3, 1, 0, 4, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newShell(small(), 0)
		s.end = 24
		for ; len(data) >= 5; data = data[5:] {
			e := Entry{Kind: Kind(data[0]), Epoch: uint64(data[1]), Offset: id.Offset(data[3] % 32), Born: 1}
			e.Deleted, e.Owed, e.Count, e.Number, e.Failures = data[2]&1 == 1, data[2]&2 == 2, uint32(data[4]), uint32(data[2]), uint32(data[4])
			e.End, e.Cursor = e.Offset.Add(uint64(data[4])), id.Offset(data[4]%32)
			switch e.Kind { // the next two numbers are no entries: such a record fits no answer, or is none
			case KindDead + 1:
				s.unfit[e.Offset] = true
			case KindDead + 2:
				s.holes[e.Offset] = true
			}
			if e.Kind < KindPosition || e.Kind > KindDead {
				continue
			}
			log := LogCursors
			if e.Kind == KindDead {
				log = LogDeadLetters
			}
			if e.Kind == KindPosition {
				e.Offset = 0
			}
			key, value := AppendKey(nil, "g", e.Kind, e.Offset), AppendValue(nil, &e)
			if _, _, err := DecodeEntry(key, value); err == nil {
				s.tables[log][string(key)] = value
			}
		}
		s.start()
		before := s.core.Info()
		s.crash([logCount]bool{true, true})
		if after := s.core.Info(); after != before {
			t.Fatalf("read again it is %+v, not %+v", after, before)
		}
		handedOut := map[id.Offset]struct{}{}
		for range 64 {
			for _, h := range s.records(Poll{Max: 8}) {
				handedOut[h.Offset] = struct{}{}
				if f := s.ack(h.Offset); f != nil {
					t.Fatalf("ack %d: %s", h.Offset, f.Message)
				}
			}
		}
		if got := s.core.Info(); got.Cursor != 24 || got.Owed+got.InFlight+got.Delayed > 0 {
			t.Fatalf("worked to its end it is %+v", got)
		}
		for o := range s.unfit {
			if _, handed := handedOut[o]; handed {
				t.Fatalf("record %d, which fits no answer, was handed out", o)
			}
		}
	})
}
