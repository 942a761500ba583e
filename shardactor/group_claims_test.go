package shardactor

import (
	"strconv"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// Records in flight are bounded in bytes over all groups: one that finds no room goes on with the few that each may always have, and gets more
// when others have settled, are removed, or fail.
func TestRecordsInFlightAreBoundedOverAllGroups(t *testing.T) {
	const share = 128 // records
	settings := DefaultGroupSettings()
	settings.Claims = groupcore.ClaimLimits{Tenant: share * groupcore.ClaimBytes, Node: 2 * share * groupcore.ClaimBytes}
	d := newDiskWorld(t, vfs.NewMem(), func(s *diskSetup) { s.disk.Groups = settings })
	h := d.streamShard("jobs")
	texts := make([]string, 400)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	written(t, h, 0, texts...)
	hoarder, other := newWorker(t, h, "hoarder", 1), newWorker(t, h, "other", 2)
	var held []id.Offset
	for _, r := range append(hoarder.poll(1000), hoarder.poll(1000)...) {
		held = append(held, r.Offset)
	}
	if n := d.disks.claims.used(); len(held) != share+groupcore.FreeClaims || n != share*groupcore.ClaimBytes {
		t.Fatalf("%d records are handed out, %d bytes are counted", len(held), n)
	}
	for range 3 {
		got := other.poll(1000)
		if len(got) != groupcore.FreeClaims || len(other.poll(1000)) != 0 {
			t.Fatalf("%d records are handed out to another group", len(got))
		}
		for _, r := range got {
			other.ack(r.Offset)
		}
	}
	waits := func(w *worker) {
		w.begin(1, &groupcore.Poll{Conn: w.conn, Max: 1000, Wait: time.Minute})
		newWorker(t, h, w.name, 3).do(groupcore.Describe{}) // it was taken
	}
	other.poll(1000)
	waits(other)
	for _, o := range held {
		hoarder.ack(o)
	}
	more := func(w *worker, what string) {
		select {
		case a := <-w.out:
			if got, ok := a.([]groupcore.Handed); !ok || len(got) < share/2 {
				t.Fatalf("%s: %+v", what, a)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the poll waits", what)
		}
	}
	more(other, "others have settled")
	d.await("all is given to the one that asks", func() bool { return len(other.poll(1000)) == 0 && d.disks.claims.used() == share*groupcore.ClaimBytes })
	hoarder.poll(1000)
	waits(hoarder)
	list, _, err := d.sys.Faults().List("", actors.FaultListMax)
	d.must(err)
	for _, a := range list {
		if a.Kind == "group" && a.Path[len(a.Path)-1] == '2' { // it came second
			d.must(d.sys.Faults().Crash(a.Path))
		}
	}
	more(hoarder, "a group has failed")
	hoarder.do(groupcore.Remove{})
	other.do(groupcore.Remove{})
	d.await("everything is given back", func() bool { return d.disks.claims.used() == 0 })
}
