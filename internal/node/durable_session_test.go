package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// stored is a broker over a disk, with a stream "durable".
func stored(t *testing.T, files vfs.FS, set func(*disklog.Options, *shardactor.DiskOptions), more ...func(*Options)) (*broker, *shardactor.Handle) {
	t.Helper()
	ready := make(chan struct{}, 1)
	change, done := onDisk(t, files, ready, set)
	t.Cleanup(done) // after the broker has stopped
	b := start(t, append(more, change)...)
	select {
	case <-ready:
	case <-within(t).Done():
		t.Fatal("the node is not ready")
	}
	return b, durableOrders(b)
}

func asIs(*disklog.Options, *shardactor.DiskOptions) {}

// The disk does not answer, and a shard may have half of what its connection may have under way: what is more is refused with a code, to be
// repeated later, and the log holds exactly what was taken.
//
// mission 206
func TestAPublishThatIsRefusedForWantOfRoomIsNotInTheLog(t *testing.T) {
	const publishes, size = 20, 8 << 10
	fault := vfs.NewFault(vfs.NewMem(), nil)
	b, h := stored(t, fault, asIs, func(o *Options) { o.Limits.PublishConnBytes, o.Limits.AckWait = 8*size, patience })
	stuck := fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Block: true})
	t.Cleanup(stuck.Release)
	l, _ := b.dial().open(today())
	for n := range uint64(publishes) {
		l.raw(batchTo("durable", n, strings.Repeat("x", size)))
	}
	eventually(t, "what has no room is refused", func() bool { return b.metric("felix_tenant_publish_queue_full_total") >= publishes-4 })
	stuck.Release()
	taken := id.Offset(0)
	for n := range uint64(publishes) {
		f := l.next()
		ack := must(wire.DecodePublishAck(f.flags, f.payload))(t)
		if ack.RequestID != n {
			t.Fatalf("answer %d names request %d", n, ack.RequestID)
		}
		if ack.Refusal == nil {
			taken++
		} else if ack.Refusal.Code != wire.CodeOverloaded || ack.Refusal.Retry != wire.RetryAfter {
			t.Errorf("answer %d: %+v", n, ack.Refusal)
		}
	}
	if _, end := h.History.Bounds(); taken == 0 || end != taken {
		t.Errorf("%d publishes were taken, and the log ends at %d", taken, end)
	}
}

// A poll claims for its visibility and answers offsets with the number of the delivery; what is claimed nobody else gets; an ack above an open
// record settles that one alone, and the ack of the gap moves the cursor over all that is finished.
//
// mission 324
func TestAQueueIsClaimedReadAndSettledOverARawSession(t *testing.T) {
	b, _ := stored(t, vfs.NewMem(), asIs)
	p := b.dial()
	l, _ := p.open(today())
	for n := range uint64(4) {
		l.raw(batchTo("durable", n, fmt.Sprint(n)))
		l.next()
	}
	next := uint64(0)
	target := func() wire.GroupTarget {
		next++
		return wire.GroupTarget{TenantID: tenant, Namespace: namespace, Stream: "durable", Group: "workers", RequestID: next}
	}
	answer := func(l *line, m wire.Message) wire.Message {
		t.Helper()
		return must(wire.DecodeJSON(l.ask(m).payload))(t)
	}
	poll := func(l *line, visible time.Duration) (got []string) {
		t.Helper()
		m := answer(l, &wire.GroupPoll{GroupTarget: target(), MaxRecords: 3, VisibilityMillis: uint64(visible.Milliseconds())})
		records, ok := m.(*wire.GroupRecords)
		if !ok || records.RequestID != next {
			t.Fatalf("a poll was answered %+v", m)
		}
		for _, r := range records.Records {
			got = append(got, fmt.Sprintf("%d:%s:%d", r.Offset, r.Payload, r.Attempts))
		}
		return got
	}
	ack := func(o id.Offset) {
		t.Helper()
		if m, ok := answer(l, &wire.GroupAck{GroupTarget: target(), Offset: o}).(*wire.CacheOK); !ok || m.RequestID != next {
			t.Fatalf("the ack of %d was answered %+v", o, m)
		}
	}
	cursor := func(want id.Offset, inFlight uint64) {
		t.Helper()
		m, ok := answer(l, &wire.GroupDescribe{GroupTarget: target()}).(*wire.GroupInfo)
		if !ok || m.Committed != wire.Some(want) || m.InFlight != inFlight {
			t.Errorf("the group is %+v, want the cursor at %d and %d in flight", m, want, inFlight)
		}
	}
	if got := poll(l, time.Hour); !slices.Equal(got, []string{"0:0:1", "1:1:1", "2:2:1"}) {
		t.Fatalf("polled %q", got)
	}
	other, _ := b.dial().open(today())
	if got := poll(other, time.Hour); !slices.Equal(got, []string{"3:3:1"}) {
		t.Errorf("another consumer polled %q", got)
	}
	if got := poll(other, time.Hour); len(got) > 0 {
		t.Errorf("all is claimed, and %q were handed out", got)
	}
	ack(1)
	ack(2)
	cursor(0, 2)
	ack(0)
	cursor(3, 1)
	if m, ok := answer(other, &wire.GroupNack{GroupTarget: target(), Offset: 3, Attempts: 1}).(*wire.CacheOK); !ok {
		t.Fatalf("the nack was answered %+v", m)
	}
	if got := poll(l, time.Hour); !slices.Equal(got, []string{"3:3:2"}) {
		t.Errorf("after the nack %q was polled", got)
	}
	ack(3)
	cursor(4, 0)
}

// With an interval of one second what retention does not keep is gone two seconds later, and nothing before the interval is over.
//
// mission 286
func TestWhatRetentionDoesNotKeepGoesWithinTwoIntervals(t *testing.T) {
	clock := actors.NewManualClock(time.Now()) // QUIC has deadlines by it
	b, h := stored(t, vfs.NewMem(), func(log *disklog.Options, d *shardactor.DiskOptions) {
		log.SegmentBytes = 4 << 10
		d.Retention, d.RetentionInterval = route.Retention{Bytes: 12 << 10}, time.Second
	}, func(o *Options) { o.Clock = clock })
	l, _ := b.dial().open(today())
	const records = 12
	for n := range uint64(records) {
		l.raw(batchTo("durable", n, strings.Repeat("x", 3000)))
		l.next()
	}
	if oldest, end := h.History.Bounds(); oldest != 0 || end != records {
		t.Fatalf("the log holds [%d, %d)", oldest, end)
	}
	for range 2 {
		eventually(t, "the janitor waits for its interval", func() bool { at, ok := clock.Next(); return ok && at.Sub(clock.Now()) <= time.Second })
		clock.Advance(time.Second)
	}
	eventually(t, "the log is trimmed", func() bool { oldest, _ := h.History.Bounds(); return oldest > records-6 })
}
