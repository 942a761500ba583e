package shardcore

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire/id"
)

// note takes one record of a producer at an offset.
func note(p *Producers, producer, sequence uint64, base id.Offset) {
	p.Note(Numbered{Producer: producer, Sequence: sequence, Base: base, Count: 1, Sum: uint32(sequence), Length: 7})
}

func TestAProducersLast64BatchesAreRemembered(t *testing.T) {
	p := NewProducers()
	for i := range uint64(200) {
		note(p, 5, i, id.Offset(10*i))
	}
	for _, c := range []struct {
		sequence uint64
		found    bool
	}{{135, false}, {136, true}, {199, true}, {200, false}, {1 << 63, false}} {
		s, found, known, next := p.find(5, c.sequence)
		if found != c.found || !known || next != 200 || found && s.base != id.Offset(10*c.sequence) {
			t.Errorf("sequence %d: found %v at %d, known %v, next %d", c.sequence, found, s.base, known, next)
		}
	}
	if n := len(p.byID[5].ring); n != producerBatches {
		t.Errorf("200 batches keep a ring of %d", n)
	}
}

// field case REP-11; matrix J7
func TestOf4097ProducersTheOneWhoseNewestBatchIsOldestIsForgotten(t *testing.T) {
	p := NewProducers()
	for i := range uint64(producersMax) {
		note(p, i+1, 0, id.Offset(i))
	}
	note(p, 1, 1, producersMax) // 1 is no longer the oldest
	note(p, 9999, 0, producersMax+1)
	for _, c := range []struct {
		producer uint64
		known    bool
	}{{1, true}, {2, false}, {3, true}, {9999, true}} {
		if _, _, known, _ := p.find(c.producer, 0); known != c.known {
			t.Errorf("producer %d is known: %v", c.producer, known)
		}
	}
	if p.Len() != producersMax {
		t.Errorf("%d producers are kept", p.Len())
	}
	for i := range uint64(3 * producersMax) { // it stays so
		note(p, 100_000+i, 0, id.Offset(producersMax+2+i))
	}
	if p.Len() != producersMax {
		t.Errorf("%d producers are kept", p.Len())
	}
}

func TestABatchThatDoesNotContinueItsProducerBeginsItAnew(t *testing.T) {
	p := NewProducers()
	note(p, 5, 40, 0) // what is left after retention
	note(p, 5, 41, 1)
	note(p, 5, 0, 2) // it was forgotten meanwhile and came back
	if _, found, _, next := p.find(5, 40); found || next != 1 {
		t.Fatalf("an earlier life is found %v, next is %d", found, next)
	}
	note(p, 5, 9, 3)
	if _, found, _, next := p.find(5, 0); found || next != 10 {
		t.Fatalf("a batch before a hole is found %v, next is %d", found, next)
	}
}

func TestNotingTheLogOutOfOrderPanics(t *testing.T) {
	for name, n := range map[string]Numbered{"below the end": {Base: 4, Count: 1}, "no records": {Base: 9, Count: 0}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			p := NewProducers()
			p.Note(Numbered{Base: 0, Count: 5})
			p.Note(n)
		}()
	}
}

// drawLog is a log of numbered batches of few producers, as leaders write them: of consecutive sequences, but for those that were
// forgotten and begin again.
func drawLog(t *rapid.T) []Numbered {
	var log []Numbered
	next := map[uint64]uint64{}
	end := id.Offset(0)
	for range rapid.IntRange(0, 60).Draw(t, "batches") {
		n := Numbered{Producer: rapid.Uint64Range(0, 6).Draw(t, "producer"), Base: end, Count: rapid.Uint32Range(1, 3).Draw(t, "records"), Length: 1}
		if n.Producer != 0 {
			if rapid.IntRange(0, 9).Draw(t, "anew") == 0 {
				next[n.Producer] = 0
			}
			n.Sequence, n.Sum = next[n.Producer], rapid.Uint32().Draw(t, "sum")
			next[n.Producer]++
		}
		end = n.Base.Add(uint64(n.Count))
		log = append(log, n)
	}
	return log
}

