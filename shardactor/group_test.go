package shardactor

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// worker asks a group, one request at a time.
type worker struct {
	t    testing.TB
	h    *Handle
	name string
	conn groupcore.Conn
	out  chan any
	// waits is called now and then while an answer is awaited: what failed is written again after a pause, and only the test moves the clock.
	waits func()
}

func newWorker(t testing.TB, h *Handle, name string, conn groupcore.Conn) *worker {
	return &worker{t: t, h: h, name: name, conn: conn, out: make(chan any, 16)}
}

func (w *worker) AnswerGroup(_ shardcore.Token, a *groupcore.Answer) { w.out <- *a }
func (w *worker) Deliver(_ shardcore.Token, list []groupcore.Handed) {
	w.out <- append([]groupcore.Handed{}, list...)
}
func (w *worker) Drop(shardcore.Token) {}
func (w *worker) Flush()               {}

func (w *worker) Fetch(_ shardcore.Token, offsets []id.Offset, done func(GroupRead)) {
	go func() {
		found := make([]bool, len(offsets))
		for i, o := range offsets {
			got, err := w.h.History.Read(context.Background(), o, math.MaxUint64, 1, 1, nil)
			found[i] = err == nil && len(got) == 1 && got[0].Base <= o
		}
		done(GroupRead{Found: found})
	}()
}

func (w *worker) ask(in groupcore.Input) any {
	w.t.Helper()
	m := &GroupRequest{Group: w.name, In: in}
	m.To(w, 1)
	if err := w.h.Ref.TrySend(m, Size(m)); err != nil {
		w.t.Fatal(err)
	}
	over, look := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for {
		select {
		case a := <-w.out:
			return a
		case <-look.C:
			if w.waits != nil {
				w.waits()
			}
		case <-over:
			w.t.Fatalf("%T was not answered", in)
			return nil
		}
	}
}

func (w *worker) poll(most uint32) []groupcore.Handed {
	w.t.Helper()
	switch a := w.ask(&groupcore.Poll{Conn: w.conn, Max: most}).(type) {
	case []groupcore.Handed:
		return a
	default:
		w.t.Fatalf("poll: %+v", a)
	}
	return nil
}

func (w *worker) do(in groupcore.Input) groupcore.Answer {
	w.t.Helper()
	a, ok := w.ask(in).(groupcore.Answer)
	if !ok {
		w.t.Fatalf("%T was answered records", in)
	}
	return a
}

func (w *worker) ack(o id.Offset) {
	w.t.Helper()
	if a := w.do(&groupcore.Ack{Offset: o}); a.Refusal != nil {
		w.t.Fatalf("ack %d: %v", o, a.Refusal)
	}
}

func (d *diskWorld) streamShard(name string) *Handle {
	d.t.Helper()
	a := durableStream(name, 1, 1)
	d.desire(a)
	return d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard
}

func TestSettlementsOutliveAKillAndClaimsDoNot(t *testing.T) { // I1 as amended by decision 17
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	h := d.streamShard("jobs")
	for i := range 10 {
		send(t, h, message(fmt.Sprint(i)))
	}
	w := newWorker(t, h, "workers", 1)
	if got := w.poll(5); len(got) != 5 || got[4].Offset != 4 || got[0].Attempts != 1 {
		t.Fatalf("%+v", got)
	}
	w.ack(0)
	w.ack(4)
	if a := w.do(groupcore.Describe{}); !a.Info.Exists || a.Info.Cursor != 1 || a.Info.Tail != 10 || a.Info.InFlight != 3 {
		t.Fatalf("%+v", a.Info)
	}

	n := newDiskWorld(t, mem.Clone())
	h = n.streamShard("jobs")
	w = newWorker(t, h, "workers", 1)
	got := map[id.Offset]uint32{}
	for len(got) < 8 {
		for _, r := range w.poll(100) {
			got[r.Offset] = r.Attempts
		}
	}
	for o := id.Offset(0); o < 10; o++ {
		_, there := got[o]
		if want := o != 0 && o != 4; there != want {
			t.Fatalf("after a kill %d was handed out: %v; all: %v", o, there, got)
		}
	}
	if got[1] != 2 || got[9] != 1 {
		t.Fatalf("delivery numbers: %v", got)
	}
	for o := range got {
		w.ack(o)
	}
	if a := w.do(groupcore.Describe{}); a.Info.Cursor != 10 || a.Info.InFlight != 0 || a.Info.Owed != 0 {
		t.Fatalf("%+v", a.Info)
	}
}

