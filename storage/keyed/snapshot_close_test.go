package keyed

import (
	"errors"
	"testing"
)

// An index that is closed while it is being written out makes no snapshot: half of its keys must not be taken for all of them.
func TestASnapshotOfAnIndexThatIsClosedMeanwhileIsNone(t *testing.T) {
	j, f := some(t, 20_000)
	s := NewSnapshot(f)
	out, more := s.Next(nil)
	if !more || s.Cut() {
		t.Fatal("it is written in one step")
	}
	f.Index().Close()
	for more {
		out, more = s.Next(out)
	}
	var bad *SnapshotError
	if loaded, _, err := load(j, out); !errors.As(err, &bad) {
		t.Errorf("loaded: %d of 20000 keys, %v", loaded.Index().Stats().Entries, err)
	}
	if !s.Cut() {
		t.Error("it does not say so")
	}
}
