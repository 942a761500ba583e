package shardactor

import (
	"syscall"
	"testing"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
)

// A shard that waits for its disk shows what is committed, and claims nothing, until its log fails: then it shows nothing any more.
func TestAShardThatWaitsForItsDiskShowsWhatIsCommittedUntilItsLogFails(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.stalls = true })
	a := durableCache("users")
	d.desire(a)
	h := d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard
	put(t, h, "k", "v")
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: cacheDir(disklog.Cache) + "/*.log", Block: true, Err: syscall.EIO})
	r := start(t, h, &CachePut{Key: "k", Value: []byte("new")})
	<-hang.Reached()
	d.stall()
	d.await("the right is given up", func() bool { return !h.Serving() })
	if l, ok := h.Cache.Get("k", 0); !h.Showing() || !ok || string(l.Value) != "v" {
		t.Errorf("shows: %v, %q %v", h.Showing(), l.Value, ok)
	}
	hang.Remove()
	if a := r.wait(t, 1); a.Refusal == nil {
		t.Fatalf("a put whose sync failed: %+v", a)
	}
	d.await("nothing is shown", func() bool { return !h.Showing() })
}
