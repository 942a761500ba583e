package shardactor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// letGo is a shard that is about to let go of its one group at rest. What is sent to it before the returned function is called it finds in the
// same turn, in which the group has been told to end and nobody knows yet that it has.
func letGo(t *testing.T, d *diskWorld, h *Handle, w *worker, idleAfter time.Duration) (look func()) {
	t.Helper()
	written(t, h, 0, "0")
	w.poll(1)
	w.ack(0)
	w.do(groupcore.Discard{Offset: 99}) // all is written
	shard := d.pathOf("shard")
	d.must(d.sys.Faults().Pause(shard, actors.FaultTimeMax))
	t.Cleanup(func() { d.sys.Faults().HealAll() }) // a test that failed ends, too
	d.clock.Advance(idleAfter)
	d.await("the group says that it rests", func() bool {
		list, _, err := d.sys.Faults().List("", actors.FaultListMax)
		d.must(err)
		return slices.ContainsFunc(list, func(a actors.ActorInfo) bool { return a.Path == shard && a.MailboxItems > 0 })
	})
	return func() { d.must(d.sys.Faults().Heal(shard)) }
}

func restingGroups(change func(*GroupSettings)) func(*diskSetup) {
	settings := DefaultGroupSettings()
	settings.Options.IdleAfter = time.Second
	change(&settings)
	return func(s *diskSetup) { s.disk.Groups = settings }
}

// Requests for a group that is let go of wait for the one that comes after it, bounded in bytes and in number; what is beyond is overloaded
// at once, and what waits is answered by the next one, in its order.
func TestWhatWaitsForAGroupThatIsLetGoIsBounded(t *testing.T) {
	for _, bound := range []string{"bytes", "number"} {
		t.Run(bound, func(t *testing.T) {
			d := newDiskWorld(t, vfs.NewMem(), restingGroups(func(s *GroupSettings) {
				if s.Door.MaxWaiting, s.Door.MaxBytes = 1000, 10<<10; bound == "number" {
					s.Door.MaxWaiting, s.Door.MaxBytes = 10, 1<<20
				}
			}))
			h := d.streamShard("jobs")
			w := newWorker(t, h, strings.Repeat("g", groupcore.MaxGroupBytes), 1)
			look := letGo(t, d, h, w, time.Second)
			poll := func() *groupcore.Poll {
				return &groupcore.Poll{Conn: 1, Member: strings.Repeat("m", 1024-groupRequestBytes-groupcore.MaxGroupBytes), Max: 1, Wait: time.Minute}
			}
			for i := range 15 {
				w.begin(shardcore.Token(i), poll())
			}
			look()
			for range 5 {
				if f := w.refusal(); f.Code != wire.CodeOverloaded || f.Retry != wire.RetryAfter || f.RetryAfterMS == 0 {
					t.Fatalf("one that is too many: %+v", f)
				}
			}
			written(t, h, 1, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
			for range 10 {
				select {
				case a := <-w.out:
					if list, ok := a.([]groupcore.Handed); !ok || len(list) != 1 {
						t.Fatalf("%+v", a)
					}
				case <-time.After(patience):
					t.Fatal("one that waited was not answered")
				}
			}
		})
	}
}

// Whoever waits for a group that is let go of is answered when its connection is closed, and the others by the group that comes after it.
func TestWhoWaitsForAGroupThatIsLetGoIsAnswered(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), restingGroups(func(*GroupSettings) {}))
	h := d.streamShard("jobs")
	w, gone := newWorker(t, h, "workers", 1), newWorker(t, h, "workers", 2)
	look := letGo(t, d, h, w, time.Second)
	gone.begin(1, &groupcore.Poll{Conn: 2, Max: 1, Wait: time.Minute})
	w.begin(1, groupcore.Describe{})
	closed := &GroupGone{Group: "workers", Conn: 2}
	if err := h.Ref.TrySend(closed, Size(closed)); err != nil {
		t.Fatal(err)
	}
	look()
	for _, x := range []*worker{gone, w} {
		select {
		case a := <-x.out:
			list, poll := a.([]groupcore.Handed)
			if n, _ := a.(groupcore.Answer); (x == gone) != poll || len(list) > 0 || x == w && (n.Refusal != nil || n.Info.Cursor != 1) {
				t.Fatalf("%+v", a)
			}
		case <-time.After(patience):
			t.Fatal("not answered")
		}
	}
}
