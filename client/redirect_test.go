package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// cluster is brokers that share streams, each with an answer of its own to subscribes; a nil answer serves them.
type cluster struct {
	brokers []*testbroker.Broker
	asked   []atomic.Int64 // subscribes, by broker
}

func newCluster(t *testing.T, durable bool, answers ...func(cl *cluster, s *testbroker.Stream, m *wire.Subscribe) bool) *cluster {
	t.Helper()
	cl := &cluster{asked: make([]atomic.Int64, len(answers))}
	for i, answer := range answers {
		o := testbroker.Options{Streams: map[string]uint32{"ns/s": 2}, Durable: durable}
		if i > 0 {
			o = testbroker.Options{Share: cl.brokers[0]}
		}
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
			m, ok := f.Message().(*wire.Subscribe)
			if !ok {
				return false
			}
			cl.asked[i].Add(1)
			return answer != nil && answer(cl, s, m)
		}
		cl.brokers = append(cl.brokers, testbroker.New(t, o))
	}
	return cl
}

// pointTo answers with a redirect to another broker of the cluster.
func pointTo(i int) func(*cluster, *testbroker.Stream, *wire.Subscribe) bool {
	return func(cl *cluster, s *testbroker.Stream, _ *wire.Subscribe) bool {
		s.Send(&wire.NotLeader{NodeID: fmt.Sprint(i), Addr: wire.Some(cl.brokers[i].Addr()), Generation: 1})
		return true
	}
}

func refuse(code wire.Code) func(*cluster, *testbroker.Stream, *wire.Subscribe) bool {
	return func(_ *cluster, s *testbroker.Stream, _ *wire.Subscribe) bool {
		s.Refuse(wire.Refuse(code, "no"))
		return true
	}
}

func (cl *cluster) counts() []int64 {
	n := make([]int64, len(cl.asked))
	for i := range n {
		n[i] = cl.asked[i].Load()
	}
	return n
}

// mission 356 (redirects, of brokers that a test tells what to do)
func TestRedirectsAreFollowedUpToThreeHopsAndNeverTwiceToOneBroker(t *testing.T) {
	for name, row := range map[string]struct {
		answers []func(*cluster, *testbroker.Stream, *wire.Subscribe) bool
		counts  []int64
		mark    error
	}{
		"one hop":         {[]func(*cluster, *testbroker.Stream, *wire.Subscribe) bool{pointTo(1), nil}, []int64{1, 1}, nil},
		"three hops":      {[]func(*cluster, *testbroker.Stream, *wire.Subscribe) bool{pointTo(1), pointTo(2), pointTo(3), nil}, []int64{1, 1, 1, 1}, nil},
		"four hops":       {[]func(*cluster, *testbroker.Stream, *wire.Subscribe) bool{pointTo(1), pointTo(2), pointTo(3), pointTo(4), nil}, []int64{1, 1, 1, 1, 0}, ErrNotLeader},
		"round in circle": {[]func(*cluster, *testbroker.Stream, *wire.Subscribe) bool{pointTo(1), pointTo(2), pointTo(1)}, []int64{1, 1, 1}, ErrNotLeader},
		"fatal on the way": {[]func(*cluster, *testbroker.Stream, *wire.Subscribe) bool{pointTo(1), refuse(wire.CodeForbidden)},
			[]int64{1, 1}, ErrForbidden},
		"back to the entry once": {[]func(*cluster, *testbroker.Stream, *wire.Subscribe) bool{pointTo(1), refuse(wire.CodeShardUnavailable)},
			[]int64{2, 1}, ErrNotLeader}, // which points to the same broker again
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			cl := newCluster(t, false, row.answers...)
			c := connect(t, cl.brokers[0], func(o *Options) { o.Attempts = 1 })
			s, err := c.Subscribe(within(t), "ns", "s", SubscribeOptions{})
			if row.mark == nil {
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
			} else {
				wantIs(t, err, row.mark)
			}
			if got := cl.counts(); fmt.Sprint(got) != fmt.Sprint(row.counts) {
				t.Fatalf("subscribes by broker %v, want %v", got, row.counts)
			}
		})
	}
}

func TestOwnerIsRememberedAndForgottenWhenItRefuses(t *testing.T) {
	noLeaks(t)
	var refuses atomic.Bool
	cl := newCluster(t, false,
		func(cl *cluster, s *testbroker.Stream, m *wire.Subscribe) bool {
			return !refuses.Load() && pointTo(1)(cl, s, m) // owns it from then on
		},
		func(_ *cluster, s *testbroker.Stream, m *wire.Subscribe) bool {
			return refuses.Load() && refuse(wire.CodeShardUnavailable)(nil, s, m)
		})
	c := connect(t, cl.brokers[0])
	subscribe(t, c, SubscribeOptions{})
	subscribe(t, c, SubscribeOptions{})
	if got := fmt.Sprint(cl.counts()); got != "[1 2]" {
		t.Fatalf("subscribes by broker %v: the owner was not remembered", got)
	}
	refuses.Store(true)
	subscribe(t, c, SubscribeOptions{}) // the owner refuses, the entry serves
	subscribe(t, c, SubscribeOptions{})
	if got := fmt.Sprint(cl.counts()); got != "[3 3]" {
		t.Fatalf("subscribes by broker %v: the owner was not forgotten", got)
	}
}

