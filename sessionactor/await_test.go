package sessionactor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// waiting is a site on which requests that find no room wait for two seconds of a clock that stands still.
func waiting(t *testing.T, change func(*Options)) *site {
	return open(t, setting{clock: manual(), desired: streams("a", "b", "c", "d", "e", "f"), change: func(o *Options) {
		o.QueueWait = 2 * time.Second
		if change != nil {
			change(o)
		}
	}})
}

// oneSlot lets one request of a tenant in at a time.
func oneSlot(o *Options) {
	o.Admission = NewAdmission(sessioncore.AdmissionLimits{SlotsPerTenant: 1, Slots: 2, BytesPerTenant: 1 << 20, Bytes: 4 << 20})
}

func (x *site) advance(d time.Duration) {
	x.opts.Clock.(interface{ Advance(time.Duration) }).Advance(d)
}

// The lane of a publish that waits reads nothing more; the other lanes of its connection go on; it holds no permits; and it is done
// when there is room.
func TestAPublishThatFindsNoRoomWaitsAndOnlyItsLaneWithIt(t *testing.T) {
	const bound, size = 64 << 10, 12 << 10
	x := waiting(t, func(o *Options) { o.ConnBytes = bound })
	c := x.connect()
	first, second, other := dial(t, c, today()), dial(t, c, today()), dial(t, c, today())
	payload := strings.Repeat("x", size)
	x.pause("a")
	for i := range uint64(3) { // two are half of the connection's permits
		first.raw(batchTo("a", i, wire.AckPerBatch, payload))
	}
	x.counts("felix_publish_queue_waits_total", 1)
	second.raw(batchTo("a", 0, wire.AckPerBatch, payload))
	second.raw(batchTo("b", 1, wire.AckPerBatch, "behind it"))
	x.counts("felix_publish_queue_waits_total", 2)
	eventually(t, "no more permits are held than by two publishes", func() bool { _, held := x.opts.Frames.InUse(); return held <= bound/2 })
	for range 50 {
		other.publish("b", payload, payload, payload) // more than half of the permits
	}
	if second.w.unread() == 0 {
		t.Error("a lane whose publish waits went on reading")
	}
	x.heal("a")
	if done := first.acks(0, 3); done != 3 {
		t.Errorf("%d of 3 were done", done)
	}
	if done := second.acks(0, 2); done != 2 {
		t.Errorf("%d of 2 were done", done)
	}
	if n := x.metric("felix_tenant_publish_queue_full_total"); n != 0 {
		t.Errorf("%v were shed", n)
	}
}

func TestAPublishThatHasWaitedLongEnoughIsRefused(t *testing.T) {
	x := waiting(t, oneSlot)
	c := x.connect()
	first, second := dial(t, c, today()), dial(t, c, today())
	x.pause("a")
	first.raw(batchTo("a", 0, wire.AckPerBatch, "x"))
	eventually(t, "the first is under way", func() bool { n, _ := x.opts.Admission.InUse(); return n == 1 })
	second.raw(batchTo("b", 0, wire.AckPerBatch, "x"))
	x.counts("felix_publish_queue_waits_total", 1)
	x.advance(2*time.Second - 1)
	if n := x.metric("felix_tenant_publish_queue_full_total"); n != 0 {
		t.Fatal("it was refused too early")
	}
	x.advance(1)
	if done := second.acks(0, 1); done != 0 {
		t.Error("it was done, although there was no room")
	}
	second.raw(batchTo("b", 1, wire.AckNone, "silent ones do not wait"))
	x.counts("felix_tenant_publish_queue_full_total", 2)
	x.heal("a")
	first.acks(0, 1)
	second.raw(batchTo("b", 2, wire.AckPerBatch, "there is room again"))
	if done := second.acks(2, 3); done != 1 {
		t.Error("what had waited holds its place")
	}
}

