package reading

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

func putting(key, value string) Change { return Change{Key: []byte(key), Value: []byte(value)} }
func deleting(key string) Change       { return Change{Delete: true, Key: []byte(key)} }

func committed(at id.Offset, entity string, changes ...Change) *batch.Batch {
	return &batch.Batch{Kind: batch.Commit, Count: 1, Base: at, Body: AppendCommit(nil, []byte("event"), []byte(entity), changes)}
}

func apply(t *testing.T, s *State, list ...*batch.Batch) {
	t.Helper()
	for _, b := range list {
		if err := s.Apply(b); err != nil {
			t.Fatal(err)
		}
	}
}

// said is a value as text: value@version as of offset.
func said(v StateValue) string {
	text := "none"
	if v.Found {
		text = fmt.Sprintf("%s@%d", v.Value, v.Version)
	}
	if v.Any {
		text += fmt.Sprintf(" as of %d", v.AsOf)
	}
	return text
}

func TestStateIsWhatCommitsSayWithTheirOffsets(t *testing.T) {
	s := NewState(NewStateBudget(1 << 20))
	if got := said(s.Get([]byte("e"), "k")); got != "none" {
		t.Errorf("before the first commit: %s", got)
	}
	apply(t, s, committed(5, "e", putting("k", "one"), putting("l", ""), putting("m", "x")), committed(9, "e", putting("k", "two"), deleting("m")))
	for key, want := range map[string]string{"k": "two@9 as of 9", "l": "@5 as of 9", "m": "none as of 9", "n": "none as of 9"} {
		if got := said(s.Get([]byte("e"), key)); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	apply(t, s, committed(10, "e", putting("k", "a"), deleting("k"), putting("k", "b"))) // the last one of a key wins
	if got := said(s.Get([]byte("e"), "k")); got != "b@10 as of 10" {
		t.Errorf("k: %s", got)
	}
}

// Entities that share a shard do not see each other's keys: how many shards a stream has must not change what it says.
func TestAKeyBelongsToItsEntity(t *testing.T) {
	s := NewState(NewStateBudget(1 << 20))
	apply(t, s, committed(0, "one", putting("k", "1")), committed(1, "two", putting("k", "2")), committed(2, "on", putting("ek", "3")))
	apply(t, s, committed(3, "two", deleting("k")))
	if a, b := said(s.Get([]byte("one"), "k")), said(s.Get([]byte("two"), "k")); a != "1@0 as of 3" || b != "none as of 3" {
		t.Errorf("%s; %s", a, b)
	}
}

func TestACommitThatDoesNotFitIsRefusedAndOneThatMakesRoomIsNot(t *testing.T) {
	budget := NewStateBudget(2*stateCost(1, 1, 10) + 50)
	s, other := NewState(budget), NewState(budget)
	apply(t, s, committed(0, "e", putting("a", "0123456789")))
	apply(t, other, committed(0, "e", putting("a", "0123456789")))
	admit := func(changes ...Change) error {
		c, err := DecodeCommit(committed(1, "e", changes...).Body)
		if err != nil {
			t.Fatal(err)
		}
		return s.Admit(c)
	}
	var full *StateFullError
	if err := admit(putting("b", "")); !errors.As(err, &full) || full.Used != budget.Used() || full.Limit != budget.Limit() {
		t.Errorf("a new key: %v", err)
	}
	if err := admit(putting("a", string(make([]byte, 61)))); !errors.As(err, &full) || full.Needed != 51 {
		t.Errorf("a value that is too much larger: %v", err)
	}
	for name, changes := range map[string][]Change{
		"larger within the budget": {putting("a", string(make([]byte, 60)))}, "smaller": {putting("a", "")}, "a delete": {deleting("a")}, "nothing": nil,
		"a key in place of another": {deleting("a"), putting("b", "0123456789")}, "a delete of nothing": {deleting("z")},
	} {
		if err := admit(changes...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A log that holds more than the budget is read all the same: nothing of it is given up. Then only what makes it no larger is taken.
	apply(t, s, committed(1, "e", putting("b", "0123456789"), putting("c", "0123456789")))
	if budget.Used() <= budget.Limit() || said(s.Get([]byte("e"), "c")) != "0123456789@1 as of 1" {
		t.Errorf("%d of %d in use, c is %s", budget.Used(), budget.Limit(), said(s.Get([]byte("e"), "c")))
	}
	if err := admit(putting("a", "9876543210")); err != nil {
		t.Errorf("a value of the same size: %v", err)
	}
	s.Close()
	other.Close()
	if budget.Used() != 0 || s.Len() != 0 || s.Bytes() != 0 {
		t.Errorf("%d bytes are booked for states that are closed", budget.Used())
	}
	apply(t, s, committed(2, "e", putting("a", "late")))
	if budget.Used() != 0 {
		t.Error("a closed state takes memory")
	}
}

func TestABodyThatIsNoCommitChangesNothing(t *testing.T) {
	s := NewState(NewStateBudget(1 << 20))
	apply(t, s, committed(0, "e", putting("k", "v")))
	b := committed(1, "e", putting("k", "w"), putting("l", "x"))
	b.Body = b.Body[:len(b.Body)-1]
	var broken *CommitError
	if err := s.Apply(b); !errors.As(err, &broken) || said(s.Get([]byte("e"), "k")) != "v@0 as of 0" {
		t.Errorf("%v; k is %s", err, said(s.Get([]byte("e"), "k")))
	}
}

func TestTheStateKeepsNoBytesOfTheBatch(t *testing.T) {
	s := NewState(NewStateBudget(1 << 20))
	b := committed(0, "e", putting("k", "v"))
	apply(t, s, b)
	clear(b.Body)
	if got := said(s.Get([]byte("e"), "k")); got != "v@0 as of 0" {
		t.Error(got)
	}
}

func TestCommitsOutOfOrderPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	s := NewState(NewStateBudget(1 << 20))
	apply(t, s, committed(3, "e"), committed(3, "e"))
}

// drawCommit draws a commit of few entities and keys.
func drawCommit(t *rapid.T, at id.Offset) *batch.Batch {
	var changes []Change
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
		if rapid.Bool().Draw(t, "delete") {
			changes = append(changes, deleting(key))
		} else {
			changes = append(changes, putting(key, rapid.StringN(0, 5, 9).Draw(t, "value")))
		}
	}
	return committed(at, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "entity"), changes...)
}

