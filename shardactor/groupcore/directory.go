package groupcore

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// Directory knows which keys each group has in one log, so that what is stored of one group is found without looking at that of all others. It
// takes 55 bytes of memory for each key but the position, and 80 beside the name for each group, as measured. It is not safe for concurrent use.
//
//  1. a group is in it exactly as long as it has a key;
//  2. a key that no version of this package makes is kept as well, under the group it names: it is that group's trouble and of no other.
type Directory struct {
	groups map[string]*groupKeys
}

// groupKeys are the keys of one group.
type groupKeys struct {
	position bool // there is one
	lives    bool // and it is not that of a group that was deleted
	keys     map[dkey]struct{}
	peak     int                 // the most that were in keys since it was made
	odd      map[string]struct{} // of another length, whole
}

// NewDirectory returns one without keys.
func NewDirectory() *Directory { return &Directory{groups: make(map[string]*groupKeys)} }

// splitKey is what a key says without being believed: the group that it begins with, and the rest; false if it names none.
func splitKey(key []byte) (group, rest []byte, ok bool) {
	if len(key) == 0 || len(key) < 1+int(key[0]) {
		return nil, nil, false
	}
	return key[1 : 1+int(key[0])], key[1+int(key[0]):], true
}

// Put says that a key has a value. Neither is kept.
func (d *Directory) Put(key, value []byte) {
	group, rest, ok := splitKey(key)
	if !ok {
		return // of no group
	}
	g := d.groups[string(group)]
	if g == nil {
		g = &groupKeys{}
		d.groups[string(group)] = g
	}
	switch k, fits := restOf(rest); {
	case !fits:
		if g.odd == nil {
			g.odd = make(map[string]struct{})
		}
		g.odd[string(key)] = struct{}{}
	case k == dkey{KindPosition, 0}:
		_, e, err := DecodeEntry(key, value)
		g.position, g.lives = true, err == nil && !e.Deleted
	default:
		if g.keys == nil {
			g.keys = make(map[dkey]struct{})
		}
		g.keys[k] = struct{}{}
		g.peak = max(g.peak, len(g.keys))
	}
}

// restOf is what a key says behind its group.
func restOf(rest []byte) (k dkey, ok bool) {
	if len(rest) != keyBytes-1 {
		return k, false
	}
	return dkey{Kind(rest[0]), id.Offset(binary.BigEndian.Uint64(rest[1:]))}, true
}

// Delete says that a key has no value any more.
func (d *Directory) Delete(key []byte) {
	group, rest, ok := splitKey(key)
	g := d.groups[string(group)]
	if !ok || g == nil {
		return
	}
	switch k, fits := restOf(rest); {
	case !fits:
		delete(g.odd, string(key))
	case k == dkey{KindPosition, 0}:
		g.position, g.lives = false, false
	default:
		delete(g.keys, k)
		g.slim()
	}
	if !g.position && len(g.keys) == 0 && len(g.odd) == 0 {
		delete(d.groups, string(group))
	}
}

// slimBelow is the part of its keys that a table has left when it is made anew: one that was large gives its memory back in no other way.
const slimBelow = 4

func (g *groupKeys) slim() {
	switch n := len(g.keys); {
	case n == 0:
		g.keys, g.peak = nil, 0
	case n < g.peak/slimBelow && g.peak > FreeKeys:
		keys := make(map[dkey]struct{}, n) // maps.Clone would keep the room
		maps.Copy(keys, g.keys)
		g.keys, g.peak = keys, n
	}
}

// Keys calls f for each key of a group, the position first and the others in order. The key is good until f returns.
func (d *Directory) Keys(group string, f func(key []byte)) {
	g := d.groups[group]
	if g == nil {
		return
	}
	var room [keyBytes + MaxGroupBytes]byte
	if g.position {
		f(AppendKey(room[:0], group, KindPosition, 0))
	}
	list := make([]dkey, 0, len(g.keys))
	for k := range g.keys {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b dkey) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.offset, b.offset)) })
	for _, k := range list {
		f(AppendKey(room[:0], group, k.kind, k.offset))
	}
	odd := make([]string, 0, len(g.odd))
	for k := range g.odd {
		odd = append(odd, k)
	}
	slices.Sort(odd)
	for _, k := range odd {
		f([]byte(k))
	}
}

// Count is how many keys a group has beside its position, and whether it has any.
func (d *Directory) Count(group string) (keys int, there bool) {
	g := d.groups[group]
	if g == nil {
		return 0, false
	}
	return len(g.keys) + len(g.odd), true
}

// Groups are the names of all groups that have a key.
func (d *Directory) Groups() []string { return slices.Sorted(maps.Keys(d.groups)) }

// GroupOf is the group that a key names, which borrows from it; false if it names none.
func GroupOf(key []byte) (group []byte, ok bool) {
	group, _, ok = splitKey(key)
	return group, ok
}

// Names are the first most names of groups that have a position, and were not deleted.
func (d *Directory) Names(most int) []string {
	names := slices.Sorted(maps.Keys(d.groups))
	names = slices.DeleteFunc(names, func(name string) bool { return !d.groups[name].lives })
	return names[:min(len(names), most)]
}