func TestRedirectToABrokerThatIsDeadGoesBackToTheEntry(t *testing.T) {
	noLeaks(t)
	dead := deadAddress(t)
	var asked atomic.Int64
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.Subscribe); !ok || asked.Add(1) > 1 {
			return false
		}
		s.Send(&wire.NotLeader{NodeID: "x", Addr: wire.Some(dead), Generation: 1})
		return true
	}})
	c := connect(t, b)
	c.opts.DialTimeout = 50 * time.Millisecond // from here on only the dead one is dialed
	subscribe(t, c, SubscribeOptions{})
	if n := asked.Load(); n != 2 {
		t.Fatalf("the entry was asked %d times", n)
	}
}

// owned is an entry that forwards publishes to an owner and says so, and that owner. Each counts what it got itself.
type owned struct {
	entry, owner  *testbroker.Broker
	direct        [2]atomic.Int64
	generation    atomic.Uint64
	ownerRefuses  atomic.Pointer[wire.Refusal]
	holdForwarded chan struct{} // if set, the entry answers only when it is closed
}

func newOwned(t *testing.T, hold chan struct{}) *owned {
	t.Helper()
	w := &owned{holdForwarded: hold}
	w.generation.Store(1)
	w.owner = testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, ok := f.Publish()
		if !ok {
			return false
		}
		w.direct[1].Add(1)
		if r := w.ownerRefuses.Load(); r != nil {
			s.Ack(wire.PublishAck{RequestID: p.RequestID, Refusal: r})
			return true
		}
		return false
	}})
	w.entry = testbroker.New(t, testbroker.Options{Share: w.owner, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, ok := f.Publish()
		if !ok {
			return false
		}
		w.direct[0].Add(1)
		first := w.owner.Append("ns/s", 0, p.Region)
		if w.holdForwarded != nil {
			select {
			case <-w.holdForwarded:
			case <-s.Conn.Context().Done():
			}
		}
		owner := &wire.Owner{NodeID: "owner", Addr: w.owner.Addr(), Generation: id.Generation(w.generation.Load())}
		s.Ack(wire.PublishAck{RequestID: p.RequestID, HasOffset: true, Offset: id.Offset(first), Owner: owner})
		return true
	}})
	return w
}

func (w *owned) counts() string { return fmt.Sprint(w.direct[0].Load(), w.direct[1].Load()) }

