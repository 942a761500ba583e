package shardactor

import (
	"io"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire/id"
)

// groupTable is what one of the logs of groups says: an index of all keys, and which of them each group has. It is folded, and its directory
// used, in the shard's turns.
type groupTable struct {
	*keyed.Fold
	directory *groupcore.Directory
	reach     id.Offset // of all that it held when it was opened, the greatest
	changed   func(key []byte)
}

// newGroupTable looks at everything that was folded, once.
func newGroupTable(fold *keyed.Fold) *groupTable {
	t := &groupTable{Fold: fold, directory: groupcore.NewDirectory(), changed: func([]byte) {}}
	for c := (keyed.Cursor)(0); !c.Done(); {
		c = fold.Index().Scan(c, nil, func(e keyed.Entry) { t.directory.Put(e.Key, e.Value) })
	}
	t.notes(func(_ *keyed.Entry, x *groupcore.Entry) { t.reach = max(t.reach, x.Reach()) })
	return t
}

// notes visits everything that is noted, but for what can't be read: that is its group's trouble.
func (t *groupTable) notes(visit func(e *keyed.Entry, x *groupcore.Entry)) {
	for c := (keyed.Cursor)(0); ; {
		c = t.Index().Scan(c, nil, func(e keyed.Entry) {
			if _, x, err := groupcore.DecodeEntry(e.Key, e.Value); err == nil {
				visit(&e, &x)
			}
		})
		if c.Done() {
			return
		}
	}
}

// apply folds a batch in.
func (t *groupTable) apply(b *batch.Batch) error {
	return t.Apply(b, func(a keyed.Applied) {
		switch {
		case !a.Effect:
		case a.Change.Kind == keyed.Put || a.Change.Kind == keyed.Move:
			t.directory.Put(a.Change.Key, a.Change.Value)
			t.changed(a.Change.Key)
		default:
			t.directory.Delete(a.Change.Key)
			t.changed(a.Change.Key)
		}
	})
}

// add gathers what the log says of one group, as far as that is to be believed; of the others it looks at nothing. It returns how many keys it has
// looked at.
func (t *groupTable) add(s *groupcore.State, group string, until func(at id.Offset) id.Offset) (looked int, err error) {
	var room [64]byte
	t.directory.Keys(group, func(key []byte) {
		looked++
		if e, ok := t.Index().Get(key, 0, room[:0]); ok && err == nil {
			err = s.AddUntil(key, e.Value, until(e.Version))
		}
	})
	return looked, err
}

// state is what the logs say of one group.
func (g *groupLogs) state(group string, lost groupcore.Lost) (*groupcore.State, error) {
	s := groupcore.NewState(group)
	for i, t := range g.tables {
		if _, err := t.add(s, group, func(at id.Offset) id.Offset { return lost.Until(groupcore.Log(i), at) }); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// foldGroups makes the table of a log of groups.
func foldGroups(f *diskFiles, file *disklog.Log) (*openedLog, error) {
	var fold *keyed.Fold
	o, err := f.foldKeys(file, func(r io.Reader, base id.Offset, log keyed.Source) (*keyed.Fold, func(*batch.Batch) error, error) {
		var err error
		if r == nil {
			fold = keyed.NewFold(keyed.NewIndex(f.groupOptions()), decodeGroupRecord, base)
		} else if fold, err = keyed.Load(r, f.groupOptions(), decodeGroupRecord, log); err != nil {
			return nil, nil, err
		}
		return fold, func(b *batch.Batch) error { return fold.Apply(b, nil) }, nil
	})
	if err != nil {
		if fold != nil {
			fold.Index().Close()
		}
		return nil, err
	}
	o.groups = newGroupTable(fold)
	return o, nil
}

// groupOptions are those of the index of a log of groups: all values are short, and are kept. What it takes is part of what groups keep.
func (f *diskFiles) groupOptions() keyed.Options {
	o := f.keysOptions()
	o.Budget, o.InlineMax = f.disks.groupIndex, keyed.DefaultInlineMax
	return o
}

// decodeGroupRecord is the keyed.Decoder of both logs.
func decodeGroupRecord(payload []byte, _ id.Offset, _ keyed.Lookup) (keyed.Change, error) {
	r, err := groupcore.DecodeRecord(payload)
	if err != nil {
		return keyed.Change{}, err
	}
	switch r.Op {
	case groupcore.Delete:
		return keyed.Change{Kind: keyed.Delete, Key: r.Key}, nil
	case groupcore.Moved:
		return keyed.Change{Kind: keyed.Move, Key: r.Key, Value: r.Value, Version: r.Version}, nil
	}
	return keyed.Change{Kind: keyed.Put, Key: r.Key, Value: r.Value}, nil
}

// encodeGroupMove is the keyed.Encoder of both.
func encodeGroupMove(dst []byte, e keyed.Entry) []byte {
	return groupcore.AppendPayload(dst, groupcore.Record{Op: groupcore.Moved, Version: e.Version, Key: e.Key, Value: e.Value})
}

// foldTable is a fold as claims look at it.
type foldTable struct{ fold *keyed.Fold }

// Find implements reading.Table.
func (t foldTable) Find(key []byte, nowMillis uint64) (reading.Live, bool) {
	e, ok := t.fold.Index().Get(key, nowMillis, nil)
	return reading.Live{Value: e.Value, Cold: e.Cold, Version: e.Version, Offset: e.Offset, ExpiresAtMillis: e.ExpiresAtMillis}, ok
}

// Stat implements reading.Table.
func (t foldTable) Stat(key []byte, nowMillis uint64) (reading.Live, bool) {
	l, ok := t.Find(key, nowMillis)
	l.Value = nil
	return l, ok
}
