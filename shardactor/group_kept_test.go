package shardactor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// keptKeys is room for so many groups of short names, and so many keys of theirs beyond those that each always has.
func keptKeys(groups, keys int) groupcore.ClaimLimits {
	key := groupcore.Kept("g", groupcore.FreeKeys+1) - groupcore.Kept("g", 0)
	n := int64(groups*groupcore.Kept("workers", 0)+keys*key) * groupcore.KeptUnit
	return groupcore.ClaimLimits{Tenant: n, Node: n}
}

func keptWorld(t *testing.T, mem *vfs.Mem, l groupcore.ClaimLimits) *diskWorld {
	settings := DefaultGroupSettings()
	settings.Kept, settings.Options.IdleAfter = l, time.Minute
	return newDiskWorld(t, mem, func(s *diskSetup) { s.disk.Groups = settings })
}

// shardsOf are the shards of a stream that is made, with so many records each.
func shardsOf(t *testing.T, d *diskWorld, shards uint32, records int) (list []*Handle) {
	a := durableStream("jobs", 1, shards)
	d.desire(a)
	for i := range shards {
		h := d.target(a.Name, i, func(x Target) bool { return x.State == route.Local }).Shard
		list = append(list, h)
		texts := make([]string, records)
		for n := range texts {
			texts[n] = fmt.Sprint(n)
		}
		if records > 0 {
			written(t, h, 0, texts...)
		}
	}
	return list
}

// kept is what the node counts beyond so many groups without keys, in bytes.
func (d *diskWorld) kept(groups int) int64 {
	return d.disks.kept.used() - int64(groups*groupcore.Kept("workers", 0))*groupcore.KeptUnit
}

// takeOdd hands out so many records, finishes every other one, and returns the others.
func takeOdd(w *worker, n int) (left []id.Offset) {
	for _, r := range w.poll(uint32(n)) {
		if r.Offset%2 == 1 {
			w.ack(r.Offset)
		} else {
			left = append(left, r.Offset)
		}
	}
	return left
}

// crash has all actors of a kind fail.
func (d *diskWorld) crash(kind string) {
	d.t.Helper()
	list, _, err := d.sys.Faults().List("", actors.FaultListMax)
	d.must(err)
	for _, a := range list {
		if a.Kind == kind {
			d.must(d.sys.Faults().Crash(a.Path))
		}
	}
}

// What the groups of all shards keep is bounded in bytes: where that is used up no group is made, those that keep much go on with few records at a
// time, everything is finished and nothing twice; then there is room again, and nothing is counted when the groups are gone.
func TestWhatGroupsOfAllShardsKeepIsBounded(t *testing.T) {
	const records, room = 120, 60
	d := keptWorld(t, vfs.NewMem(), keptKeys(2, room))
	shards := shardsOf(t, d, 2, records)
	var list []*worker
	left, seen := make([][]id.Offset, 2), make([]map[id.Offset]bool, 2)
	for i, h := range shards {
		list, seen[i] = append(list, newWorker(t, h, "workers", 1)), map[id.Offset]bool{}
		list[i].do(groupcore.Seek{Start: wire.Start{Kind: wire.StartEarliest}, IfNew: true})
	}
	poll := func(i int) (n int) {
		for _, r := range list[i].poll(100) {
			if seen[i][r.Offset] {
				t.Fatalf("%d is handed out twice", r.Offset)
			}
			seen[i][r.Offset] = true
			left[i] = append(left[i], r.Offset)
			n++
		}
		return n
	}
	limit := d.disks.kept.core.Limits().Node
	if n := poll(0); n < room || n > room+groupcore.FreeKeys {
		t.Fatalf("%d records are handed out where there is room for what %d leave", n, room)
	}
	if n := poll(1); n != groupcore.FreeKeys {
		t.Errorf("%d are handed out where there is no room", n)
	}
	if used := d.disks.kept.used(); used > limit || used < limit*9/10 {
		t.Errorf("%d bytes of %d are counted", used, limit)
	}
	third := newWorker(t, shards[1], "third", 1)
	for _, in := range []groupcore.Input{&groupcore.Poll{Conn: 1, Max: 1}, groupcore.Seek{Start: wire.Start{Kind: wire.StartLatest}}} {
		a, _ := third.ask(in).(groupcore.Answer)
		if a.Refusal == nil || a.Refusal.Code != wire.CodeLimitExceeded || !strings.Contains(a.Refusal.Message, "remove") {
			t.Errorf("%T of one group too many: %+v", in, a.Refusal)
		}
	}
	for i, w := range list {
		for w.do(groupcore.Describe{}).Info.Cursor < records {
			for _, o := range left[i] { // the even ones later
				if o%2 == 1 {
					w.ack(o)
				}
			}
			poll(i)
			for _, o := range left[i] {
				w.ack(o)
			}
			left[i] = nil
			if used := d.disks.kept.used(); used > limit {
				t.Fatalf("%d bytes of %d are counted", used, limit)
			}
			poll(i)
		}
	}
	if len(third.poll(1)) != 1 {
		t.Error("there is no room for a third group")
	}
	third.ack(0)
	d.await("only groups are counted", func() bool { return d.kept(2) == int64(groupcore.Kept("third", 0))*groupcore.KeptUnit })
	for _, w := range append(list, third) {
		w.do(groupcore.Remove{})
	}
	d.await("nothing is counted", func() bool { return d.disks.kept.used() == 0 })
}

