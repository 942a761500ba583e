package shardactor

import (
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/vfs"
)

// A group that is asked in the very turn in which it has been idle for long enough holds claims again: it is not let go.
func TestAGroupThatIsAskedWhenItIsIdleKeepsItsClaims(t *testing.T) {
	settings := DefaultGroupSettings()
	settings.Options.IdleAfter = 2 * time.Second
	d := newDiskWorld(t, vfs.NewMem(), func(s *diskSetup) { s.disk.Groups = settings })
	h := d.streamShard("jobs")
	send(t, h, message("a"))
	w := newWorker(t, h, "workers", 1)
	w.poll(1)
	w.do(&groupcore.Ack{Offset: 0}) // there is a group, and nothing in its hands
	path := ""
	list, _, err := d.sys.Faults().List("", actors.FaultListMax)
	for _, a := range list {
		if a.Kind == "group" {
			path = a.Path
		}
	}
	if err != nil || path == "" {
		t.Fatalf("no group runs: %v", err)
	}
	if err := d.sys.Faults().Pause(path, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	send(t, h, message("b"))
	d.clock.Advance(3 * time.Second)
	m := &GroupRequest{Group: "workers", In: &groupcore.Poll{Conn: 1, Max: 10}}
	m.To(w, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	send(t, h, message("c")) // behind the poll: the group has it
	if err := d.sys.Faults().Heal(path); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-w.out:
		if got, ok := a.([]groupcore.Handed); !ok || len(got) == 0 || got[0].Offset != 1 {
			t.Fatalf("%+v", a)
		}
	case <-time.After(patience):
		t.Fatal("the poll was not answered")
	}
	for _, r := range newWorker(t, h, "workers", 2).poll(10) {
		if r.Offset == 1 {
			t.Fatalf("handed out again while its claim stands: %+v", r)
		}
	}
}
