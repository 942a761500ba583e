package groupcore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/wire/id"
	"pgregory.net/rapid"
)

// A directory has, of each group, exactly the keys that a walk over all keys finds by the group's prefix, whoever made them.
func TestADirectoryHasTheKeysOfEachGroup(t *testing.T) {
	groups := []string{"", "a", "ab", "b", strings.Repeat("g", MaxGroupBytes)}
	rapid.Check(t, func(t *rapid.T) {
		d, table := NewDirectory(), map[string][]byte{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			group := rapid.SampledFrom(groups).Draw(t, "group")
			kind := Kind(rapid.Uint8Range(0, 7).Draw(t, "kind")) // of which 0, 6 and 7 are no kinds
			key := AppendKey(nil, group, kind, id.Offset(rapid.Uint64Range(0, 2).Draw(t, "offset")))
			switch rapid.IntRange(0, 9).Draw(t, "odd") {
			case 0:
				key = append(key, 0)
			case 1:
				key = key[:rapid.IntRange(0, len(key)-1).Draw(t, "cut")]
			}
			if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
				delete(table, string(key))
				d.Delete(key)
				continue
			}
			value := AppendValue(nil, &Entry{Kind: KindPosition, Epoch: 1, Born: 1, Deleted: rapid.Bool().Draw(t, "deleted")})
			if rapid.IntRange(0, 5).Draw(t, "bad") == 0 {
				value = value[:3]
			}
			table[string(key)] = value
			d.Put(key, value)
		}
		var names []string
		for _, group := range groups {
			var want, got []string
			for _, key := range slices.Sorted(maps.Keys(table)) {
				if strings.HasPrefix(key, string(AppendKeyPrefix(nil, group))) {
					want = append(want, key)
				}
			}
			d.Keys(group, func(key []byte) { got = append(got, string(key)) })
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("group %q has %q, want %q", group, got, want)
			}
			if (d.groups[group] != nil) != (len(want) > 0) {
				t.Fatalf("group %q with %d keys is there: %v", group, len(want), d.groups[group] != nil)
			}
			key := AppendKey(nil, group, KindPosition, 0)
			if value, ok := table[string(key)]; ok {
				if _, e, err := DecodeEntry(key, value); err == nil && !e.Deleted {
					names = append(names, group)
				}
			}
		}
		slices.Sort(names)
		most := rapid.IntRange(0, 6).Draw(t, "most")
		if got, want := d.Names(most), names[:min(most, len(names))]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the first %d are %q, want %q", most, got, want)
		}
	})
}

// Keys come in an order that does not differ from run to run.
func TestTheKeysOfAGroupComeInOrder(t *testing.T) {
	d := NewDirectory()
	for _, k := range []dkey{{KindNumber, 9}, {KindRange, 7}, {KindPosition, 0}, {KindNumber, 300}, {KindNumber, 1}} {
		d.Put(AppendKey(nil, "g", k.kind, k.offset), nil)
	}
	var got []string
	d.Keys("g", func(key []byte) {
		_, e, err := DecodeKey(key)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d/%d", e.Kind, e.Offset))
	})
	expect(t, "keys", got, "[1/0 2/7 4/1 4/9 4/300]")
}
