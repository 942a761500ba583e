package client

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// road carries datagrams between one client and a broker. Sent elsewhere it leads to another broker, and what the first one says is lost:
// for the client its broker was killed, and another process is at its address.
type road struct {
	near, far *net.UDPConn
	client    atomic.Pointer[net.UDPAddr]
	broker    atomic.Pointer[net.UDPAddr]
}

func newRoad(t *testing.T, b *testbroker.Broker) *road {
	t.Helper()
	var ends [2]*net.UDPConn
	for i := range ends {
		s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = s
	}
	r := &road{near: ends[0], far: ends[1]}
	r.lead(t, b)
	var both sync.WaitGroup
	both.Go(func() { carry(r.near, r.far, &r.client, &r.broker, false) })
	both.Go(func() { carry(r.far, r.near, &r.broker, &r.client, true) })
	t.Cleanup(func() { _, _ = r.near.Close(), r.far.Close(); both.Wait() })
	return r
}

// lead makes the road lead to another broker.
func (r *road) lead(t *testing.T, b *testbroker.Broker) {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp4", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	r.broker.Store(to)
}

// carry takes datagrams until its socket is closed. From is who is at that end: known, or whoever is heard.
func carry(in, out *net.UDPConn, from, to *atomic.Pointer[net.UDPAddr], known bool) {
	datagram := make([]byte, 1<<16)
	for {
		n, sender, err := in.ReadFromUDP(datagram)
		if err != nil {
			return
		}
		if !known {
			from.Store(sender)
		} else if from.Load().Port != sender.Port {
			continue
		}
		if at := to.Load(); at != nil {
			_, _ = out.WriteToUDP(datagram[:n], at)
		}
	}
}

// untilQuiet waits until the broker has confirmed all that a client sent: nothing is left that would be sent once more.
func untilQuiet(t *testing.T, l *link) {
	t.Helper()
	looks := time.NewTicker(10 * time.Millisecond)
	defer looks.Stop()
	deadline := time.After(patience)
	for same, heard := 0, uint64(0); same < 15; {
		select {
		case <-looks.C:
		case <-deadline:
			t.Fatal("the connection does not come to rest")
		}
		now := l.conn.ConnectionStats().PacketsReceived
		if same++; now != heard {
			same, heard = 0, now
		}
	}
}

// deaf is a broker that takes requests and never answers one. Its sign-ins are counted.
func deaf(t *testing.T, logins *atomic.Int64, o testbroker.Options) (b *testbroker.Broker, taken chan struct{}) {
	taken = make(chan struct{}, 16)
	o.Streams, o.ResetKey = map[string]uint32{"ns/s": 1}, bytes.Repeat([]byte{7}, 32)
	after := o.OnAuth
	o.OnAuth = func(a *wire.Auth) *wire.Refusal {
		logins.Add(1)
		if after != nil {
			return after(a)
		}
		return nil
	}
	o.OnFrame = func(*testbroker.Stream, testbroker.Frame) bool { taken <- struct{}{}; return true }
	return testbroker.New(t, o), taken
}

// A request that a broker took and did not answer before it was killed is known to be lost soon after another is at its address: not after
// the seven seconds that a silent broker is given.
func TestARequestTakenByAKilledBrokerIsGivenUpSoonAfterItsRestart(t *testing.T) {
	noLeaks(t)
	var logins atomic.Int64
	first, taken := deaf(t, &logins, testbroker.Options{})
	second := testbroker.New(t, testbroker.Options{Share: first, ResetKey: bytes.Repeat([]byte{7}, 32)})
	r := newRoad(t, first)
	c := connect(t, first, func(o *Options) { o.Addrs, o.RetryDeadline = []string{r.near.LocalAddr().String()}, patience })
	outcome := make(chan error, 1)
	go func() {
		_, err := c.Publish(context.Background(), "ns", "s", []byte("x"))
		outcome <- err
	}()
	await(t, "the publish", taken)
	untilQuiet(t, laneOf(t, c).control.link)
	r.lead(t, second)
	err := await(t, "the end of the publish", outcome) // after a second and a half, on a machine with nothing else to do
	wantIs(t, err, ErrOutcomeUnknown)
	wantAs[*quic.StatelessResetError](t, err) // by the word of who is there now
	if _, err := c.Publish(within(t), "ns", "s", []byte("y")); err != nil {
		t.Errorf("a publish to the broker that is there now: %v", err)
	}
}

