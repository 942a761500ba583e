package shardactor

import (
	"testing"

	"github.com/felixd/felixd/storage/vfs"
)

// A stream changes its shape, and is deleted before the files have come to its new shard: they are set aside all the same, although the shard
// that has them was to leave them to its successor.
func TestFilesOnTheirWayToAShardThatIsDeletedAreSetAside(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*orders*/*", Times: 1, Block: true})
	a, other := durableStream("orders", 7, 1), durableStream("ticks", 8, 1)
	d.want(a)
	<-hang.Reached()
	a.Generation = 2
	d.want(a)
	d.target(a.Name, 0, func(x Target) bool { return x.Generation == 2 })
	d.want(other)
	written(t, d.shard(other.Name, 0, nil), 0, "the host has seen all of that")
	hang.Release()
	d.await("the files are set aside", func() bool {
		deleted, err := mem.ReadDir("deleted")
		return err == nil && len(deleted) == 1
	})
	d.drain()
	if n := mem.OpenFiles(); n != 0 {
		t.Fatalf("%d files are open after the end", n)
	}
}