// Five wait for the one place. Each time it comes free, the one that has waited longest is woken, and no other pump is.
func TestAPlaceThatComesFreeWakesExactlyOneLane(t *testing.T) {
	pumps := &watched{Runtime: Goroutines()}
	x := waiting(t, func(o *Options) { oneSlot(o); o.Runtime = pumps })
	c := x.connect()
	names := []string{"a", "b", "c", "d", "e", "f"}
	x.pause(names...)
	var lines []*line
	for i, name := range names {
		l := dial(t, c, today())
		lines = append(lines, l)
		l.raw(batchTo(name, 0, wire.AckPerBatch, "x"))
		x.counts("felix_publish_queue_waits_total", float64(i))
		eventually(t, "it waits", func() bool {
			_, bytes := x.opts.Frames.InUse()
			return bytes == len(batchTo("a", 0, wire.AckPerBatch, "x"))-wire.HeaderSize
		})
		pumps.stand(t, i)
		if first := x.shardOf(names[0], 0).Ref.Path(); i == 0 {
			eventually(t, "the first has the place", func() bool { return x.queued(first) == 1 })
		}
	}
	for i, name := range names {
		before := pumps.rings()
		x.heal(name)
		lines[i].acks(0, 1)
		if i+1 == len(names) {
			return
		}
		next := x.shardOf(names[i+1], 0).Ref.Path()
		eventually(t, "the next one's publish reaches its shard", func() bool { return x.queued(next) == 1 })
		for lane, n := range pumps.rings() {
			if woken := n != before[lane]; woken != (lane == i || lane == i+1) { // the first for its answer
				t.Errorf("place %d: lane %d was woken: %v", i, lane, woken)
			}
		}
	}
}

// queued is how many messages wait in an actor's mailbox.
func (x *site) queued(path string) int {
	x.t.Helper()
	list, _, err := x.sys.Faults().List("", 256)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, a := range list {
		if a.Path == path {
			return a.MailboxItems
		}
	}
	return 0
}

// Four times as many publishes as a mailbox holds, from lanes that wait for room in it: each is done, once.
func TestPublishesThatWaitForRoomInAMailboxAreAllDone(t *testing.T) {
	const lanes, each = 20, 200
	x := waiting(t, func(o *Options) { o.Admission = NewAdmission(sessioncore.DefaultAdmission(16, 64<<20)) })
	c := x.connect()
	x.pause("a")
	var lines []*line
	for range lanes {
		l := dial(t, c, today())
		lines = append(lines, l)
		for i := range uint64(each) {
			l.raw(batchTo("a", i, wire.AckPerBatch, "x"))
		}
	}
	eventually(t, "some wait", func() bool { return x.metric("felix_publish_queue_waits_total") >= lanes-1024/each-1 })
	x.heal("a")
	for i, l := range lines {
		if done := l.acks(0, each); done != each {
			t.Errorf("lane %d: %d of %d were done", i, done, each)
		}
	}
	x.counts("felix_published_records_total", lanes*each) // one that waited may be counted after its answer
	if n := x.metric("felix_tenant_publish_queue_full_total"); n != 0 {
		t.Errorf("%v were shed", n)
	}
}

