package shardactor

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/groupcore"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// inGroups reports whether a file is of a log of groups.
func inGroups(name string) bool {
	return strings.HasPrefix(name, segment.Groups.Root()+"/") || strings.HasPrefix(name, segment.DeadLetters.Root()+"/")
}

// hungGroups is a stream's shard whose logs of groups are never opened, and the rule that holds them up.
func (d *diskWorld) hungGroups() (*Handle, *vfs.ActiveRule) {
	d.t.Helper()
	rule := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallMkdir}, Match: inGroups, Block: true})
	d.t.Cleanup(rule.Release)
	return d.streamShard("jobs"), rule
}

// begin sends a request and does not wait for its answer.
func (w *worker) begin(token shardcore.Token, in groupcore.Input) {
	w.t.Helper()
	m := &GroupRequest{Group: w.name, In: in}
	m.To(w, token)
	if err := w.h.Ref.TrySend(m, Size(m)); err != nil {
		w.t.Fatal(err)
	}
}

// stepped waits until a shard has looked at everything that it was sent, and at every moment that has come.
func stepped(t *testing.T, h *Handle) {
	t.Helper()
	for range 2 { // the turn that takes the first may have begun before
		told := make(chan struct{})
		m := &GroupNames{Max: 1, Done: func([]string, *wire.Refusal) { close(told) }}
		if err := h.Ref.TrySend(m, Size(m)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
		case <-time.After(patience):
			t.Fatal("the shard does not answer")
		}
	}
}

func (w *worker) refusal() wire.Refusal {
	w.t.Helper()
	select {
	case a := <-w.out:
		if x, ok := a.(groupcore.Answer); ok && x.Refusal != nil {
			return *x.Refusal
		}
		w.t.Fatalf("it was answered %+v", a)
	case <-time.After(patience):
		w.t.Fatal("it was not answered")
	}
	return wire.Refusal{}
}

// Requests that wait for the groups' logs to be opened are bounded in bytes and in number; what is beyond is overloaded at once, and what
// waits is let in when they are open.
func TestWhatWaitsForTheGroupsLogsIsBounded(t *testing.T) {
	for _, bound := range []string{"bytes", "number"} {
		t.Run(bound, func(t *testing.T) {
			settings := DefaultGroupSettings()
			if settings.Door.MaxWaiting, settings.Door.MaxBytes = 1000, 10<<10; bound == "number" {
				settings.Door.MaxWaiting, settings.Door.MaxBytes = 10, 1<<20
			}
			d := newDiskWorld(t, vfs.NewMem(), func(s *diskSetup) { s.disk.Groups = settings })
			h, rule := d.hungGroups()
			w := newWorker(t, h, strings.Repeat("g", groupcore.MaxGroupBytes), 1)
			poll := func() *groupcore.Poll {
				return &groupcore.Poll{Conn: 1, Member: strings.Repeat("m", 1024-groupRequestBytes-groupcore.MaxGroupBytes), Max: 1, Wait: time.Minute}
			}
			for i := range 10 {
				w.begin(shardcore.Token(i), poll())
			}
			<-rule.Reached()
			for range 5 {
				w.begin(99, poll())
				if f := w.refusal(); f.Code != wire.CodeOverloaded || f.Retry != wire.RetryAfter || f.RetryAfterMS == 0 {
					t.Fatalf("one that is too many: %+v", f)
				}
			}
			stepped(t, h)
			if len(w.out) != 0 {
				t.Fatalf("answered while the logs are not open: %+v", <-w.out)
			}
			rule.Release()
			written(t, h, 0, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
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

// Whoever waits for the groups' logs is answered by the time that it named, and by the stated one if it named none.
func TestWhoWaitsForTheGroupsLogsIsAnsweredInTime(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	h, rule := d.hungGroups()
	for _, x := range []struct {
		what string
		in   groupcore.Input
		wait time.Duration
	}{
		{"a poll that waits", &groupcore.Poll{Conn: 1, Max: 1, Wait: 5 * time.Second}, 5 * time.Second},
		{"a poll that waits for longer than any may", &groupcore.Poll{Conn: 1, Max: 1, Wait: time.Hour}, DefaultGroupSettings().Options.MaxWait},
		{"a poll that does not wait", &groupcore.Poll{Conn: 1, Max: 1}, DefaultGroupSettings().Door.Patience},
		{"an ack", &groupcore.Ack{Offset: 1}, DefaultGroupSettings().Door.Patience},
	} {
		w := newWorker(t, h, "workers", 1)
		w.begin(1, x.in)
		<-rule.Reached()
		stepped(t, h)
		d.clock.Advance(x.wait - 1)
		stepped(t, h)
		if len(w.out) != 0 {
			t.Fatalf("%s: answered before its time: %+v", x.what, <-w.out)
		}
		d.clock.Advance(1)
		if f := w.refusal(); f.Code != wire.CodeShardUnavailable || f.Retry != wire.RetryRetry {
			t.Fatalf("%s: %+v", x.what, f)
		}
	}
	written(t, h, 0, "the stream goes on")
}

// A poll that was let in late ends when it would have ended.
func TestTheWaitForTheGroupsLogsCounts(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	h, rule := d.hungGroups()
	w := newWorker(t, h, "workers", 1)
	w.begin(1, &groupcore.Poll{Conn: 1, Max: 1, Wait: 5 * time.Second})
	<-rule.Reached()
	stepped(t, h)
	d.clock.Advance(4 * time.Second)
	rule.Release()
	newWorker(t, h, "workers", 2).do(groupcore.Describe{}) // the logs are open, and the poll was let in
	d.clock.Advance(time.Second)
	select {
	case a := <-w.out:
		if list, ok := a.([]groupcore.Handed); !ok || len(list) != 0 {
			t.Fatalf("%+v", a)
		}
	case <-time.After(patience):
		t.Fatal("it waits for longer than it asked for")
	}
}

// Logs of groups that can't be opened for a reason that passes are tried again, later each time, also if nobody asks; meanwhile requests are
// refused at once, with the time after which it is worth asking.
func TestTheGroupsLogsAreOpenedAgainAfterAPause(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	rule := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallMkdir}, Match: inGroups, Err: syscall.EMFILE})
	h := d.streamShard("jobs")
	w := newWorker(t, h, "workers", 1)
	pause := DefaultGroupSettings().Door.Retry
	for i := range 4 {
		opened := fmt.Sprintf("attempt %d", i)
		d.await(opened, func() bool { // both logs are tried, and the shard was told
			if i == 0 {
				w.begin(1, groupcore.Describe{})
				w.refusal()
			}
			stepped(t, h)
			return d.events.count("shard_open_failed") == 2*(i+1)
		})
		for range 10 {
			w.begin(1, groupcore.Describe{})
			if f := w.refusal(); f.Code != wire.CodeStorage || f.Retry != wire.RetryAfter || f.RetryAfterMS != uint64(pause.Milliseconds()) {
				t.Fatalf("%s: %+v", opened, f)
			}
		}
		if i == 3 {
			rule.Remove()
		}
		d.clock.Advance(pause)
		pause *= 2
	}
	d.await("the logs are open", func() bool {
		w.begin(1, groupcore.Describe{})
		a, ok := (<-w.out).(groupcore.Answer)
		return ok && a.Refusal == nil
	})
	if n := d.events.count("shard_open_failed"); n != 8 {
		t.Fatalf("%d failures", n)
	}
}