// plainly looks a key up by walking the commits from base on.
func plainly(log []*batch.Batch, base id.Offset, entity, key string) (v StateValue) {
	for _, b := range log {
		if b.Base < base {
			continue
		}
		v.Any, v.AsOf = true, b.Base
		c, _ := DecodeCommit(b.Body)
		for change := range c.Changes() {
			if string(c.Entity) == entity && string(change.Key) == key {
				v.Found, v.Value, v.Version = !change.Delete, change.Value, b.Base
			}
		}
	}
	return v
}

// The state is a fold of the log from its base on: whoever trimmed it and whoever begins there say the same.
func TestStateIsTheFoldOfWhatTheLogHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := NewStateBudget(1 << 20)
		s := NewState(budget)
		var log []*batch.Batch
		next, base := id.Offset(0), id.Offset(0)
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				b := drawCommit(t, next+id.Offset(rapid.IntRange(0, 2).Draw(t, "hole")))
				next = b.Base + 1
				log = append(log, b)
				if err := s.Apply(b); err != nil {
					t.Fatal(err)
				}
			},
			"trim": func(t *rapid.T) {
				base = max(base, id.Offset(rapid.Uint64Range(0, uint64(next)).Draw(t, "base")))
				s.Trim(base)
			},
			"": func(t *rapid.T) {
				again := NewState(NewStateBudget(1 << 20))
				for _, b := range log[slices.IndexFunc(append(log, &batch.Batch{Base: base}), func(b *batch.Batch) bool { return b.Base >= base }):] {
					if err := again.Apply(b); err != nil {
						t.Fatal(err)
					}
				}
				for _, entity := range []string{"x", "y"} {
					for _, key := range []string{"a", "b", "c", "d"} {
						want := plainly(log, base, entity, key)
						if !want.Found {
							want.Value, want.Version = nil, 0
						}
						for name, state := range map[string]*State{"the state": s, "one that began at the base": again} {
							if got := state.Get([]byte(entity), key); got.Found != want.Found || got.Version != want.Version || got.Any != want.Any || got.AsOf != want.AsOf || !bytes.Equal(got.Value, want.Value) {
								t.Fatalf("%s says of %s/%s: %s, want %s", name, entity, key, said(got), said(want))
							}
						}
					}
				}
				if s.Bytes() != again.Bytes() || budget.Used() != s.Bytes() || s.Len() != again.Len() {
					t.Fatalf("%d keys in %d bytes, %d booked; anew %d in %d", s.Len(), s.Bytes(), budget.Used(), again.Len(), again.Bytes())
				}
			},
		})
	})
}

func TestReadersSeeAllOfACommitOrNothing(t *testing.T) {
	s := NewState(NewStateBudget(1 << 20))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if v := s.Get([]byte("e"), "k"); v.Any && (!v.Found || v.Version != v.AsOf) {
					t.Errorf("half of a commit shows: %s", said(v))
					return
				}
			}
		})
	}
	for i := range id.Offset(2000) {
		apply(t, s, committed(i, "e", deleting("k"), putting("k", "v")))
	}
	close(stop)
	readers.Wait()
}
