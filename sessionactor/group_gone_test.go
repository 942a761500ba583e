package sessionactor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// slowHistory is a log whose disk answers when it is let.
type slowHistory struct {
	storage.History
	entered chan struct{}
	gate    chan struct{}
}

func (s *slowHistory) Read(ctx context.Context, from, end id.Offset, maxBatches, maxBytes int, dst []*batch.Batch) ([]*batch.Batch, error) {
	select {
	case s.entered <- struct{}{}:
	default:
	}
	select {
	case <-s.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.History.Read(ctx, from, end, maxBatches, maxBytes, dst)
}

// slow makes the sessions' reads of "orders" wait until resume is called.
func (x *site) slow() (entered <-chan struct{}, resume func()) {
	e := x.opts.Table.Get(stream("orders", 1).Name)
	targets := slices.Clone(e.Shards())
	h := *targets[0].Shard
	log := &slowHistory{History: h.History, entered: make(chan struct{}, 1), gate: make(chan struct{})}
	h.History = log
	targets[0].Shard = &h
	x.opts.Table.Update([]*shardactor.Entry{route.NewEntry(e.Name, e.Incarnation, e.Routing, true, targets)}, nil)
	return log.entered, sync.OnceFunc(func() { close(log.gate) })
}

// What was finished while it was read for a poll is not handed out: the poll waits on, and holds no place for reads meanwhile.
func TestAPollWhoseRecordsWereFinishedMeanwhileWaitsOnAndHoldsNoPlace(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	a, b := dial(t, x.connect(), today()), dial(t, x.connect(), today())
	b.publish("orders", "a", "b")
	entered, resume := x.slow()
	a.send(pollFor(2, 30_000))
	want(t, entered, "the read")
	b.done(ack(0))
	b.done(ack(1))
	resume()
	eventually(t, "the places come back", func() bool { _, n := x.opts.NodeReads.InUse(); return n == 0 })
	if n := x.metric("felix_group_polls_waiting"); n != 1 {
		t.Fatalf("%v polls wait; one was answered %s", n, a.next().payload)
	}
	b.publish("orders", "c")
	handed(t, a.polled(1), 1, 2)
	eventually(t, "the places come back", func() bool { _, n := x.opts.NodeReads.InUse(); return n == 0 })
}

// A shard that goes away while records are read for a poll, of which one was finished meanwhile, answers the poll.
func TestAShardMayGoWhileRecordsOfAPollAreRead(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	a, b := dial(t, x.connect(), today()), dial(t, x.connect(), today())
	b.publish("orders", "a", "b", "c")
	entered, resume := x.slow()
	defer resume()
	a.send(pollFor(2, 30_000))
	want(t, entered, "the read")
	b.done(ack(0))
	x.desire(stream("wide", 4))
	switch m := a.next().message.(type) {
	case *wire.GroupRecords:
		handed(t, m.Records, 0)
	case *wire.ErrorAnswer:
		if m.Refusal().Retry == wire.RetryFatal {
			t.Errorf("refused %+v", m)
		}
	default:
		t.Errorf("answered %+v", m)
	}
	resume()
	eventually(t, "the places come back", func() bool { _, n := x.opts.NodeReads.InUse(); return n == 0 })
	if n := x.metric("felix_group_failures_total"); n != 0 {
		t.Errorf("%v groups failed", n)
	}
}

// What was being read for a client that went away is owed to others at once, as if nobody had asked for it.
func TestWhatIsReadForAClientThatGoesIsOwedAtOnce(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	c, b := x.connect(), dial(t, x.connect(), today())
	b.publish("orders", "a", "b")
	entered, resume := x.slow()
	a := dial(t, c, today())
	a.send(pollFor(1, 30_000))
	want(t, entered, "the read")
	b.send(pollFor(5, 30_000)) // gets the second record
	eventually(t, "both polls wait", func() bool { return x.metric("felix_group_polls_waiting") == 2 })
	c.leave()
	eventually(t, "the poll of the client that went is over", func() bool { return x.metric("felix_group_polls_waiting") == 1 })
	resume()
	var got []wire.GroupRecord
	got = append(got, b.polled(1)...)
	for len(got) < 2 {
		got = append(got, b.poll(pollFor(5, 30_000))...)
	}
	slices.SortFunc(got, func(x, y wire.GroupRecord) int { return int(x.Offset) - int(y.Offset) })
	handed(t, got, 1, 0, 1)
}

// A shard without room is told later that a connection is gone; nobody waits for that.
func TestAFullShardIsToldLaterThatAConnectionIsGone(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	c, other := x.connect(), dial(t, x.connect(), today())
	first := dial(t, c, today())
	handed(t, first.poll(pollFor(1, 0)), 0) // the group is up
	var lines []*line
	for range 6 {
		lines = append(lines, dial(t, c, today()))
	}
	entered := x.sabotage.hold("orders/0")
	first.send(pollFor(1, 30_000))
	want(t, entered, "the shard to stand still")
	const most = 1024 // of a shard's mailbox
	for i := range most + 1 {
		m := pollFor(1, 30_000)
		m.RequestID = uint64(i)
		lines[i%len(lines)].send(m)
	}
	// Its group may have something to be written in there too, in the place of one poll.
	eventually(t, "the shard is full", func() bool { return x.metric("felix_group_polls_waiting") >= most })
	c.leave()
	want(t, c.ctx.Done(), "the end of the connection")
	eventually(t, "the session is over", func() bool { return x.metric("felix_client_connections") == 1 })
	x.sabotage.release()
	eventually(t, "the polls are over", func() bool { return x.metric("felix_group_polls_waiting") == 0 })
	other.publish("orders", "a")
	handed(t, other.poll(pollFor(1, 10_000)), 1, 0)
}

func TestAConnectionPollsABoundedNumberOfGroups(t *testing.T) {
	var p polled
	h := &shardactor.Handle{Number: 1}
	for i := range groupsPerConn {
		if !p.add(h, fmt.Sprint(i)) {
			t.Fatalf("group %d was refused", i)
		}
	}
	if p.add(h, "one more") || !p.add(h, "7") || len(p.all()) != groupsPerConn {
		t.Errorf("%d groups are remembered", len(p.all()))
	}
	if p.add(&shardactor.Handle{Number: 2}, "7") {
		t.Error("the same name at another shard is another group")
	}
}
