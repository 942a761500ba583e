package reading

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/felixd/felixd/storage/batch"
)

func someChanges() []Change {
	return []Change{{Key: []byte("a"), Value: []byte("one")}, {Delete: true, Key: []byte("b")}, {Key: []byte("c"), Value: []byte{}}}
}

func TestACommitIsReadAsItWasWritten(t *testing.T) {
	for _, changes := range [][]Change{nil, someChanges()} {
		body := AppendCommit([]byte("in front"), []byte("event"), []byte("entity"), changes)[len("in front"):]
		if len(body) != CommitSize([]byte("event"), []byte("entity"), changes) {
			t.Errorf("%d bytes, CommitSize says otherwise", len(body))
		}
		c, err := DecodeCommit(body)
		if err != nil || string(c.Event) != "event" || string(c.Entity) != "entity" || c.Count() != len(changes) {
			t.Fatalf("%+v, %v", c, err)
		}
		if got := slices.Collect(c.Changes()); !reflect.DeepEqual(got, changes) {
			t.Fatalf("changes %v, want %v", got, changes)
		}
		for range c.Changes() { // one may stop early
			break
		}
	}
}

// What clients see of a commit is its event, as any record.
func TestTheRegionOfACommitIsItsEvent(t *testing.T) {
	b := batch.Batch{Kind: batch.Commit, Count: 1, Body: AppendCommit(nil, []byte("event"), []byte("entity"), someChanges())}
	if got := b.Region(); string(got) != "\x00\x00\x00\x05event" {
		t.Errorf("%q", got)
	}
}

// The bytes are those of the log: a later version reads them.
func TestTheBytesOfACommit(t *testing.T) {
	got := AppendCommit(nil, []byte("ev"), []byte("n"), []Change{{Key: []byte("k"), Value: []byte("vv")}, {Delete: true, Key: []byte("d"), Value: []byte("not written")}})
	const want = "\x00\x00\x00\x02ev\x00\x00\x00\x01n\x00\x00\x00\x02" + "\x00\x00\x00\x00\x01k\x00\x00\x00\x02vv" + "\x01\x00\x00\x00\x01d"
	if string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBodiesThatAreNoCommitAreRefusedByName(t *testing.T) {
	good := AppendCommit(nil, []byte("event"), []byte("entity"), someChanges())
	for n := range good {
		var broken *CommitError
		if _, err := DecodeCommit(good[:n]); !errors.As(err, &broken) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	count := len("....event....entity")
	for name, change := range map[string]func([]byte) []byte{
		"bytes behind it":   func(b []byte) []byte { return append(b, 0) },
		"unknown operation": func(b []byte) []byte { b[count+4] = 2; return b },
		"fewer changes":     func(b []byte) []byte { b[count+3]--; return b },
		"more changes":      func(b []byte) []byte { b[count+3]++; return b },
		"endless changes":   func(b []byte) []byte { binary.BigEndian.PutUint32(b[count:], 1<<32-1); return b },
		"endless event":     func(b []byte) []byte { binary.BigEndian.PutUint32(b, 1<<32-1); return b },
	} {
		var broken *CommitError
		if _, err := DecodeCommit(change(bytes.Clone(good))); !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeCommit(f *testing.F) {
	f.Add(AppendCommit(nil, nil, nil, nil))
	f.Add(AppendCommit(nil, []byte("event"), []byte("entity"), someChanges()))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := DecodeCommit(body)
		if err != nil {
			var broken *CommitError
			if !errors.As(err, &broken) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if again := AppendCommit(nil, c.Event, c.Entity, slices.Collect(c.Changes())); !bytes.Equal(again, body) {
			t.Fatalf("%x is read, and written as %x", body, again)
		}
	})
}
