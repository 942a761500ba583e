package shardactor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
)

// coldCaches are so many caches whose one value is in the log alone.
func (d *diskWorld) coldCaches(n int, more ...route.Assignment) (list []*Handle) {
	d.t.Helper()
	var want []route.Assignment
	for i := range n {
		want = append(want, durableCache(fmt.Sprintf("users%02d", i)))
	}
	all := append(slices.Clone(want), more...)
	slices.SortFunc(all, func(a, b route.Assignment) int { return a.Name.Compare(b.Name) })
	d.desire(all...)
	for _, a := range want {
		h := d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard
		put(d.t, h, "k", coldValue)
		list = append(list, h)
	}
	return list
}

var coldValue = strings.Repeat("long", 100)

func inlineLittle(x *diskSetup) { x.disk.InlineBytes = 16 }

// Clients read from the disk as much as they may: the jobs of the pool need none of their places, so that deletes find their values and logs
// are opened.
func TestJobsOfTheDiskDoNotWaitForClientsThatRead(t *testing.T) {
	slots := diskpool.NewReadSlots(1)
	mem := vfs.NewMem()
	change := []func(*diskSetup){inlineLittle, func(x *diskSetup) { x.store.Slots = slots }}
	d := newDiskWorld(t, mem, change...)
	list := d.coldCaches(diskpool.DefaultWorkers().Work + 1)
	if err := slots.Acquire(context.Background(), t); err != nil {
		t.Fatal(err)
	}
	for _, h := range list {
		if a := ask(t, h, &CacheDelete{Key: "k"}); !a.Found || string(a.Value) != coldValue {
			t.Fatalf("found %v, %d bytes, %v", a.Found, len(a.Value), a.Refusal)
		}
	}
	again := newDiskWorld(t, mem.Clone(), change...)
	h := again.cacheShard("users00") // its log was read
	if _, ok := h.Cache.Get("k", again.millis()); ok {
		t.Fatal("what was removed is back")
	}
	slots.Release(t)
}

// The disk does not answer those who read the values of deletes, of many logs: everything else still finds a worker.
func TestColdReadsOfManyLogsLeaveWorkersToOthers(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), inlineLittle)
	list := d.coldCaches(diskpool.DefaultWorkers().Work + 4)
	hang := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Match: func(name string) bool { return strings.Contains(name, "users") }, Block: true})
	var waiting []*replies
	for _, h := range list {
		waiting = append(waiting, start(t, h, &CacheDelete{Key: "k"}))
	}
	<-hang.Reached()
	for i, h := range list { // and each of these had its turn
		put(t, h, fmt.Sprint("other", i), "short")
	}
	if n := d.pool.Stats().Jobs[diskpool.Work-1]; n.Running > coldRuns {
		t.Errorf("%d jobs are at it, want %d at most", n.Running, coldRuns)
	}
	a := durableStream("orders", 7, 1)
	var all []route.Assignment
	for i := range list {
		all = append(all, durableCache(fmt.Sprintf("users%02d", i)))
	}
	all = append(all, a)
	slices.SortFunc(all, func(a, b route.Assignment) int { return a.Name.Compare(b.Name) })
	d.want(all...)
	written(t, d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard, 0, "opened meanwhile")
	hang.Release()
	hang.Remove()
	for i, r := range waiting {
		if a := r.wait(t, 1); !a.Found || string(a.Value) != coldValue {
			t.Errorf("delete %d: found %v, %d bytes, %v", i, a.Found, len(a.Value), a.Refusal)
		}
	}
	d.await("all places are free", func() bool {
		c := &d.disks.cold
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.running == 0 && len(c.waiting) == 0
	})
}

func TestErrandsRunInOrderWithinTheirBound(t *testing.T) {
	e := errands{limit: 2}
	var begun []int
	for i := range 5 {
		e.begin(func() { begun = append(begun, i) })
	}
	for want := 2; want <= 5; want++ {
		if len(begun) != want || !slices.IsSorted(begun) {
			t.Fatalf("%v are let in, want the first %d", begun, want)
		}
		e.ended()
	}
	e.ended()
	if e.running != 0 || len(e.waiting) != 0 {
		t.Fatalf("%d run and %d wait", e.running, len(e.waiting))
	}
}