// A start counts what the logs hold, however much it is, and with a smaller setting no group fails and none hands out what is finished. What a group at
// rest holds is what its logs say, also after it has failed, and its shard; and the end of the broker gives all back.
func TestWhatGroupsKeepIsCountedFromTheLogsAndGivenBackWithThem(t *testing.T) {
	mem := vfs.NewMem()
	d := keptWorld(t, mem, keptKeys(10, 1000))
	w := newWorker(t, shardsOf(t, d, 1, 100)[0], "workers", 1)
	left := takeOdd(w, 80)
	for _, o := range left[20:] {
		w.do(groupcore.GiveUp{Offset: o})
	}
	left = left[:20]
	if n := len(w.do(groupcore.ListDead{Max: 100}).Dead); n != 20 {
		t.Fatalf("%d dead letters", n)
	}
	// 20 records are open, of one run, and have settled ranges between them; those above are one.
	const keys = 20 + 20 + 1
	exact := int64(groupcore.Kept("workers", keys)-groupcore.Kept("workers", 0)) * groupcore.KeptUnit
	if n := d.kept(1); n < exact {
		t.Fatalf("%d bytes are counted for %d", n, exact)
	}
	d.crash("group")
	d.await("a group that has failed is counted as its log says", func() bool { return d.kept(1) == exact })
	w.do(groupcore.Describe{})
	d.crash("shard")
	d.await("so it is when the shard has failed", func() bool { return d.disks.kept.used() == 0 || d.kept(1) == exact })
	name := durableStream("jobs", 1, 1).Name
	w.h = d.target(name, 0, func(t Target) bool { return t.State == route.Local && t.Shard != w.h }).Shard
	d.await("and comes back", func() bool { return d.kept(1) == exact })
	d.stop()
	if n := d.disks.kept.used(); n != 0 {
		t.Errorf("%d bytes are counted when the broker has ended", n)
	}

	d = keptWorld(t, mem, keptKeys(1, 17)) // of a broker that has less
	h := shardsOf(t, d, 1, 0)[0]
	d.await("what the logs hold is counted", func() bool { return d.kept(1) == exact })
	w = newWorker(t, h, "workers", 1)
	for len(left) > 0 {
		got := w.poll(10)
		if len(got) != 1 || got[0].Offset != left[0] {
			t.Fatalf("handed out: %+v, and %v are open", got, left)
		}
		w.ack(left[0])
		left = left[1:]
	}
	for _, o := range w.do(groupcore.ListDead{Max: 100}).Dead {
		w.do(groupcore.Discard{Offset: o})
	}
	d.await("a group without keys is left", func() bool { return d.kept(1) == 0 })
	d.clock.Advance(time.Hour) // and rests
	d.await("it has left the memory", func() bool {
		list, _, err := d.sys.Faults().List("", actors.FaultListMax)
		d.must(err)
		for _, a := range list {
			if a.Kind == "group" {
				d.clock.Advance(time.Minute)
				return false
			}
		}
		return true
	})
	if n := d.kept(1); n != 0 {
		t.Errorf("%d bytes are counted for what a group at rest keeps beyond itself", n)
	}
	if got := w.poll(100); len(got) != 20 {
		t.Errorf("when it is back it hands out %+v", got)
	}
}

// What a group that has failed had on its way to its logs counts when it comes there, although nobody runs that could say so.
func TestWhatAFailedGroupHadOnItsWayIsCounted(t *testing.T) {
	d := keptWorld(t, vfs.NewMem(), keptKeys(10, 1000))
	w := newWorker(t, shardsOf(t, d, 1, 100)[0], "workers", 1)
	takeOdd(w, 80)
	count := func(keys int) int64 {
		return int64(groupcore.Kept("workers", keys)-groupcore.Kept("workers", 0)) * groupcore.KeptUnit
	}
	letters := func(name string) bool { return strings.HasPrefix(name, "dead-letters/") }
	held := d.fault.Add(vfs.Rule{Match: letters, Calls: []vfs.Call{vfs.CallSync}, Block: true})
	w.send(groupcore.GiveUp{Offset: 40})
	select {
	case <-held.Reached():
	case <-time.After(patience):
		t.Fatal("no sync")
	}
	d.crash("group")
	d.await("it is counted as its logs say", func() bool { return d.kept(1) == count(41) })
	held.Release()
	held.Remove()
	d.await("what comes there is counted, too", func() bool { return d.kept(1) == count(42) })
}
