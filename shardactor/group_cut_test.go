package shardactor

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// unsyncedModes are those in which a power cut may take records that were acknowledged, and leave what groups have noted of them.
func unsyncedModes(t *testing.T, run func(t *testing.T, mode disklog.FsyncMode)) {
	for _, mode := range []disklog.FsyncMode{disklog.Periodic, disklog.None} {
		t.Run(mode.String(), func(t *testing.T) { run(t, mode) })
	}
}

// afterCut is a process over what a power cut has left. Nothing is synced in it unless the test says so: its clock stands still.
func afterCut(t *testing.T, mem *vfs.Mem, mode disklog.FsyncMode, change ...func(*diskSetup)) (*diskWorld, *Handle) {
	t.Helper()
	d := afterCutOf(t, mem, mode, change...)
	return d, d.streamShard("jobs")
}

func afterCutOf(t *testing.T, mem *vfs.Mem, mode disklog.FsyncMode, change ...func(*diskSetup)) *diskWorld {
	t.Helper()
	return newDiskWorld(t, mem, append(change, func(x *diskSetup) { x.store.Fsync = mode })...)
}

// synced brings the log of a kind to the device.
func (d *diskWorld) synced(kind disklog.Kind) {
	d.t.Helper()
	var file *disklog.Log
	d.await("the "+kind.String()+" is in the janitor's list", func() bool {
		for _, f := range d.disks.after(turn{}, 4) {
			if f.spec.Kind == kind {
				file = f.file
			}
		}
		return file != nil
	})
	_, _, written := file.Bounds()
	file.Sync()
	d.await("the sync of a log", func() bool {
		_, durable, _ := file.Bounds()
		return durable >= written
	})
}

// cut is the disk after a power cut that took all that was not synced.
func (d *diskWorld) cut() *vfs.Mem { return d.mem.CrashHard() }

// fewGroups has a shard keep so many groups in memory.
func fewGroups(n int) func(*diskSetup) {
	return func(x *diskSetup) {
		x.disk.Groups = DefaultGroupSettings()
		x.disk.Groups.PerShard = n
	}
}

// finishes has a group finish everything below an offset, but for what it gives up on.
func finishes(t *testing.T, h *Handle, group string, end id.Offset, givesUp ...id.Offset) {
	t.Helper()
	w := newWorker(t, h, group, 1)
	for _, r := range takes(t, w, 0, end) {
		if len(givesUp) > 0 && r == givesUp[0] {
			givesUp = givesUp[1:]
			if a := w.do(groupcore.GiveUp{Offset: r}); a.Refusal != nil {
				t.Fatal(a.Refusal)
			}
			continue
		}
		w.ack(r)
	}
	if a := w.do(groupcore.Describe{}); a.Info.Cursor != end {
		t.Fatalf("%+v", a.Info)
	}
}

// takes polls until a group has handed out everything from an offset to another, in order, and returns that.
func takes(t *testing.T, w *worker, from, to id.Offset) (list []id.Offset) {
	t.Helper()
	for next := from; next < to; {
		got := w.poll(100)
		if len(got) == 0 {
			t.Fatalf("group %s: offset %d is not handed out", w.name, next)
		}
		for _, r := range got {
			if r.Offset != next {
				t.Fatalf("group %s: %+v, want offset %d", w.name, r, next)
			}
			list = append(list, r.Offset)
			next++
		}
	}
	return list
}

// shortened is a disk after a power cut that took the records from 5 to 9, which the groups had finished, but for 7, which they had given up on.
func shortened(t *testing.T, mode disklog.FsyncMode, groups ...string) *vfs.Mem {
	t.Helper()
	d, h := afterCut(t, vfs.NewMem(), mode)
	written(t, h, 0, "0", "1", "2", "3", "4")
	d.synced(disklog.Stream)
	written(t, h, 5, "5", "6", "7", "8", "9")
	for _, g := range groups {
		finishes(t, h, g, 10, 7)
	}
	d.synced(disklog.Groups)
	defer d.stop()
	return d.cut()
}

// A power cut takes the end of a stream and leaves the notes of its groups. Records come in the place of the lost ones, and a second power cut
// comes before any group has written its notes anew: the notes are not believed of the new records, by no later process.
func TestASecondPowerCutMakesNobodyBelieveTheNotesOfLostRecords(t *testing.T) {
	unsyncedModes(t, func(t *testing.T, mode disklog.FsyncMode) {
		mem := shortened(t, mode, "workers")
		end := id.Offset(5)
		for range 3 {
			d, h := afterCut(t, mem, mode)
			written(t, h, end, fmt.Sprint("new ", end), fmt.Sprint("new ", end+1))
			d.synced(disklog.Stream)
			end += 2
			mem = d.cut()
			d.stop()
		}
		_, h := afterCut(t, mem, mode)
		w := newWorker(t, h, "workers", 1)
		if a := w.do(groupcore.ListDead{Max: 10}); len(a.Dead) > 0 {
			t.Fatalf("dead letters of records that were lost: %v", a.Dead)
		}
		takes(t, w, 5, end)
	})
}

