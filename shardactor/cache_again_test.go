package shardactor

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// A cache is deleted and created again, over and over, while clients write and read as fast as they can: every request is answered once, nothing of
// one cache is seen in the next, and what the last one acknowledged is there, also after a restart. All files of those before are set aside.
func TestACacheThatIsMadeAgainUnderItsWritersBeginsEmpty(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	rounds := id.Incarnation(unlessRaced(12, 6))
	name := durableCache("users").Name
	local := func(i id.Incarnation) func(Target) bool {
		return func(x Target) bool { return x.State == route.Local && x.Generation == id.Generation(i) }
	}
	var end atomic.Bool
	var all sync.WaitGroup
	var last sync.Map // key -> what was acknowledged by the last incarnation
	for c := range 3 {
		all.Go(func() {
			r := newReplies()
			for n := 0; !end.Load(); n++ {
				var x Target
				if e := d.table.Get(name); e != nil {
					x, _ = e.Shard(0)
				}
				if x.Shard == nil {
					yield()
					continue
				}
				key, value := fmt.Sprint(c, "/", n%5), fmt.Sprint(x.Generation, "/", n)
				if v, ok := x.Shard.Cache.Get(key, d.millis()); ok {
					if !strings.HasPrefix(string(v.Value), fmt.Sprint(x.Generation, "/")) {
						t.Errorf("incarnation %d shows %s", x.Generation, v.Value)
						return
					}
				}
				m := &CachePut{Key: key, Value: []byte(value)}
				m.To(r, shardcore.Token(n))
				if x.Shard.Ref.TrySend(m, Size(m)) != nil {
					continue
				}
				if a := r.wait(t, shardcore.Token(n)); a.Refusal == nil && x.Generation == id.Generation(rounds) {
					last.Store(key, value)
				}
			}
		})
	}
	made := durableCache("users")
	for i := range rounds {
		made.Incarnation, made.Generation = i+1, id.Generation(i+1)
		d.desire(made)
		h := d.target(name, 0, local(i+1)).Shard
		d.await("it is written", func() bool { return tail(h) > 20 })
	}
	end.Store(true)
	all.Wait()
	d.await("the files of all before are set aside", func() bool {
		deleted, err := mem.ReadDir("deleted")
		return err == nil && len(deleted) == 2*int(rounds-1) // values and counters
	})
	check := func(d *diskWorld) {
		t.Helper()
		h := d.target(name, 0, local(rounds)).Shard
		for c := range 3 {
			for n := range 5 {
				key := fmt.Sprint(c, "/", n)
				want, ok := last.Load(key)
				if v, there := h.Cache.Get(key, d.millis()); ok && (!there || string(v.Value) != want) {
					t.Errorf("%s is %s, its writer was told %v", key, v.Value, want)
				}
			}
		}
	}
	check(d)
	d.drain()
	n := newDiskWorld(t, mem)
	n.desire(made)
	check(n)
}
