package sessionactor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// stalled subscribes on a connection of its own whose windows take no whole event: its pump stands still in the first write, with
// what it took in its hand.
func (x *site) stalled(m *wire.Subscribe) subscription {
	x.t.Helper()
	return x.stalledWith(today(), m)
}

func (x *site) stalledWith(auth *wire.Auth, m *wire.Subscribe) subscription {
	x.t.Helper()
	c := x.connect(func(c *memConn) { c.window = 128 })
	return dial(x.t, c, auth).subscribe(c, m)
}

func asking(name string, start wire.StartKind, capacity uint32) *wire.Subscribe {
	m := subscribeTo(name, start)
	m.QueueCapacity = wire.Some(capacity)
	return m
}

func numbered(from, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%06d", from+i)+strings.Repeat("-", 200))
	}
	return list
}

// mission 218, mission 220, mission 221: a queue of 4, ten published, then read: the first four, and the six that are missing are counted
// in records, under both names, before the reader has heard of anything.
func TestAFullQueueLosesWhatArrivesAndDeliversWhatItHolds(t *testing.T) {
	x := open(t, setting{ringBatches: 2, ringBytes: 1 << 20})
	l := dial(t, x.connect(), today())
	s := x.stalled(asking("orders", wire.StartLatest, 4))
	records := numbered(0, 20)
	for i := range 10 {
		l.publish("orders", records[2*i], records[2*i+1])
	}
	for _, name := range []string{"felix_subscribe_dropped_total", "felix_sub_queue_dropped_total"} {
		if n := x.metric(name); n != 12 {
			t.Errorf("%s is %v, want 12 records", name, n)
		}
	}
	if got, _, _ := s.events(8); !slices.Equal(got, records[:8]) {
		t.Errorf("got %.6q, want the first four batches", got)
	}
	eventually(t, "the reader has caught up", func() bool { return x.metric("felix_sub_lagging") == 0 })
	l.publish("orders", "on")
	if got, _, _ := s.events(1); got[0] != "on" {
		t.Errorf("then got %.6q", got)
	}
	if n := x.metric("felix_sub_queue_drop_old_emulated_total"); n != 0 {
		t.Errorf("%v drops of drop_old", n)
	}
}

func TestDropOldLosesTheNewestTooAndSaysSo(t *testing.T) {
	x := open(t, setting{policy: storage.DropOld})
	l := dial(t, x.connect(), today())
	s := x.stalled(asking("orders", wire.StartLatest, 2))
	records := numbered(0, 5)
	for _, r := range records {
		l.publish("orders", r)
	}
	if got, _, _ := s.events(2); !slices.Equal(got, records[:2]) {
		t.Errorf("got %.6q", got)
	}
	if a, b := x.metric("felix_sub_queue_dropped_total"), x.metric("felix_sub_queue_drop_old_emulated_total"); a != 3 || b != 3 {
		t.Errorf("%v dropped, %v of them emulated", a, b)
	}
}

// mission 219: under block the publisher waits, nothing is lost, and the other readers have the records at once.
func TestUnderBlockThePublisherWaitsForTheFullReaderAndTheOthersDoNot(t *testing.T) {
	x := open(t, setting{policy: storage.Block, ringBatches: 2, ringBytes: 1 << 20})
	publisher := dial(t, x.connect(), today())
	c := x.connect()
	quick := dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartLatest))
	slow := x.stalled(asking("orders", wire.StartLatest, 4))
	records := numbered(0, 10)
	for i, r := range records {
		publisher.raw(batchTo("orders", uint64(i), wire.AckPerBatch, r))
	}
	acked := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if f := publisher.next(); f.ack.Refusal != nil || f.ack.RequestID != uint64(i) {
				t.Fatalf("publish %d was answered %+v", i, f.ack)
			}
		}
	}
	acked(0, 4)
	if got, _, _ := quick.events(10); !slices.Equal(got, records) {
		t.Errorf("the quick reader got %.6q", got)
	}
	other := dial(t, x.connect(), today()) // another stream, and what is behind the ones that wait
	other.publish("wide", "not held up")
	if n := publisher.h.unread(); n != 0 {
		t.Fatalf("%d bytes of answers behind the fourth", n)
	}
	if _, bytes := x.opts.Admission.InUse(); bytes == 0 {
		t.Error("publishers that wait hold no permits")
	}
	if got, _, _ := slow.events(10); !slices.Equal(got, records) {
		t.Errorf("the slow reader got %.6q", got)
	}
	acked(4, 10)
	if n := x.metric("felix_subscribe_dropped_total"); n != 0 {
		t.Errorf("%v records were lost", n)
	}
	x.balanced()
}