// The same while the logs of the groups cannot be opened at all, and the stream goes on without them.
func TestNotesOfLostRecordsAreNotBelievedThatCouldNotBeReadWhenTheLogWasOpened(t *testing.T) {
	unsyncedModes(t, func(t *testing.T, mode disklog.FsyncMode) {
		mem := shortened(t, mode, "workers")
		end := id.Offset(5)
		for range 2 {
			d := afterCutOf(t, mem, mode)
			d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallOpen, vfs.CallReadDir}, Match: inGroups, Err: syscall.EIO})
			h := d.streamShard("jobs")
			written(t, h, end, fmt.Sprint("new ", end), fmt.Sprint("new ", end+1))
			d.synced(disklog.Stream)
			end += 2
			mem = d.cut()
			d.stop()
		}
		_, h := afterCut(t, mem, mode)
		w := newWorker(t, h, "workers", 1)
		if a := w.do(groupcore.ListDead{Max: 10}); len(a.Dead) > 0 {
			t.Fatalf("dead letters of records that were lost: %v", a.Dead)
		}
		takes(t, w, 5, end)
	})
}

// A group for which there was no place when the log was opened is asked for in a later process: it hands out what came in the place of the lost
// records, and in none after that what it has finished of it.
func TestAGroupThatIsAskedForMuchLaterHandsOutWhatCameInThePlaceOfLostRecords(t *testing.T) {
	unsyncedModes(t, func(t *testing.T, mode disklog.FsyncMode) {
		mem := shortened(t, mode, "a", "b", "c")
		d, h := afterCut(t, mem, mode, fewGroups(1))
		written(t, h, 5, "new 5", "new 6", "new 7")
		d.stop() // in good order: all of it is on the device

		d, h = afterCut(t, mem, mode)
		written(t, h, 8, "new 8")
		b := newWorker(t, h, "b", 1)
		for _, o := range takes(t, b, 5, 9) {
			if o != 6 {
				b.ack(o)
			}
		}
		d.synced(disklog.Stream)
		d.synced(disklog.Groups)
		mem = d.cut()

		_, h = afterCut(t, mem, mode)
		takes(t, newWorker(t, h, "b", 1), 6, 7)
		for _, group := range []string{"a", "c"} {
			w := newWorker(t, h, group, 1)
			if a := w.do(groupcore.ListDead{Max: 10}); len(a.Dead) > 0 {
				t.Fatalf("dead letters of records that were lost: %v", a.Dead)
			}
			takes(t, w, 5, 9)
		}
	})
}

// The logs of the groups are opened a while after the stream has gone on. What a group then finishes stays finished after the next power cut, and
// what it did not is handed out.
func TestGroupsThatAreOpenedLateFinishWhatCameInThePlaceOfLostRecordsOnce(t *testing.T) {
	unsyncedModes(t, func(t *testing.T, mode disklog.FsyncMode) {
		d := afterCutOf(t, shortened(t, mode, "workers"), mode)
		d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallOpen, vfs.CallReadDir}, Match: inGroups, Err: syscall.EIO})
		h := d.streamShard("jobs")
		written(t, h, 5, "new 5", "new 6", "new 7", "new 8")
		d.fault.Set(nil)
		w := newWorker(t, h, "workers", 1)
		for _, o := range d.takesOnceOpen(t, w, 5, 9) {
			if o != 7 {
				w.ack(o)
			}
		}
		if a := w.do(groupcore.GiveUp{Offset: 7}); a.Refusal != nil {
			t.Fatal(a.Refusal)
		}
		d.synced(disklog.Stream)
		d.synced(disklog.Groups)

		n, h := afterCut(t, d.cut(), mode)
		written(t, h, 9, "new 9")
		w = newWorker(t, h, "workers", 1)
		if a := w.do(groupcore.ListDead{Max: 10}); fmt.Sprint(a.Dead) != "[7]" {
			t.Fatalf("dead letters: %v, want [7]", a.Dead)
		}
		takes(t, w, 9, 10)
		n.stop()
	})
}