// Whoever notes the whole log and trims it holds what somebody holds who begins at the base, or with a snapshot taken anywhere.
//
// matrix J6
func TestTheMemoryOfProducersFollowsFromTheLogAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		first, taken := 0, 0
		if len(log) > 0 {
			first = rapid.IntRange(0, len(log)-1).Draw(t, "first kept")
			taken = rapid.IntRange(0, len(log)).Draw(t, "snapshot after")
		}
		base := id.Offset(0)
		whole, late := newProducers(4, 3), newProducers(4, 3)
		var snapshot []byte
		asOf := id.Offset(0)
		for i, n := range log {
			if i == taken {
				snapshot, asOf = whole.Encode(nil), n.Base
			}
			whole.Note(n)
			if i == first {
				base = n.Base
			}
			if i >= first {
				late.Note(n)
			}
		}
		whole.Trim(base)
		if a, b := whole.Encode(nil), late.Encode(nil); !bytes.Equal(a, b) {
			t.Fatalf("noted from the beginning and trimmed to %d:\n%x\nnoted from there:\n%x", base, a, b)
		}
		if snapshot == nil {
			return
		}
		restored, err := decodeProducers(newProducers(4, 3), snapshot, asOf)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range log[taken:] {
			restored.Note(n)
		}
		restored.Trim(base)
		if a, b := whole.Encode(nil), restored.Encode(nil); !bytes.Equal(a, b) {
			t.Fatalf("with a snapshot of %d:\n%x\nwant\n%x", asOf, b, a)
		}
	})
}

func TestSnapshotsThatAreNoneAreRefusedByName(t *testing.T) {
	p := NewProducers()
	note(p, 5, 0, 3)
	note(p, 6, 8, 4)
	good := p.Encode(nil)
	if _, err := DecodeProducers(good, 5); err != nil {
		t.Fatal(err)
	}
	change := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	const id1, count1, base1, records1, id2 = 13, 22, 30, 34, 6 + leastProducerSize + 7
	for name, body := range map[string][]byte{
		"empty": nil, "short header": good[:5], "version": change(1, 9), "more producers than bytes": change(5, 3), "more producers than kept": change(3, 0x10),
		"cut off": good[:len(good)-1], "more": append(bytes.Clone(good), 0), "no id": change(id1, 0), "one id twice": change(id2, 5),
		"no batches": change(count1, 0), "more batches than sequences": change(count1, 2), "more batches than kept": change(count1, 65),
		"no records": change(records1, 0), "past the end": change(base1, 5), "out of order": change(base1, 4),
	} {
		var broken *SnapshotError
		if _, err := DecodeProducers(body, 5); !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DecodeProducers(good, 4); err == nil {
		t.Error("a batch that ends past the snapshot's own end passes")
	}
}

func FuzzDecodeProducers(f *testing.F) {
	p := NewProducers()
	f.Add(p.Encode(nil), uint64(0))
	for i := range uint64(70) {
		note(p, 5+i%3, i/3, id.Offset(2*i))
	}
	f.Add(p.Encode(nil), uint64(1000))
	f.Fuzz(func(t *testing.T, body []byte, asOf uint64) {
		p, err := DecodeProducers(body, id.Offset(asOf))
		if err != nil {
			var broken *SnapshotError
			if !errors.As(err, &broken) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if again := p.Encode(nil); !bytes.Equal(again, body) {
			t.Fatalf("%x is read, and written as %x", body, again)
		}
		if p.Len() > 0 && asOf < 1<<63 {
			note(p, 1, 0, id.Offset(asOf))
			p.Trim(id.Offset(asOf))
			if p.Len() != 1 {
				t.Fatalf("%d producers lie past the end", p.Len()-1)
			}
		}
	})
}