// mission 219: whoever goes away, or whose shard ends, holds nobody up.
func TestUnderBlockAReaderThatGoesAwayReleasesThePublishers(t *testing.T) {
	x := open(t, setting{policy: storage.Block})
	for name, leave := range map[string]func(subscription, *memConn){
		"stops its event stream": func(s subscription, _ *memConn) { s.h.CancelRead() },
		"loses its connection":   func(_ subscription, c *memConn) { c.leave() },
	} {
		c := x.connect(func(c *memConn) { c.window = 128 })
		slow := dial(t, c, today()).subscribe(c, asking("orders", wire.StartLatest, 1))
		publisher := dial(t, x.connect(), today())
		for i, r := range numbered(0, 5) {
			publisher.raw(batchTo("orders", uint64(i), wire.AckPerBatch, r))
		}
		publisher.next()
		eventually(t, name+": the others wait", func() bool { n, _ := x.opts.Admission.InUse(); return n == 4 })
		leave(slow, c)
		for i := 1; i < 5; i++ {
			if f := publisher.next(); f.ack.Refusal != nil || f.ack.RequestID != uint64(i) {
				t.Fatalf("%s: publish %d was answered %+v", name, i, f.ack)
			}
		}
		eventually(t, name+": it is gone", func() bool { return x.metric("felix_subscribers") == 0 })
	}
}

func TestTheQueueOfASubscriptionIsWhatItAskedForWithinTheBoundsAndItIsTold(t *testing.T) {
	x := open(t, setting{change: func(o *Options) { o.Delivery.Capacity, o.Delivery.CapacityMax = 7, 100 }})
	if offer := EphemeralOffer(); !offer.Features.Has(wire.FeatureSubscribeQueue) {
		t.Error("the broker does not offer it")
	}
	c := x.connect()
	for _, q := range []struct {
		asked wire.Opt[uint32]
		told  wire.Opt[uint32]
		real  int
	}{
		{real: 7}, {wire.Some(uint32(0)), wire.Some(uint32(1)), 1}, {wire.Some(uint32(20)), wire.Some(uint32(20)), 20},
		{wire.Some(uint32(100)), wire.Some(uint32(100)), 100}, {wire.Some(^uint32(0)), wire.Some(uint32(100)), 100},
	} {
		m := subscribeTo("orders", wire.StartLatest)
		m.QueueCapacity = q.asked
		f := dial(t, c, today()).ask(m)
		if got := f.message.(*wire.Subscribed).QueueCapacity; got != q.told {
			t.Errorf("asked for %v: told %v, want %v", q.asked, got, q.told)
		}
		log := x.opts.Table.Get(stream("orders", 1).Name).Shards()[0].Shard.Log
		eventually(t, "it is registered", func() bool { return len(log.Cursors(0, 9)) == 1 })
		if got := log.Cursors(0, 9)[0].Capacity; got != q.real {
			t.Errorf("asked for %v: may queue %d, want %d", q.asked, got, q.real)
		}
		want(t, c.toClient, "the event stream").CancelRead()
		eventually(t, "it is gone", func() bool { return len(log.Cursors(0, 9)) == 0 })
	}
}