// takesOnceOpen is takes of a group whose logs could not be opened a moment ago.
func (d *diskWorld) takesOnceOpen(t *testing.T, w *worker, from, to id.Offset) []id.Offset {
	t.Helper()
	d.await("the logs of the groups are open", func() bool {
		d.clock.Advance(groupcore.DefaultDoorOptions().MaxRetry)
		a, ok := w.ask(groupcore.Describe{}).(groupcore.Answer)
		return ok && a.Refusal == nil
	})
	return takes(t, w, from, to)
}

// Power cuts at whatever operation of the disk, one process after the other, while records come in the place of lost ones and a group works on
// them, or its logs cannot be opened: no record is finished or a dead letter without somebody having said so of that very record.
func TestNoPowerCutMakesAGroupFinishARecordInThePlaceOfALostOne(t *testing.T) {
	rounds := unlessRaced(6, 2)
	unsyncedModes(t, func(t *testing.T, mode disklog.FsyncMode) {
		first := shortened(t, mode, "workers")
		for round := range rounds {
			r := rand.New(rand.NewPCG(uint64(round), 5))
			c := &cutRun{t: t, r: r, mode: mode, said: map[string]bool{}}
			for _, text := range []string{"0", "1", "2", "3", "4"} {
				c.said[text] = true
			}
			mem := first.Clone()
			for range 1 + r.IntN(3) {
				mem = c.life(mem)
			}
			c.judge(mem)
		}
	})
}

// cutRun is one group over a few processes, each of which ends by a power cut.
type cutRun struct {
	t     *testing.T
	r     *rand.Rand
	mode  disklog.FsyncMode
	said  map[string]bool // of which records somebody said that they are finished, or to be given up
	count int
}

// life is one process, and what a power cut leaves at some moment of it.
func (c *cutRun) life(mem *vfs.Mem) *vfs.Mem {
	var mu sync.Mutex
	var image *vfs.Mem
	left, hard := 1+c.r.IntN(80), c.r.IntN(2) == 0
	some := rand.New(rand.NewPCG(c.r.Uint64(), 1))
	cut := func() *vfs.Mem {
		if hard {
			return mem.CrashHard()
		}
		return mem.Crash(some.IntN)
	}
	d := afterCutOf(c.t, mem, c.mode)
	if c.r.IntN(3) == 0 {
		d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallOpen, vfs.CallReadDir}, Match: inGroups, Times: 1 + c.r.IntN(3), Err: syscall.EIO})
	}
	mem.OnOp(func(vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			image = cut()
		}
	})
	h := d.streamShard("jobs")
	texts := stored(c.t, h)
	w := newWorker(c.t, h, "workers", 1)
	for range 1 + c.r.IntN(8) {
		switch c.r.IntN(5) {
		case 0, 1:
			c.count++
			texts = append(texts, fmt.Sprint("new ", c.count))
			written(c.t, h, id.Offset(len(texts)-1), texts[len(texts)-1])
		case 2, 3:
			list, _ := w.ask(&groupcore.Poll{Conn: 1, Max: uint32(1 + c.r.IntN(3))}).([]groupcore.Handed)
			for _, x := range list {
				switch c.r.IntN(3) {
				case 0:
					c.said[texts[x.Offset]] = true
					w.ask(&groupcore.Ack{Offset: x.Offset})
				case 1:
					c.said[texts[x.Offset]] = true
					w.ask(groupcore.GiveUp{Offset: x.Offset})
				}
			}
		case 4:
			if c.r.IntN(2) == 0 {
				d.synced(disklog.Stream)
			} else if len(d.disks.after(turn{}, 4)) == 3 {
				d.synced(disklog.Groups)
			}
		}
	}
	mem.OnOp(nil)
	mu.Lock()
	if image == nil {
		image = cut()
	}
	mu.Unlock() // an operation may be under way still, and wait for it
	d.stop()
	return image
}

// judge looks at all that the group has in the end.
func (c *cutRun) judge(mem *vfs.Mem) {
	c.t.Helper()
	d, h := afterCut(c.t, mem, c.mode)
	defer d.stop()
	texts := stored(c.t, h)
	w := newWorker(c.t, h, "workers", 1)
	kept := map[id.Offset]bool{}
	for _, o := range w.do(groupcore.ListDead{Max: 1000}).Dead {
		if kept[o] = true; !c.said[texts[o]] {
			c.t.Fatalf("record %q at %d is a dead letter, and nobody gave it up", texts[o], o)
		}
	}
	for list := w.poll(100); len(list) > 0; list = w.poll(100) {
		for _, x := range list {
			kept[x.Offset] = true
			w.ack(x.Offset)
		}
	}
	for o, text := range texts {
		if !c.said[text] && !kept[id.Offset(o)] {
			c.t.Fatalf("record %q at %d is lost for the group", text, o)
		}
	}
}