func TestPublishesGoToTheOwnerThatAnAnswerNamed(t *testing.T) {
	noLeaks(t)
	w := newOwned(t, nil)
	c := connect(t, w.entry)
	ctx := within(t)
	for range 4 {
		if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.counts(); got != "1 3" {
		t.Fatalf("publishes at entry and owner: %s", got)
	}
	if n := c.Stats().Forwarded; n != 1 {
		t.Fatalf("%d were forwarded", n)
	}
}

func TestOwnerOfAnOlderGenerationIsOldNews(t *testing.T) {
	c := &Client{opts: Options{PublishStreams: 1, CacheStreams: 1}}
	c.entry = newTarget(c, "")
	var r route
	at := func(addr string, generation id.Generation) *target {
		r.learn(c, wire.Owner{NodeID: addr, Addr: addr, Generation: generation})
		return r.current(c.entry)
	}
	if got := at("a:1", 5); got.addr != "a:1" {
		t.Fatalf("at %q", got.addr)
	}
	if got := at("b:1", 4); got.addr != "a:1" {
		t.Fatalf("an older owner took over: %q", got.addr)
	}
	if got := at("", 6); got != c.entry {
		t.Fatalf("an owner without an address: at %q", got.addr)
	}
	if got := at("b:1", 6); got.addr != "b:1" {
		t.Fatalf("at %q", got.addr)
	}
	r.forget(c.entry) // another one
	if r.current(c.entry).addr != "b:1" {
		t.Fatal("an owner was forgotten for the refusal of another broker")
	}
}

func TestOwnersAreBoundedAndTheDeadMakeRoom(t *testing.T) {
	c := &Client{opts: Options{PublishStreams: 1, CacheStreams: 1}}
	for i := range 3 * ownersMax {
		if target := c.owners.at(c, fmt.Sprintf("host:%d", i)); target == nil || len(c.owners.byAddr) > ownersMax {
			t.Fatalf("owner %d: %v, %d are kept", i, target, len(c.owners.byAddr))
		}
	}
}

func TestOwnersBeyondTheBoundAreServedThroughTheEntry(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{})
	c := connect(t, b)
	living, err := c.entry.publishLinks.acquire(within(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	for i := range ownersMax {
		slot := &c.owners.at(c, fmt.Sprintf("host:%d", i)).publishLinks.slots[0]
		slot.value, slot.full = living, true
	}
	var r route
	r.learn(c, wire.Owner{NodeID: "one too many", Addr: "host:x", Generation: 1})
	if at := r.current(c.entry); at != c.entry {
		t.Fatalf("publishes go to %q", at.addr)
	}
	if at := c.hop(&NotLeaderError{Addr: "host:x"}); at != nil {
		t.Fatalf("a redirect leads to %q", at.addr)
	}
}

func TestRecordRefusedByARememberedOwnerIsSentOnceMoreThroughTheEntry(t *testing.T) {
	noLeaks(t)
	w := newOwned(t, nil)
	c := connect(t, w.entry)
	ctx := within(t)
	for range 2 {
		if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	fenced := wire.Refuse(wire.CodeShardUnavailable, "fenced").WithReason(wire.ReasonFenced, 0)
	w.ownerRefuses.Store(&fenced)
	if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := w.counts(); got != "2 2" {
		t.Fatalf("publishes at entry and owner: %s", got)
	}
	// One that keeps no copy of its record is returned, and what follows goes through the entry.
	w.generation.Store(2)
	p, err := c.PublishAsync(ctx, "ns", "s", []byte("x")) // the entry named the owner again
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Wait(ctx)
	wantIs(t, err, ErrUnavailable)
	if !Retryable(err) {
		t.Fatalf("%v is not retryable", err)
	}
	if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := w.counts(); got != "3 3" {
		t.Fatalf("publishes at entry and owner: %s", got)
	}
	overloaded := wire.Refuse(wire.CodeOverloaded, "later")
	w.ownerRefuses.Store(&overloaded)
	_, err = c.Publish(ctx, "ns", "s", []byte("x"))
	wantIs(t, err, ErrOverloaded)
	if got := w.counts(); got != "3 4" {
		t.Fatalf("publishes at entry and owner after an overload: %s", got)
	}
}

func TestOwnerThatDiedIsForgottenBeforeAnythingIsSent(t *testing.T) {
	noLeaks(t)
	w := newOwned(t, nil)
	c := connect(t, w.entry)
	ctx := within(t)
	for range 2 {
		if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	target := c.owners.at(c, w.owner.Addr())
	lane, _ := target.publishes.places[c.publishPlace(c.streams.entry("ns", "s"), 0)].current()
	if err := w.owner.Stop(); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the lane", lane.closed)
	c.opts.DialTimeout = 50 * time.Millisecond // from here on only the dead one is dialed
	if _, err := c.PublishAsync(ctx, "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := w.direct[0].Load(); got > 2 {
		t.Fatalf("%d publishes at the entry", got)
	}
}

func TestOrderSurvivesTheChangeToTheOwner(t *testing.T) {
	noLeaks(t)
	hold := make(chan struct{})
	w := newOwned(t, hold)
	c := connect(t, w.entry)
	ctx := within(t)
	const n = 40
	var pending []*PendingPublish
	publish := func(i int) {
		t.Helper()
		p, err := c.PublishAsync(ctx, "ns", "s", fmt.Append(nil, i))
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
	}
	publish(0)
	publish(1)
	hold <- struct{}{}
	if _, err := pending[0].Wait(ctx); err != nil { // names the owner, while the second is under way
		t.Fatal(err)
	}
	go close(hold)
	for i := 2; i < n; i++ {
		publish(i)
	}
	for _, p := range pending {
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if w.direct[1].Load() == 0 {
		t.Fatal("nothing went to the owner")
	}
	s, err := connect(t, w.owner).Subscribe(ctx, "ns", "s", SubscribeOptions{From: Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range n {
		wantPayload(t, s, fmt.Sprint(i))
	}
}

func TestNothingTakesTheNewWayWhileTheOldOneIsInUse(t *testing.T) {
	c := &Client{opts: Options{PublishStreams: 1, CacheStreams: 1}}
	c.entry = newTarget(c, "")
	var r route
	ctx := within(t)
	enter := func() *target {
		at, err := r.enter(ctx, c.entry)
		if err != nil {
			t.Error(err)
		}
		return at
	}
	for range 2 {
		if enter() != c.entry {
			t.Fatal("the first publishes did not go to the entry")
		}
	}
	r.learn(c, wire.Owner{NodeID: "o", Addr: "o:1", Generation: 1})
	var waiting sync.WaitGroup
	passed := make(chan *target, 5)
	for range cap(passed) {
		waiting.Go(func() { passed <- enter() })
	}
	r.leave()
	if len(passed) != 0 {
		t.Fatal("a publish took the new way beside one on the old")
	}
	r.leave()
	waiting.Wait()
	for range cap(passed) {
		if at := <-passed; at.addr != "o:1" {
			t.Fatalf("at %q", at.addr)
		}
	}
	if !r.busy() {
		t.Fatal("five publishes are under way, and the route is idle")
	}
	r.learn(c, wire.Owner{NodeID: "p", Addr: "p:1", Generation: 2})
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := r.enter(canceled, c.entry)
	wantIs(t, err, context.Canceled)
}
