package shardactor

import (
	"testing"
	"time"

	"github.com/felixd/felixd/wire/id"
)

func TestAgesAreRightToASecondAndOnlyGrowWhenTheyAreThinnedOut(t *testing.T) {
	var a ages
	start := time.Unix(1_800_000_000, 0)
	if _, ok := a.since(0); ok {
		t.Fatal("a record that is not there has an age")
	}
	var at []time.Time
	for i := range 5000 {
		now := start.Add(time.Duration(i) * 700 * time.Millisecond)
		a.note(id.Offset(i+1), now)
		at = append(at, now)
		got, ok := a.since(id.Offset(i))
		if !ok || got.After(now) || now.Sub(got) > ageStep {
			t.Fatalf("record %d was committed at %v, and is said to be from %v (%v)", i, now, got, ok)
		}
	}
	if len(a.ends) > agesKept {
		t.Fatalf("%d marks are kept", len(a.ends))
	}
	last := time.Time{}
	for i := range at {
		got, ok := a.since(id.Offset(i))
		if !ok || got.After(at[i]) || got.Before(last) {
			t.Fatalf("record %d was committed at %v, and is said to be from %v (%v)", i, at[i], got, ok)
		}
		last = got
	}
	if _, ok := a.since(5000); ok {
		t.Fatal("a record that is to come has an age")
	}
}
