package client

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
)

// orphan is a client whose only broker died without a word: datagrams to it still leave, and nothing comes back.
func orphan(t *testing.T, changes ...change) *Client {
	t.Helper()
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b, append([]change{func(o *Options) { o.Attempts = 3 }}, changes...)...)
	l, err := c.entry.publishLinks.acquire(within(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the connection", l.conn.Context().Done())
	leadTo(c, deadAddress(t))
	c.opts.DialTimeout = 20 * time.Millisecond // from here on nobody can answer, however slow this machine is
	return c
}

// leadTo makes a client look for brokers at one address.
func leadTo(c *Client, addr string) {
	c.seeds.mu.Lock()
	defer c.seeds.mu.Unlock()
	c.seeds.configured = []string{addr}
}

// countDials is a port at which nobody answers, and how often it was dialed: a dial has an id of its own in its packets (RFC 9000 17.2).
func countDials(t *testing.T) (addr string, dials func() int) {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var seen sync.Map
	var reader sync.WaitGroup
	reader.Go(func() {
		datagram := make([]byte, 1<<16)
		for {
			n, err := socket.Read(datagram)
			if err != nil {
				return
			}
			if n > 6 { // a byte, the version, the length of the id, the id
				seen.Store(string(datagram[6:min(n, 6+int(datagram[5]))]), true)
			}
		}
	})
	t.Cleanup(func() { _ = socket.Close(); reader.Wait() })
	return socket.LocalAddr().String(), func() (n int) {
		seen.Range(func(any, any) bool { n++; return true })
		return n
	}
}

func TestCallToADeadBrokerFailsAfterItsTries(t *testing.T) {
	noLeaks(t)
	clock := newClock()
	c := orphan(t)
	c.sleep = clock.sleep
	_, err := c.Publish(within(t), "ns", "s", []byte("x"))
	wantIs(t, err, ErrUnreachable)
	if errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("nothing was sent: %v", err)
	}
	if g := wantAs[*GaveUpError](t, err); g.Tries != 3 {
		t.Fatalf("%d tries", g.Tries)
	}
	if n := len(clock.slept()); n != 2 {
		t.Fatalf("%d pauses", n)
	}
}

func TestManyCallsToADeadBrokerFailTogether(t *testing.T) {
	noLeaks(t)
	c := orphan(t, func(o *Options) { o.PublishStreams = 2 })
	addr, dials := countDials(t)
	leadTo(c, addr)
	ctx := within(t)
	var callers sync.WaitGroup
	fails := func(call func() error) {
		callers.Go(func() {
			if err := call(); !errors.Is(err, ErrUnreachable) {
				t.Error(err)
			}
		})
	}
	const each = 60
	for range each {
		fails(func() error { _, err := c.Publish(ctx, "ns", "s", []byte("x")); return err })
		fails(func() error { _, err := c.Subscribe(ctx, "ns", "s", SubscribeOptions{}); return err })
	}
	callers.Wait()
	until(t, "the arrival of a dial", func() bool { return dials() > 0 })
	if n := dials(); n > each { // each for itself they would dial six times as often
		t.Fatalf("%d dials for %d calls", n, 2*each)
	}
}

func TestRetryDeadlineEndsRepetition(t *testing.T) {
	clock := newClock()
	c := orphan(t, func(o *Options) { o.Attempts, o.RetryDeadline = 100, 2*time.Second })
	c.now, c.sleep = clock.now, clock.sleep
	c.jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	_, err := c.StreamShards(within(t), "ns", "s")
	if g := wantAs[*GaveUpError](t, err); g.Tries != 4 { // pauses of 200, 400, 800 ms; 1.6 s more would be too long
		t.Fatalf("%d tries, pauses %v", g.Tries, clock.slept())
	}
}

func TestCanceledCallToADeadBrokerEndsAtOnce(t *testing.T) {
	noLeaks(t)
	c := orphan(t)
	c.opts.DialTimeout = 2 * patience
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	called := make(chan error, 1)
	go func() { _, err := c.Publish(ctx, "ns", "s", []byte("x")); called <- err }()
	wantIs(t, await(t, "end of the call", called), context.DeadlineExceeded) // while the dial goes on
	if err := c.Close(within(t)); err != nil {                               // gives the dial up that goes on
		t.Fatal(err)
	}
}

func TestSecondAddressTakesOverWhenTheFirstBrokerDies(t *testing.T) {
	noLeaks(t)
	first := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	second := testbroker.New(t, testbroker.Options{Share: first})
	c := connect(t, first, func(o *Options) {
		o.Addrs = []string{first.Addr(), second.Addr()}
	})
	ctx := within(t)
	if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	lane := laneOf(t, c)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the lane", lane.closed)
	pastTheDead(t, c, func() error { _, err := c.Publish(ctx, "ns", "s", []byte("y")); return err })
	if second.Connections() == 0 {
		t.Fatal("nobody came to the second broker")
	}
}