func TestAPollThatWaitsIsWokenByAPublish(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	h := d.streamShard("jobs")
	w := newWorker(t, h, "workers", 1)
	m := &GroupRequest{Group: "workers", In: &groupcore.Poll{Conn: 1, Max: 10, Wait: time.Minute}}
	m.To(w, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	newWorker(t, h, "workers", 2).do(groupcore.Describe{}) // it was taken
	send(t, h, message("x"))
	select {
	case a := <-w.out:
		if list, ok := a.([]groupcore.Handed); !ok || len(list) != 1 {
			t.Fatalf("%+v", a)
		}
	case <-time.After(patience):
		t.Fatal("it was not woken")
	}
}

func TestWhatNobodyFinishesBecomesADeadLetterAndOutlivesAKill(t *testing.T) { // I6, I8
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	h := d.streamShard("jobs")
	send(t, h, message("poison"))
	send(t, h, message("good"))
	w := newWorker(t, h, "workers", 1)
	failures := 0
	for failures < 5 {
		for _, r := range w.poll(1) {
			if r.Offset == 1 {
				w.ack(1)
				continue
			}
			if a := w.do(groupcore.Nack{Conn: 1, Offset: 0, Attempts: r.Attempts}); a.Refusal != nil {
				t.Fatalf("nack of %+v: %v", r, a.Refusal)
			}
			failures++
		}
		d.clock.Advance(5 * time.Second)
	}
	list := w.do(groupcore.ListDead{Max: 10})
	for len(list.Dead) == 0 {
		list = w.do(groupcore.ListDead{Max: 10})
	}
	if len(list.Dead) != 1 || list.Dead[0] != 0 {
		t.Fatalf("%+v", list)
	}
	w.do(groupcore.Discard{Offset: 99}) // answered when what was written before it is durable
	n := newDiskWorld(t, mem.Clone())
	h = n.streamShard("jobs")
	w = newWorker(t, h, "workers", 1)
	if got := w.do(groupcore.ListDead{Max: 10}); len(got.Dead) != 1 {
		t.Fatalf("%+v", got)
	}
	if a := w.do(groupcore.Redrive{Offset: 0}); a.Refusal != nil {
		t.Fatal(a.Refusal)
	}
	if got := w.poll(10); len(got) == 0 || got[0].Offset != 0 || got[0].Attempts != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestADeletedStreamTakesItsGroupsAlong(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	h := d.streamShard("jobs")
	send(t, h, message("x"))
	w := newWorker(t, h, "workers", 1)
	w.poll(1)
	w.ack(0)
	d.desire()
	d.await("no log is open", func() bool { return len(d.disks.after(turn{}, 10)) == 0 })
	a := durableStream("jobs", 2, 1)
	d.desire(a)
	h = d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard
	send(t, h, message("y"))
	w = newWorker(t, h, "workers", 1)
	if got := w.poll(1); len(got) != 1 || got[0].Offset != 0 || got[0].Attempts != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestTheNamesOfGroupsAreThoseThatHaveAPosition(t *testing.T) {
	mem := vfs.NewMem()
	names := func(h *Handle, most int) []string {
		t.Helper()
		told := make(chan []string, 1)
		m := &GroupNames{Max: most, Done: func(list []string, f *wire.Refusal) {
			if f != nil {
				t.Error(f)
			}
			told <- list
		}}
		if err := h.Ref.TrySend(m, Size(m)); err != nil {
			t.Fatal(err)
		}
		select {
		case list := <-told:
			return list
		case <-time.After(patience):
			t.Fatal("not told")
		}
		return nil
	}
	d := newDiskWorld(t, mem)
	h := d.streamShard("jobs")
	if got := names(h, 10); len(got) != 0 {
		t.Fatalf("%q before there is any", got)
	}
	send(t, h, message("x"))
	for _, name := range []string{"b", "a", "c"} {
		w := newWorker(t, h, name, 1)
		w.poll(1)
		w.ack(0)
	}
	if got := names(h, 10); fmt.Sprint(got) != "[a b c]" {
		t.Fatalf("%q", got)
	}
	if got := names(h, 2); fmt.Sprint(got) != "[a b]" {
		t.Fatalf("%q", got)
	}
	if a := newWorker(t, h, "b", 1).do(groupcore.Remove{}); !a.Existed {
		t.Fatalf("%+v", a)
	}
	if got := names(h, 10); fmt.Sprint(got) != "[a c]" {
		t.Fatalf("%q after one was removed", got)
	}
}
