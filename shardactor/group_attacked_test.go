package shardactor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// These are what an attacker found.

// pathOf is where the one actor of a kind is.
func (d *diskWorld) pathOf(kind string) string {
	d.t.Helper()
	list, _, err := d.sys.Faults().List("", actors.FaultListMax)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, a := range list {
		if a.Kind == kind {
			return a.Path
		}
	}
	d.t.Fatalf("no %s runs: %+v", kind, list)
	return ""
}

// must fails the test on an error.
func (d *diskWorld) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// send sends a request whose answer is taken later.
func (w *worker) send(in groupcore.Input) {
	w.t.Helper()
	m := &GroupRequest{Group: w.name, In: in}
	m.To(w, 1)
	if err := w.h.Ref.TrySend(m, Size(m)); err != nil {
		w.t.Fatal(err)
	}
}

func TestPublishersThatFillTheMailboxOfTheShardFailNoAck(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	h := d.streamShard("jobs")
	written(t, h, 0, "0", "1", "2")
	w := newWorker(t, h, "workers", 1)
	w.poll(1)
	w.do(groupcore.Discard{Offset: 99}) // all is written
	group, shard := d.pathOf("group"), d.pathOf("shard")
	d.must(d.sys.Faults().Pause(group, 10*time.Minute))
	w.send(&groupcore.Ack{Offset: 0})
	written(t, h, 3, "3") // the shard has passed it on
	d.must(d.sys.Faults().Pause(shard, 10*time.Minute))
	r, n := newReplies(), shardcore.Token(0)
	for ; ; n++ {
		m := message("x")
		m.To(r, n)
		if err := h.Ref.TrySend(m, Size(m)); errors.Is(err, actors.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	d.must(d.sys.Faults().Heal(group))
	d.await("the group waits for room", func() bool {
		next, ok := d.clock.Next()
		return ok && !next.After(d.clock.Now().Add(resendAfter))
	})
	d.must(d.sys.Faults().Heal(shard))
	for i := range n {
		r.wait(t, i)
	}
	var a any
	d.await("the ack is answered", func() bool {
		d.clock.Advance(time.Millisecond)
		select {
		case a = <-w.out:
			return true
		default:
			return false
		}
	})
	if x := a.(groupcore.Answer); x.Refusal != nil {
		t.Errorf("the ack, while %d publishes waited for the shard: %v", n, x.Refusal)
	}
	if got := newWorker(t, h, "workers", 2).poll(1); len(got) == 0 {
		t.Error("nothing is handed out")
	}
}

// Where logs are synced by a timer, each by its own, a position that counts on a dead letter is never on the device before it.
func TestAPowerCutInPeriodicModeLosesNoDeadLetter(t *testing.T) {
	periodic := func(x *diskSetup) { x.store.Fsync = disklog.Periodic }
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, periodic)
	h := d.streamShard("jobs")
	written(t, h, 0, "poison", "good")
	log := d.listed(1)[0].file
	d.await("the records are on the device", func() bool {
		d.clock.Advance(300 * time.Millisecond)
		_, durable, _ := log.Bounds()
		return durable == 2
	})
	w := newWorker(t, h, "workers", 1)
	w.poll(2)
	w.do(groupcore.Discard{Offset: 99})
	held := d.fault.Add(vfs.Rule{Match: func(name string) bool { return strings.HasPrefix(name, "dead-letters/") }, Calls: []vfs.Call{vfs.CallSync}, Block: true})
	w.send(groupcore.GiveUp{Offset: 0})
	for reached := false; !reached; {
		select {
		case <-held.Reached():
			reached = true
		case <-w.out:
			t.Fatal("answered before the dead letter was synced")
		case <-time.After(patience):
			t.Fatal("no sync")
		}
	}
	for range 20 { // time enough for the cursors
		d.clock.Advance(300 * time.Millisecond)
	}
	cut := mem.CrashHard()
	d.fault.Set(nil)

	n := newDiskWorld(t, cut, periodic)
	h = n.streamShard("jobs")
	w = newWorker(t, h, "workers", 1)
	got, list := w.poll(10), w.do(groupcore.ListDead{Max: 10})
	if len(list.Dead) == 0 && (len(got) == 0 || got[0].Offset != 0) {
		t.Errorf("the record that was given up on is neither listed nor owed: %+v", got)
	}
}

// What a group that failed had sent to be written is not written behind the back of the one that comes after it.
func TestAGroupThatComesAfterAFailureKnowsWhatTheOneBeforeHadSent(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	h := d.streamShard("jobs")
	written(t, h, 0, "0", "1", "2", "3", "4", "5")
	w := newWorker(t, h, "workers", 1)
	w.poll(3)
	w.do(groupcore.Discard{Offset: 99}) // all is written
	group, shard := d.pathOf("group"), d.pathOf("shard")
	runs := func(path string, items int) bool {
		list, _, err := d.sys.Faults().List("", actors.FaultListMax)
		d.must(err)
		return slices.ContainsFunc(list, func(a actors.ActorInfo) bool { return a.Path == path && a.MailboxItems >= items })
	}
	d.must(d.sys.Faults().Pause(group, 10*time.Minute))
	w.send(groupcore.Seek{Start: wire.Start{Kind: wire.StartOffset, Offset: 1}})
	written(t, h, 6, "6")
	d.must(d.sys.Faults().Pause(shard, 10*time.Minute))
	other := newWorker(t, h, "workers", 2)
	other.send(&groupcore.Poll{Conn: 2, Max: 6}) // waits at the shard
	d.must(d.sys.Faults().Heal(group))           // it has its seek written: that is behind the poll
	d.await("the write is in the mailbox", func() bool { return runs(shard, 2) })
	d.must(d.sys.Faults().Crash(group))
	d.await("the group is gone", func() bool { return !runs(group, 0) })
	d.must(d.sys.Faults().Heal(shard))
	for _, w := range []*worker{w, other} {
		select {
		case <-w.out:
		case <-time.After(patience):
			t.Fatal("not answered")
		}
	}
	acked := map[id.Offset]bool{}
	d.await("records are handed out", func() bool { // it is brought up again when all was taken
		got, _ := other.ask(&groupcore.Poll{Conn: 2, Max: 6}).([]groupcore.Handed)
		for _, r := range got {
			if r.Offset > 1 { // somebody keeps the others
				other.ack(r.Offset)
				acked[r.Offset] = true
			}
		}
		return len(acked) > 3
	})
	n := newDiskWorld(t, mem.Clone())
	h = n.streamShard("jobs")
	w = newWorker(t, h, "workers", 1)
	for range 8 {
		for _, r := range w.poll(10) {
			if acked[r.Offset] {
				t.Errorf("%d was finished and answered, and is handed out again after a kill: %+v", r.Offset, r)
			}
		}
	}
}

func TestGroupsThatDoNotExistTakeNoPlaceOfThoseThatDo(t *testing.T) {
	settings := DefaultGroupSettings()
	settings.PerShard = 4
	d := newDiskWorld(t, vfs.NewMem(), func(s *diskSetup) { s.disk.Groups = settings })
	h := d.streamShard("jobs")
	written(t, h, 0, "0")
	for i := range 20 {
		newWorker(t, h, fmt.Sprint("nobody", i), 1).do(groupcore.Describe{})
	}
	if got := newWorker(t, h, "workers", 1).poll(1); len(got) != 1 {
		t.Errorf("handed out: %+v", got)
	}
}

func TestTheMemoryOfGroupsIsBounded(t *testing.T) {
	const limit = 1 << 20
	settings := DefaultGroupSettings()
	settings.Kept = groupcore.ClaimsOf(limit)
	d := newDiskWorld(t, vfs.NewMem(), func(s *diskSetup) { s.disk.Groups = settings })
	h := d.streamShard("jobs")
	written(t, h, 0, "0")
	refused := 0
	var first *worker
	for i := range 100 {
		w := newWorker(t, h, fmt.Sprintf("%s-%04d", strings.Repeat("x", 240), i), 1)
		a, ok := w.ask(&groupcore.Poll{Conn: 1, Max: 1}).(groupcore.Answer)
		switch {
		case !ok:
			w.do(groupcore.Discard{Offset: 99}) // it is written
		case a.Refusal.Code != wire.CodeLimitExceeded:
			t.Fatalf("group %d: %v", i, a.Refusal)
		default:
			refused++
		}
		if i == 0 {
			first = w
		}
	}
	if used := d.disks.kept.used(); used > limit || used < limit/2 || refused == 0 {
		t.Errorf("%d bytes are used of a budget of %d, and %d groups were refused", used, limit, refused)
	}
	if used := d.disks.index.Used(); used != 0 {
		t.Errorf("groups take %d bytes from caches", used)
	}
	first.ack(0) // what there is goes on
}