func TestSubscriptionsAreBoundedForAPrincipalAndForTheConnection(t *testing.T) {
	x := open(t, setting{change: func(o *Options) { o.Delivery.PerIdentity, o.Delivery.PerConnection = 2, 3 }})
	c := x.connect()
	subscribe := func(token string) frame {
		auth := today()
		auth.Token = token
		return dial(t, c, auth).ask(subscribeTo("orders", wire.StartLatest))
	}
	taken := func(f frame) {
		t.Helper()
		if f.message.MessageType() != "subscribed" {
			t.Fatalf("answered %q", f.payload)
		}
	}
	taken(subscribe("good"))
	taken(subscribe("good"))
	if f := refused(t, subscribe("good")); f.Code != wire.CodeLimitExceeded || !strings.Contains(f.Message, "alice has 2 subscriptions") {
		t.Errorf("the third of two: %+v", f)
	}
	taken(subscribe("bob"))
	if f := refused(t, subscribe("bob")); f.Code != wire.CodeLimitExceeded || !strings.Contains(f.Message, "the connection has 3 subscriptions") {
		t.Errorf("the fourth of three: %+v", f)
	}
	want(t, c.toClient, "the event stream of alice").CancelRead()
	eventually(t, "a place is free", func() bool { return x.metric("felix_subscribers") == 2 })
	eventually(t, "alice gets it", func() bool { return subscribe("good").message.MessageType() == "subscribed" })
}

// Watches count like subscriptions, on whichever connection they are, and a place is free again once its holder has gone.
func TestSubscriptionsAndWatchesAreBoundedForTheNode(t *testing.T) {
	x := newSiteDisk().caching(t, setting{change: func(o *Options) { o.Subscriptions = storage.NewBudget(2) }})
	c, other := x.connect(), x.connect()
	l, w := dial(t, c, today()), dial(t, other, today())
	first := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	watch := w.watch(other, watchOf("users", ofPrefix("k")))
	for name, ask := range map[string]func() frame{
		"subscription": func() frame { return w.ask(subscribeTo("orders", wire.StartLatest)) },
		"watch":        func() frame { return l.ask(watchOf("users", ofPrefix("k"))) },
	} {
		if f := refused(t, ask()); f.Code != wire.CodeLimitExceeded || f.Retry != wire.RetryRetry || !strings.Contains(f.Message, "the broker has as many subscriptions as it may have") {
			t.Errorf("one %s more than the node may have: %+v", name, f)
		}
	}
	first.h.CancelRead()
	eventually(t, "the place of a subscription is free", func() bool { return x.opts.Subscriptions.Used() == 1 })
	l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	watch.h.CancelRead()
	eventually(t, "the place of a watch is free", func() bool { return x.opts.Subscriptions.Used() == 1 })
	c.leave()
	eventually(t, "the place of a connection that has gone is free", func() bool { return x.opts.Subscriptions.Used() == 0 })
}

// What publishers wait for is bounded by what a node lets through to its shards: it is full of them, and refuses what comes next, until
// the reader goes on.
func TestUnderBlockPublishersThatWaitAreBoundedByTheAdmission(t *testing.T) {
	const slots = 16
	x := open(t, setting{policy: storage.Block, ringBatches: 2, ringBytes: 1 << 20, change: func(o *Options) {
		o.Admission = NewAdmission(sessioncore.AdmissionLimits{SlotsPerTenant: slots, Slots: slots, BytesPerTenant: 1 << 20, Bytes: 4 << 20})
	}})
	slow := x.stalled(asking("orders", wire.StartLatest, 1))
	l := dial(t, x.connect(), today())
	l.publish("orders", numbered(0, 1)[0])
	for i, r := range numbered(1, slots+5) {
		l.raw(batchTo("orders", uint64(i), wire.AckPerBatch, r))
	}
	eventually(t, "those that do not fit are refused", func() bool { return x.metric("felix_tenant_publish_queue_full_total") == 5 })
	if n, _ := x.opts.Admission.InUse(); n != slots {
		t.Errorf("%d requests are let through, want %d", n, slots)
	}
	// What was let through may still be on its way to the shard, which alone keeps something.
	eventually(t, "the shard keeps what its reader waits for", func() bool { return x.readers.Budget().Used() > 0 })
	if kept := x.readers.Budget().Used(); kept > slots*1024 {
		t.Errorf("%d bytes are kept for the reader", kept)
	}
	if got, _, _ := slow.events(1 + slots); len(got) != 1+slots {
		t.Errorf("got %d records", len(got))
	}
	for i := range uint64(slots + 5) {
		f := l.next()
		if want := i >= slots; (f.ack.Refusal != nil) != want || f.ack.RequestID != i || want && f.ack.Refusal.Code != wire.CodeOverloaded {
			t.Errorf("publish %d was answered %+v", i, f.ack)
		}
	}
	x.balanced()
}
