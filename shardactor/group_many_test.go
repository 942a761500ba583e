package shardactor

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
)

// pollAll polls so many groups of a shard once each, a mailbox full at a time, and fails unless each is answered.
func pollAll(t testing.TB, h *Handle, groups int) {
	t.Helper()
	out := make(chan any, 256)
	sent, answered := 0, 0
	for answered < groups {
		for ; sent < groups && sent-answered < cap(out); sent++ {
			w := &worker{t: t, h: h, name: fmt.Sprintf("group-%06d", sent), conn: 1, out: out}
			w.begin(shardcore.Token(sent), &groupcore.Poll{Conn: 1, Max: 1})
		}
		select {
		case a := <-out:
			if _, ok := a.([]groupcore.Handed); !ok {
				t.Fatalf("a poll is answered %+v", a)
			}
			answered++
		case <-time.After(patience):
			t.Fatalf("%d of %d polls are answered", answered, groups)
		}
	}
}

// idleGroups is the disk of a broker with so many groups of one shard.
func idleGroups(t testing.TB, groups int, settings func(*diskSetup)) *vfs.Mem {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, settings)
	pollAll(t, d.streamShard("jobs"), groups)
	d.stop()
	return mem
}

func roomForAll(x *diskSetup) {
	x.disk.Groups = DefaultGroupSettings()
	x.disk.Groups.PerShard = 1 << 20
}

// Expected: what one group costs does not depend on how many there are: an actor, a look at its own keys, and its share of a write.
func BenchmarkFirstPollOfEachIdleGroupAfterARestart(b *testing.B) {
	for _, groups := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			mem := idleGroups(b, groups, roomForAll)
			for range b.N {
				b.StopTimer()
				d := newDiskWorld(b, mem.Clone(), roomForAll)
				h := d.streamShard("jobs")
				newWorker(b, h, "one", 1).do(groupcore.Describe{})
				b.StartTimer()
				pollAll(b, h, groups)
				b.StopTimer()
				d.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(groups), "ns/group")
		})
	}
}
