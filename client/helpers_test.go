package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/client/testbroker"
)

// patience is how long a test waits for something that should happen at once: it costs nothing where that happens, and a slow machine
// needs it.
const patience = time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

type change func(*Options)

func optionsFor(b *testbroker.Broker, changes ...change) Options {
	o := Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM, NoDiscovery: true,
		DialTimeout: patience} // who has to find out that nobody is there says how soon, when nobody alive is dialed any more
	for _, c := range changes {
		c(&o)
	}
	return o
}

// connect makes a client whose pauses between tries take no time.
func connect(t *testing.T, b *testbroker.Broker, changes ...change) *Client {
	t.Helper()
	return connectWith(t, b, func(*Client) {}, changes...)
}

// connectWith is connect with other seams.
func connectWith(t *testing.T, b *testbroker.Broker, seams func(c *Client), changes ...change) *Client {
	t.Helper()
	o, err := optionsFor(b, changes...).complete()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(o)
	if err != nil {
		t.Fatal(err)
	}
	c.jitter = func(time.Duration) time.Duration { return 0 }
	seams(c)
	t.Cleanup(func() {
		if err := c.Close(within(t)); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	if err := c.greet(within(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// noLeaks checks at the very end of a test that no goroutine is left of it. One look takes half a second at most, in which those that end may
// not have had a turn on a busy machine.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		err := goleak.Find(before)
		for late := time.Now().Add(patience); err != nil && time.Now().Before(late); {
			err = goleak.Find(before)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// clock is a time that moves when it is told to, or when somebody pauses.
type clock struct {
	mu     sync.Mutex
	at     time.Time
	pauses []time.Duration
}

func newClock() *clock { return &clock{at: time.Unix(1_800_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// sleep is a pause that takes no time but moves the clock.
func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.pauses = append(c.pauses, d)
	return ctx.Err()
}

func (c *clock) slept() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pauses)
}

// atSomeSpeed runs a round that has to be quicker than a time, with ever longer times until it was: a slow machine gets more. A round
// judges by itself what must hold at any speed.
func atSomeSpeed(t *testing.T, first time.Duration, round func(d time.Duration) bool) {
	t.Helper()
	d := first
	for !round(d) {
		if d *= 4; d > patience/4 {
			t.Fatalf("it does not do within %v", d/4)
		}
	}
}

// pastTheDead makes a call that goes on to somebody alive once a dial of the dead has taken too long, with a time for dials that suffices
// for the living. Nobody else uses the client meanwhile.
func pastTheDead(t *testing.T, c *Client, call func() error) {
	t.Helper()
	atSomeSpeed(t, 100*time.Millisecond, func(d time.Duration) bool {
		c.opts.DialTimeout = d
		err := call()
		if err != nil && !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// deadAddress is a port at which datagrams arrive and nobody answers.
func deadAddress(t *testing.T) string {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return socket.LocalAddr().String()
}

func wantIs(t *testing.T, err error, marks ...error) {
	t.Helper()
	for _, mark := range marks {
		if !errors.Is(err, mark) {
			t.Fatalf("got %v (%T), want an error that matches %q", err, err, mark)
		}
	}
}

func wantAs[T error](t *testing.T, err error) T {
	t.Helper()
	var target T
	if !errors.As(err, &target) {
		t.Fatalf("got %v (%T), want a %T", err, err, target)
	}
	return target
}

func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}
