package shardactor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
)

// Also where puts are answered before they are synced, a compaction comes to its end, and what it removed is stored elsewhere before: no
// power cut after it takes a key away that the log's old head had.
func TestACompactionIsDurableInEveryMode(t *testing.T) {
	for _, mode := range []disklog.FsyncMode{disklog.OnCommit, disklog.Periodic, disklog.None} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			mem := vfs.NewMem()
			change := func(x *diskSetup) { x.store.SegmentBytes, x.store.Fsync = 64<<10, mode }
			d := newDiskWorld(t, mem, change)
			h := d.cacheShard("users")
			for i := range 20 {
				put(t, h, fmt.Sprint("keep", i), "v")
			}
			value := strings.Repeat("v", 4000)
			d.await("the log begins later", func() bool {
				put(t, h, "hot", value)
				d.clock.Advance(time.Millisecond)
				oldest, _ := h.Log.Bounds()
				return oldest > 20
			})
			image := mem.CrashHard()
			d.stop()
			n := newDiskWorld(t, image, change)
			h = n.cacheShard("users")
			for i := range 20 {
				if got := n.get(h, fmt.Sprint("keep", i)); got != fmt.Sprint("v@", i) {
					t.Errorf("keep%d is %s", i, got)
				}
			}
		})
	}
}