// With FELIX_PUB_INGRESS_WAIT a publish that nobody asks about is not shed while its shard stands still.
func TestWithIngressWaitNothingIsShedAndOrderIsKept(t *testing.T) {
	const lanes, each, size = 4, 30, 4 << 10
	x := open(t, setting{desired: streams("a"), change: func(o *Options) { o.IngressWait, o.ConnBytes = true, 64<<10 }})
	c := x.connect()
	s := dial(t, c, today()).subscribe(c, subscribeTo("a", wire.StartLatest))
	x.pause("a")
	pad := strings.Repeat("x", size)
	for l := range lanes {
		up := c.publishOnly()
		if _, err := up.Write(wire.AppendJSONFrame(nil, nothing())); err != nil {
			t.Fatal(err)
		}
		for i := range each {
			if _, err := up.Write(batchTo("a", 0, wire.AckNone, fmt.Sprint(l, " ", i, " ", pad))); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "all lanes wait", func() bool { return x.metric("felix_publish_queue_waits_total") == lanes })
	eventually(t, "one shard holds half of the permits at most", func() bool { _, held := x.opts.Frames.InUse(); return held <= 32<<10 })
	x.heal("a")
	got, _, _ := s.events(lanes * each)
	next := [lanes]int{}
	for _, text := range got {
		var l, i int
		if _, err := fmt.Sscan(text, &l, &i); err != nil || next[l] != i {
			t.Fatalf("of lane %d came %d, want %d", l, i, next[l])
		}
		next[l]++
	}
	if shed := x.metric("felix_tenant_publish_queue_full_total"); shed != 0 {
		t.Errorf("%v were shed", shed)
	}
}

func TestAClientThatLeavesWhileItsPublishWaitsLeavesNothingBehind(t *testing.T) {
	for name, room := range map[string]func(o *Options){
		"for its half of the connection": func(o *Options) { o.ConnBytes = 32 << 10 },
		"for its tenant":                 oneSlot,
		"for the mailbox":                func(o *Options) { o.Admission = NewAdmission(sessioncore.DefaultAdmission(16, 64<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			x := waiting(t, room)
			c := x.connect()
			x.pause("a")
			for range 6 {
				l := dial(t, c, today())
				for i := range uint64(250) {
					l.raw(batchTo("a", i, wire.AckPerBatch, strings.Repeat("x", 500)))
				}
			}
			eventually(t, "some wait", func() bool { return x.metric("felix_publish_queue_waits_total") > 0 })
			c.leave()
			eventually(t, "its pumps have ended", func() bool { return x.metric("felix_client_connections") == 0 })
			x.heal("a")
			x.balanced()
			l := dial(t, x.connect(), today())
			l.publish("a", "on")
			eventually(t, "nothing is under way", func() bool { n, bytes := x.opts.Admission.InUse(); return n == 0 && bytes == 0 })
		})
	}
}

func TestAPumpThatPanicsWhileItsPublishWaitsLeavesNothingBehind(t *testing.T) {
	pumps := &watched{Runtime: Goroutines()}
	x := waiting(t, func(o *Options) { oneSlot(o); o.Runtime = pumps })
	c := x.connect()
	holder := dial(t, x.connect(), today())
	x.pause("a")
	holder.raw(batchTo("a", 0, wire.AckPerBatch, "x"))
	eventually(t, "the place is taken", func() bool { n, _ := x.opts.Admission.InUse(); return n == 1 })
	dial(t, c, today()).raw(batchTo("b", 0, wire.AckPerBatch, "x"))
	x.counts("felix_publish_queue_waits_total", 1)
	pumps.stand(t, 1)
	pumps.wreck.Store(true)
	x.heal("a")
	holder.acks(0, 1)
	closedWith(t, c, CloseInternal)
	x.balanced()
	holder.publish("b", "on")
}

// A shard that stops wakes everybody who waits for it: nobody waits for what will not come.
func TestAShardThatEndsRefusesThoseWhoWaitForIt(t *testing.T) {
	x := waiting(t, func(o *Options) { o.Admission = NewAdmission(sessioncore.DefaultAdmission(16, 64<<20)) })
	c := x.connect()
	x.pause("a")
	const lanes, each = 8, 250
	var lines []*line
	for range lanes {
		l := dial(t, c, today())
		lines = append(lines, l)
		for i := range uint64(each) {
			l.raw(batchTo("a", i, wire.AckPerBatch, "x"))
		}
	}
	eventually(t, "some wait", func() bool { return x.metric("felix_publish_queue_waits_total") >= lanes-1024/each-1 })
	x.desire(streams("b", "c", "d", "e", "f")...)
	for _, l := range lines {
		for i := range uint64(each) {
			if f := l.next(); f.ack.RequestID != i || f.ack.Refusal == nil || f.ack.Refusal.Code == wire.CodeOverloaded {
				t.Fatalf("answer %d: %+v", i, f.ack)
			}
		}
	}
}

func TestASessionThatIsDrainedFinishesWhatWaits(t *testing.T) {
	pumps := &watched{Runtime: Goroutines()}
	x := waiting(t, func(o *Options) { oneSlot(o); o.Runtime = pumps })
	c := x.connect()
	first, second := dial(t, c, today()), dial(t, c, today())
	x.pause("a")
	first.raw(batchTo("a", 0, wire.AckPerBatch, "x"))
	eventually(t, "the first is under way", func() bool { n, _ := x.opts.Admission.InUse(); return n == 1 })
	second.raw(batchTo("b", 0, wire.AckPerBatch, "x"))
	x.counts("felix_publish_queue_waits_total", 1)
	pumps.stand(t, 1) // one that would have to enter a line is refused
	drained := make(chan struct{})
	if err := x.listener.TrySend(&Drain{Done: func() { close(drained) }}, 0); err != nil {
		t.Fatal(err)
	}
	x.heal("a")
	if first.acks(0, 1)+second.acks(0, 1) != 2 {
		t.Error("a request of before the drain was refused")
	}
	eventually(t, "the session lingers", func() bool { _, armed := x.opts.Clock.(interface{ Next() (time.Time, bool) }).Next(); return armed })
	eventually(t, "the session is closed", func() bool { x.advance(drainLinger); return c.ctx.Err() != nil })
	want(t, drained, "the end of the drain")
}
