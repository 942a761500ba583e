package queue

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// tighten gives the stream a retention of so many bytes, and waits until what is left, in records of a size, is no more than that. The oldest record
// must lie between two offsets then. Segments go one after the other.
func (b *broker) tighten(w worker, bytes, each int64, above, below id.Offset) (oldest id.Offset) {
	b.t.Helper()
	b.site.retention = route.Retention{Bytes: bytes}
	b.node.Apply(b.site.desired(2))
	testkit.Eventually(b.t, "retention has run", func() bool {
		ctx, cancel := testkit.Within()
		defer cancel()
		var err error
		var next id.Offset
		if oldest, next, err = w.Bounds(ctx, namespace, jobs, 0); err != nil {
			b.t.Fatal(err)
		}
		return oldest > above && int64(next-oldest)*each <= bytes
	})
	if oldest >= below {
		b.t.Fatalf("retention has taken everything below %d, and was to leave %d", oldest, below)
	}
	return oldest
}

// Retention takes records that one group holds, that another had not reached, and that a third never heard of. The first gets back what is
// left of its own, with its own content; each is told in the answer how many are missing before a record; what is missing counts as nothing
// anybody has to do, and is shown by itself; whoever reads it by hand is told where the oldest one is.
//
// matrix I17; field case QUE-12, QUE-14 (what was skipped), STR-07 (polls)
func TestQUE12_WhatRetentionTookIsSkippedAndSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *groupOptions) { o.BackOff = nil })
	s.store = func(o *disklog.Options) { o.SegmentBytes = 4 << 10 }
	s.disk = func(o *shardactor.DiskOptions) { o.RetentionInterval = 20 * time.Millisecond }
	b := s.start(vfs.NewMem())
	w := s.connect()
	const records, behind = 24, 3
	var content []string
	for _, text := range numbered(records) {
		content = append(content, text+strings.Repeat(".", 1000-len(text)))
		w.publish(content[len(content)-1])
	}
	pending, slow := w.of("pending"), w.of("slow")
	mine := client.GroupPollOptions{Visibility: hour, Member: "mine"}
	held := pending.take(21, mine)
	pending.ack(held[:10]...)
	slow.ack(slow.take(behind, client.GroupPollOptions{})...)
	oldest := b.tighten(w, 8<<10, 1000, 10, 20)

	again := s.connect().of("pending")
	mine.Reclaim = true
	got := again.take(int(21-oldest), mine)
	same(t, "what is left of its own", got, upTo(oldest, 21))
	skipped := func(list []client.Message) (n uint64) {
		for _, m := range list {
			n += m.SkippedBefore
			if string(m.Payload) != content[m.Offset] {
				t.Errorf("the content of %d is not its own", m.Offset)
			}
		}
		return n
	}
	if n := skipped(got); n != uint64(oldest-10) {
		t.Errorf("it was told of %d that are missing, want %d", n, oldest-10)
	}
	for _, o := range []id.Offset{10, oldest - 1} { // it held those
		if err := again.tryAck(o); err != nil {
			t.Errorf("ack %d, which retention took: %v", o, err)
		}
	}
	again.ack(got...)
	again.ack(again.take(3, client.GroupPollOptions{})...)

	late := slow.take(int(records-oldest), client.GroupPollOptions{})
	same(t, "the slow group's", late, upTo(oldest, records))
	if n := skipped(late); n != uint64(oldest-behind) || late[0].SkippedBefore != n {
		t.Errorf("the slow group was told of %d that are missing, want %d before the first", n, oldest-behind)
	}
	slow.ack(late...)
	fresh := w.of("fresh")
	first := fresh.take(int(records-oldest), client.GroupPollOptions{})
	same(t, "a new group's", first, upTo(oldest, records))
	fresh.ack(first...)
	for _, g := range []worker{again, slow, fresh} {
		g.drained()
	}
	if n := b.metric("felix_group_skipped_total"); n < float64(2*oldest-10-behind) {
		t.Errorf("%v offsets are counted as skipped, want at least %d", n, 2*oldest-10-behind)
	}
	for _, name := range []string{"felix_group_lag_records", "felix_group_in_flight", "felix_group_owed"} {
		if v := b.metric(name); v != 0 {
			t.Errorf("%s is %v after the drain", name, v)
		}
	}
	ctx, cancel := testkit.Within()
	defer cancel()
	_, err := w.Read(ctx, namespace, jobs, client.ReadOptions{From: 12})
	var gone *client.CursorError
	if oldest > 12 && (!errors.As(err, &gone) || gone.Available != oldest) {
		t.Errorf("a read from 12: %v, want an error that names %d", err, oldest)
	}

	// The same after a restart: nothing comes again, and the depth is what a scan says.
	b.stop()
	s.start(b.mem)
	w = s.connect()
	for _, name := range []string{"pending", "slow", "fresh"} {
		g := w.of(name)
		if list := g.poll(client.GroupPollOptions{Max: 10}); len(list) > 0 {
			t.Errorf("%s: %d came after a restart", name, list[0].Offset)
		}
		g.drained()
	}
}
