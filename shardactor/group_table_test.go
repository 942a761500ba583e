package shardactor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
	"pgregory.net/rapid"
)

func emptyGroupTable() *groupTable {
	return newGroupTable(keyed.NewFold(keyed.NewIndex(keyed.Options{Budget: keyed.NewBudget(1 << 30)}), decodeGroupRecord, 0))
}

// batchOf is a batch of a log of groups, at the end of a table.
func (t *groupTable) batchOf(records ...groupcore.Record) *batch.Batch {
	b := &batch.Batch{Base: t.Next(), Kind: batch.Records, Count: uint32(len(records))}
	for _, r := range records {
		b.Body = groupcore.AppendRecord(b.Body, r)
	}
	return b
}

// keysOf are those that a directory has of a group, and keysIn those that a walk over the whole index finds.
func (t *groupTable) keysOf(group string) (list []string) {
	t.directory.Keys(group, func(key []byte) { list = append(list, string(key)) })
	slices.Sort(list)
	return list
}

func (t *groupTable) keysIn(group string) (list []string) {
	prefix := groupcore.AppendKeyPrefix(nil, group)
	for c := (keyed.Cursor)(0); !c.Done(); {
		c = t.Index().Scan(c, prefix, func(e keyed.Entry) { list = append(list, string(e.Key)) })
	}
	slices.Sort(list)
	return list
}

// Whatever is folded, puts, deletes and the copies of compactions, the directory has what the index has; and so does one that is made when the
// log is opened.
func TestTheDirectoryOfALogOfGroupsFollowsItsIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, groups := emptyGroupTable(), []string{"a", "b", "longer"}
		for range rapid.IntRange(1, 15).Draw(t, "batches") {
			var records []groupcore.Record
			for range rapid.IntRange(1, 4).Draw(t, "records") {
				e := groupcore.Entry{Kind: groupcore.KindNumber, Epoch: 1, Number: 2}
				if rapid.IntRange(0, 3).Draw(t, "position") == 0 {
					e = groupcore.Entry{Kind: groupcore.KindPosition, Epoch: 1, Born: 1, Cursor: 5}
				}
				r := groupcore.Record{Op: groupcore.Put, Value: groupcore.AppendValue(nil, &e)}
				offset := id.Offset(0)
				if e.Kind == groupcore.KindNumber {
					offset = id.Offset(rapid.Uint64Range(0, 3).Draw(t, "offset"))
				}
				r.Key = groupcore.AppendKey(nil, rapid.SampledFrom(groups).Draw(t, "group"), e.Kind, offset)
				switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
				case op == 0:
					r.Op, r.Value = groupcore.Delete, nil
				case op == 1 && table.Next() > 0: // perhaps one that comes too late, or brings back what is not there
					r.Op, r.Version = groupcore.Moved, id.Offset(rapid.Uint64Range(0, uint64(table.Next())-1).Draw(t, "version"))
				}
				records = append(records, r)
			}
			if err := table.apply(table.batchOf(records...)); err != nil {
				t.Fatal(err)
			}
			anew := newGroupTable(table.Fold)
			for _, group := range groups {
				want := table.keysIn(group)
				if got := table.keysOf(group); !slices.Equal(got, want) {
					t.Fatalf("group %s has %q, want %q", group, got, want)
				}
				if got := anew.keysOf(group); !slices.Equal(got, want) {
					t.Fatalf("group %s has %q when the log is opened, want %q", group, got, want)
				}
			}
		}
	})
}

// What the logs say of a group is found by looking at its own keys: for all groups together at each key once, not at each key for each group.
func TestTheStateOfAGroupIsFoundWithoutTheOthers(t *testing.T) {
	const groups, each = 10_000, 3
	table := emptyGroupTable()
	for i := range groups {
		name := fmt.Sprint("group-", i)
		position := groupcore.Entry{Kind: groupcore.KindPosition, Epoch: 1, Born: 1, Cursor: 5}
		one := groupcore.Entry{Kind: groupcore.KindRange, Epoch: 1, End: 9}
		other := groupcore.Entry{Kind: groupcore.KindNumber, Epoch: 1, Number: 2}
		if err := table.apply(table.batchOf(
			groupcore.Record{Op: groupcore.Put, Key: groupcore.AppendKey(nil, name, position.Kind, 0), Value: groupcore.AppendValue(nil, &position)},
			groupcore.Record{Op: groupcore.Put, Key: groupcore.AppendKey(nil, name, one.Kind, 7), Value: groupcore.AppendValue(nil, &one)},
			groupcore.Record{Op: groupcore.Put, Key: groupcore.AppendKey(nil, name, other.Kind, 11), Value: groupcore.AppendValue(nil, &other)},
		)); err != nil {
			t.Fatal(err)
		}
	}
	looked := 0
	for i := range groups {
		name := fmt.Sprint("group-", i)
		n, err := table.add(groupcore.NewState(name), name, func(id.Offset) id.Offset { return groupcore.Unread })
		if looked += n; err != nil {
			t.Fatal(err)
		}
	}
	if looked != groups*each {
		t.Fatalf("%d keys were looked at for %d groups, want %d for each", looked, groups, each)
	}
}