// A subscriber, who asks for nothing, finds out too, when pings stay without an answer.
func TestASubscriptionGoesOnSoonAfterItsKilledBrokerIsThereAgain(t *testing.T) {
	noLeaks(t)
	key := bytes.Repeat([]byte{7}, 32)
	first := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, ResetKey: key})
	second := testbroker.New(t, testbroker.Options{Share: first, ResetKey: key})
	r := newRoad(t, first)
	c := connect(t, first, func(o *Options) { o.Addrs = []string{r.near.LocalAddr().String()} })
	s, err := c.Subscribe(within(t), "ns", "s", SubscribeOptions{From: Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := c.entry.eventLinks.acquire(within(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	untilQuiet(t, l)
	r.lead(t, second)
	until(t, "the end of the connection", func() bool { // after three and a half seconds, without this hurry
		l.pulse.mu.Lock()
		defer l.pulse.mu.Unlock()
		if l.pulse.armed {
			l.pulse.timer.Reset(time.Millisecond)
		}
		return l.conn.Context().Err() != nil
	})
	wantAs[*quic.StatelessResetError](t, context.Cause(l.conn.Context())) // by the word of who is there now
	publisher := connect(t, second)
	if _, err := publisher.Publish(within(t), "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Next(within(t)); err != nil || string(e.Payload) != "x" {
		t.Fatalf("got %q, %v", e.Payload, err)
	}
}

func TestAQuietConnectionIsAskedEverMoreRarelyUntilARequestIsAnswered(t *testing.T) {
	q := quietness{heard: 1, patience: quietLooks}
	asks := func(looks int) (at []int) {
		for i := range looks {
			if q.look(1, false, true) {
				at = append(at, i+1)
				q.asked()
			}
		}
		return at
	}
	if got := asks(30); !slices.Equal(got, []int{2, 6, 14, 22, 30}) {
		t.Errorf("asked at looks %v", got)
	}
	if q.look(2, true, true) || q.look(2, false, true) || !q.look(2, false, true) {
		t.Error("two looks after an answer it is not asked")
	}
	q = quietness{heard: 1, patience: quietLooks}
	for range listenLooks - 1 {
		if q.look(1, false, false) {
			t.Fatal("a connection is asked before a ping of it could be answered")
		}
	}
	if !q.look(1, false, false) {
		t.Error("a connection whose pings are not answered is not asked")
	}
	for packets := range uint64(100) {
		if q.look(packets, false, true) {
			t.Fatal("a connection on which packets come is asked")
		}
	}
}

// However long a broker is silent, one question is under way on a connection; where nothing waits there is none.
func TestOneSignOfLifeAtATimeAndNoneOnIdleConnections(t *testing.T) {
	noLeaks(t)
	var logins atomic.Int64
	resume := make(chan struct{})
	b, taken := deaf(t, &logins, testbroker.Options{OnAuth: func(*wire.Auth) *wire.Refusal {
		if logins.Load() > 2 { // the client has greeted, and has its lane
			<-resume
		}
		return nil
	}})
	c := connect(t, b, func(o *Options) { o.PublishStreams = 1 })
	l, err := c.entry.publishLinks.acquire(within(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	p := &l.pulse
	for range 100 { // nothing waits
		p.look()
	}
	if n := logins.Load(); n != 1 {
		t.Fatalf("%d sign-ins on an idle connection", n)
	}
	publish := func() { _, _ = c.Publish(within(t), "ns", "s", []byte("x")) }
	var publishes sync.WaitGroup
	publishes.Go(publish)
	await(t, "the publish", taken)
	for logins.Load() < 3 {
		p.look()
	}
	for range 1000 {
		p.look()
	}
	if n := logins.Load(); n != 3 {
		t.Fatalf("%d questions are under way", n-2)
	}
	close(resume)
	for logins.Load() < 4 { // that one was answered
		p.look()
	}
	lanes := laneOf(t, c)
	lanes.fail(errors.New("the test is over"))
	publishes.Wait()
}
