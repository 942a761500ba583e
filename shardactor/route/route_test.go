package route

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/wire"
)

func name(kind Kind, s string) Name {
	return Name{Kind: kind, Tenant: "t1", Namespace: "default", Name: s}
}

func entry(n Name, shards int) *Entry[int] {
	targets := make([]Target[int], shards)
	for i := range targets {
		targets[i] = Target[int]{State: Local, Shard: i}
	}
	return NewEntry(n, 1, wire.RoutingModulo, false, targets)
}

func lookup(t *Table[int], n Name) *Entry[int] {
	e, _ := t.Lookup(nil, n.Kind, []byte(n.Tenant), []byte(n.Namespace), []byte(n.Name))
	return e
}

// mission 231, 239
func TestAStreamAndACacheMayShareAName(t *testing.T) {
	table := NewTable[int]()
	s, c := entry(name(Stream, "x"), 1), entry(name(Cache, "x"), 2)
	table.Update([]*Entry[int]{s, c}, nil)
	if lookup(table, s.Name) != s || lookup(table, c.Name) != c || table.Get(s.Name) != s {
		t.Fatal("one was taken for the other")
	}
}

func TestNamesThatOnlyDifferInTheirCutsAreDifferent(t *testing.T) {
	table := NewTable[int]()
	e := entry(Name{Stream, "a", "bc", "d"}, 1)
	table.Update([]*Entry[int]{e}, nil)
	for _, n := range []Name{{Stream, "ab", "c", "d"}, {Stream, "a", "b", "cd"}, {Stream, "", "abc", "d"}, {Stream, "a", "bcd", ""}, {Stream, "a\x00bc", "", "d"}} {
		if lookup(table, n) != nil {
			t.Errorf("%q found %s", n, e.Name)
		}
	}
}

func TestResolveFollowsTheRoutingVectors(t *testing.T) {
	e := entry(name(Stream, "x"), 8)
	for key, want := range map[string]uint32{"": 3, "a": 0, "k0": 6, "user-42": 3, "customer-4": 2} {
		if got, target := e.Resolve([]byte(key), true); got != want || target.Shard != int(want) {
			t.Errorf("key %q: shard %d, want %d", key, got, want)
		}
	}
	if got, _ := e.Resolve(nil, false); got != 0 {
		t.Errorf("without a key: shard %d, want 0", got)
	}
	if _, ok := e.Shard(8); ok {
		t.Error("shard 8 of 8 exists")
	}
}

func TestAKeptEntrySeesItsShardsChangeAndItsEnd(t *testing.T) {
	table := NewTable[int]()
	n := name(Stream, "x")
	kept := entry(n, 1)
	table.Update([]*Entry[int]{kept}, nil)
	kept.SetShards([]Target[int]{{Reason: "not_ready"}})
	if _, target := kept.Resolve(nil, false); target.State != Refused || target.Reason != "not_ready" {
		t.Fatalf("resolved to %+v", target)
	}
	table.Update([]*Entry[int]{entry(n, 1)}, nil) // another incarnation
	if !kept.Gone() || lookup(table, n) == kept || lookup(table, n).Gone() {
		t.Fatal("the replaced entry must be gone and the new one not")
	}
	table.Update(nil, []Name{n})
	if lookup(table, n) != nil {
		t.Fatal("removed and still found")
	}
	table.Update(nil, []Name{n}) // removing nothing is nothing
}

func TestALookupOfBorrowedBytesAllocatesNothing(t *testing.T) { // mission 204
	table := NewTable[int]()
	table.Update([]*Entry[int]{entry(name(Stream, "x"), 1)}, nil)
	tenant, namespace, stream := []byte("t1"), []byte("default"), []byte("x")
	scratch := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { _, scratch = table.Lookup(scratch, Stream, tenant, namespace, stream) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestTableBehavesLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, twin := NewTable[int](), map[Name]*Entry[int]{}
		draw := rapid.Custom(func(t *rapid.T) Name {
			return Name{rapid.SampledFrom([]Kind{Stream, Cache}).Draw(t, "kind"), rapid.StringMatching(`[ab]{0,2}`).Draw(t, "tenant"), rapid.StringMatching(`[ab]{0,2}`).Draw(t, "namespace"), rapid.StringMatching(`[ab]{0,2}`).Draw(t, "name")}
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := draw.Draw(t, "name")
				e := entry(n, 1)
				table.Update([]*Entry[int]{e}, nil)
				twin[n] = e
			},
			"remove": func(t *rapid.T) { n := draw.Draw(t, "name"); table.Update(nil, []Name{n}); delete(twin, n) },
			"look": func(t *rapid.T) {
				n := draw.Draw(t, "name")
				if table.Get(n) != twin[n] || lookup(table, n) != twin[n] {
					t.Fatalf("%q: not what was put", n)
				}
			},
			"": func(t *rapid.T) {
				all := table.Entries()
				if len(all) != len(twin) {
					t.Fatalf("%d entries, want %d", len(all), len(twin))
				}
				for i := 1; i < len(all); i++ {
					if all[i-1].Name.Compare(all[i].Name) >= 0 {
						t.Fatalf("%s before %s", all[i-1].Name, all[i].Name)
					}
				}
			},
		})
	})
}

func TestReadersSeeWholeTablesWhileOneWriterChangesThem(t *testing.T) {
	table := NewTable[int]()
	fixed := entry(name(Stream, "fixed"), 4)
	table.Update([]*Entry[int]{fixed}, nil)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
					if lookup(table, fixed.Name) != fixed {
						t.Error("an entry that nobody touched was missing")
						return
					}
					for _, target := range fixed.Shards() {
						if target.State != Local {
							t.Error("half a swap was visible")
						}
					}
				}
			}
		}()
	}
	for i := range 1000 {
		n := name(Cache, fmt.Sprint(i%7))
		table.Update([]*Entry[int]{entry(n, 1)}, []Name{name(Cache, fmt.Sprint((i+3)%7))})
		fixed.SetShards(append([]Target[int](nil), fixed.Shards()...))
	}
	close(stop)
	wg.Wait()
}
