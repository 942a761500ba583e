package sessionactor

import (
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
)

// onTwoDisks is a site on whose disk the reads of one cache of two can be made to hang.
func onTwoDisks(t *testing.T, clock actors.Clock) (*site, *siteDisk) {
	bad, good, orders := cache("bad", 1), cache("good", 1), stream("orders", 1)
	bad.Durable, good.Durable, orders.Durable = true, true, true
	d := newSiteDisk()
	d.inline = 1
	x := d.serving(t, setting{clock: clock, disk: d, desired: []route.Assignment{bad, good, orders}, ringBatches: 1, change: func(o *Options) {
		o.Offer = DurableOffer()
	}})
	l := dial(t, x.connect(), today())
	for _, c := range []string{"bad", "good"} {
		l.put(c, "k", "a value that is not kept in memory")
	}
	l.publish("orders", "a")
	l.publish("orders", "b")
	return x, d
}

func (d *siteDisk) hangsFor(part string) (reached <-chan struct{}, resume func()) {
	r := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Match: func(name string) bool { return strings.Contains(name, part) }, Block: true})
	return r.Reached(), r.Remove
}

// overdue moves the clock on until that many reads are known not to have come back.
func (x *site) overdue(clock *actors.ManualClock, atLeast float64) {
	x.t.Helper()
	eventually(x.t, "the reads are overdue", func() bool {
		clock.Advance(time.Second)
		return x.metric("felix_log_reads_overdue") >= atLeast
	})
}

// A read that the disk does not answer is answered all the same, and holds up neither those behind it nor those of other logs: not its stream's,
// its connection's or the node's. Nor is a disk that hangs asked by more and more. When it is back it is read as before.
func TestReadsOfADiskThatHangsAreAnsweredAndStopNoOthers(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x, d := onTwoDisks(t, clock)
	reached, resume := d.hangsFor("bad")
	defer resume()
	c := x.connect()
	const lanes, each = 12, 4 // more than there are places for reads
	var lines []*line
	for i := range lanes {
		conn := c
		if i >= 3 {
			conn = x.connect()
		}
		lines = append(lines, dial(t, conn, today()))
	}
	armed := clock.Pending()
	for _, l := range lines {
		l.send(getFrom("bad", "k"))
		l.send(getFrom("good", "k"))
		for range each - 1 {
			l.send(getFrom("bad", "k"))
		}
	}
	want(t, reached, "the disk hangs")
	stalled := func(l *line) {
		t.Helper()
		f := refused(t, l.next())
		if f.Code != wire.CodeStorage || f.Retry != wire.RetryAfter || f.Reason != wire.ReasonDiskStalled || f.RetryAfterMS == 0 {
			t.Fatalf("a read of a disk that hangs was answered %+v", f)
		}
	}
	eventually(t, "the first read of each stream has its time", func() bool { return clock.Pending() == armed+lanes })
	clock.Advance(x.opts.ReadWait)
	for _, l := range lines {
		stalled(l)
		if m, ok := l.next().message.(*wire.CacheValue); !ok || !m.Value.Set { // it needs no time, and has had none
			t.Fatalf("a get of another log, behind one that hangs, was answered %+v", m)
		}
	}
	for _, l := range lines {
		for range each - 1 {
			eventually(t, "it is answered", func() bool { clock.Advance(100 * time.Millisecond); return len(l.b)+l.h.unread() > 0 })
			stalled(l)
		}
	}
	var n float64
	eventually(t, "no more reads are with the disk than it has slots", func() bool { n = x.metric("felix_log_reads_overdue"); return n <= 8 }) // who waited for one is called back
	if n < overdueMost {
		t.Errorf("%v reads are with the disk, want no fewer than %d", n, overdueMost)
	}
	x.balanced()
	l := dial(t, x.connect(), today())
	if f := refused(t, l.ask(getFrom("bad", "k"))); f.Reason != wire.ReasonDiskStalled { // at once: no time passes
		t.Errorf("one more was answered %+v", f)
	}
	resume()
	eventually(t, "all are back", func() bool { return x.metric("felix_log_reads_overdue") == 0 })
	if m, ok := l.ask(getFrom("bad", "k")).message.(*wire.CacheValue); !ok || !m.Value.Set {
		t.Errorf("after that it was answered %+v", m)
	}
	if len(x.opts.Overdue.logs) != 0 {
		t.Error("a log is still remembered")
	}
	if x.opts.NodeReads.Waiting() != 0 {
		t.Error("somebody waits for a place")
	}
	eventually(t, "the places are given back", func() bool { _, n := x.opts.NodeReads.InUse(); return n == 0 }) // a read answers before it does
	x.balanced()
}

// A poll whose records the disk does not give is answered too, and they are handed out when it does.
func TestAPollOfADiskThatHangsIsAnsweredAndItsRecordsComeLater(t *testing.T) {
	clock := actors.NewManualClock(time.Unix(1_700_000_000, 0))
	x, d := onTwoDisks(t, clock)
	l := dial(t, x.connect(), today())
	if m := l.ask(pollFor(1, 0)).message.(*wire.GroupRecords); len(m.Records) != 1 {
		t.Fatalf("the first poll got %+v", m)
	}
	reached, resume := d.hangsFor("orders")
	defer resume()
	l.send(pollFor(1, 0))
	want(t, reached, "the disk hangs")
	x.overdue(clock, 1)
	if f := refused(t, l.next()); f.Code != wire.CodeStorage || f.Reason != wire.ReasonDiskStalled {
		t.Fatalf("the poll was answered %+v", f)
	}
	resume()
	eventually(t, "it is back", func() bool { return x.metric("felix_log_reads_overdue") == 0 })
	for range 100 {
		f := l.ask(pollFor(5, 0))
		if m, ok := f.message.(*wire.GroupRecords); ok && len(m.Records) > 0 {
			return
		}
		clock.Advance(10 * time.Second)
	}
	t.Error("its record never came")
}
