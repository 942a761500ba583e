package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/transport"
)

// field case PRO-09: a path that carries 1,200 bytes and no more, or 1,400, with and without receive offload. Probes for larger
// datagrams are lost; the transfer, both ways, is not. A path that shrinks under a connection is listed in README.md.
func TestPRO09_ASmallPathMTUDegradesAndNeverStalls(t *testing.T) {
	aside(t)
	const each = 64 << 10
	rounds := size("narrow_transfers")
	for _, c := range []struct {
		largest int
		off     bool
	}{{1200, false}, {1400, false}, {1200, true}} {
		t.Run(fmt.Sprintf("%d offload %v", c.largest, !c.off), func(t *testing.T) {
			h := open(t, setup{NoOffload: c.off})
			p := h.proxied(t)
			p.limit(c.largest)
			k := h.connectTo(t, p.in.LocalAddr().String())
			value := bytes.Repeat([]byte("v"), each)
			ctx, cancel := timeout(patience)
			defer cancel()
			for i := range rounds {
				if err := k.CachePut(ctx, namespace, "users", "large", value, 0); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
				got, _, err := k.CacheGet(ctx, namespace, "users", "large")
				if err != nil || !bytes.Equal(got, value) {
					t.Fatalf("%d: %d bytes, %v", i, len(got), err)
				}
			}
			if p.drops() == 0 {
				t.Error("the path dropped nothing: it was never tried")
			}
		})
	}
}

// field case PRO-10: a broker with socket buffers of 64 KiB under a burst of 64 publishers loses no answer.
func TestPRO10_SmallSocketBuffersAreSurvived(t *testing.T) {
	aside(t)
	const publishers = 64
	each := raced(40, 8)
	h := open(t, setup{SocketBuffers: 64 << 10})
	var all sync.WaitGroup
	payload := bytes.Repeat([]byte("x"), 4<<10)
	for range publishers / 8 {
		c := h.connect(t)
		for range 8 {
			all.Go(func() {
				ctx, cancel := timeout(patience)
				defer cancel()
				for range each {
					if _, err := c.Publish(ctx, namespace, "other", payload); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if n := h.Metric("felix_published_records_total"); n != float64(publishers*each) {
		t.Errorf("%v records were published, want %d", n, publishers*each)
	}
}

// field case PRO-11: all datagrams of a session, sent again and again from its address and from others, have no effect: there is
// no early data, and everything else is bound to its handshake.
func TestPRO11_AReplayedSessionHasNoEffect(t *testing.T) {
	aside(t)
	h := open(t, setup{Handshake: time.Second})
	p := h.proxied(t)
	p.mu.Lock()
	p.record = true
	p.mu.Unlock()
	c := h.connectTo(t, p.in.LocalAddr().String())
	ctx, cancel := timeout(patience)
	defer cancel()
	if _, err := c.Publish(ctx, namespace, "orders", []byte("once")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	flights := p.recorded
	p.record = false
	p.mu.Unlock()
	before := h.Look().Metrics
	if len(flights) < 4 || before["felix_published_records_total"] != 1 {
		t.Fatalf("%d datagrams were recorded and %v records published", len(flights), before["felix_published_records_total"])
	}
	elsewhere := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 90)}))(t)
	defer func() { _ = elsewhere.Close() }()
	least, rounds := size("replayed_flights"), 0
	eventually(t, "first flights were taken for handshakes, and came to nothing", func() bool {
		for _, b := range flights {
			_, _ = elsewhere.WriteTo(b, p.broker)
			p.mu.Lock()
			_, _ = p.out.WriteTo(b, p.broker)
			p.mu.Unlock()
		}
		after(200 * time.Millisecond)
		rounds++
		return rounds >= least && h.Metric("failed{timeout}") > 0
	})
	h.from(t, 11).dial().open().alive("after the replays")
	after := h.Look().Metrics
	for _, name := range []string{"felix_published_records_total", "felix_auth_failures_total"} {
		if after[name] != before[name] {
			t.Errorf("%s went from %v to %v", name, before[name], after[name])
		}
	}
}

// field case PRO-12: requests under way when a broker is killed end within 8 s, as unknown, with the settings that clients have. At a landing the
// time does not count in which the machine lets nobody here go on.
func TestPRO12_AKilledBrokerIsNoticedQuickly(t *testing.T) {
	aside(t)
	clients := 20
	if effort.Full() {
		clients = 100
	}
	for range size("killed_brokers") {
		h := open(t, setup{})
		ctx, cancel := context.WithCancel(context.Background())
		var failed sync.WaitGroup
		ends := make(chan time.Time, clients)
		var working []func() error
		for i := range clients {
			c := h.Client(t)
			publish := func() error {
				_, err := c.Publish(ctx, namespace, busyKind, []byte("x"), client.WithKey([]byte(fmt.Sprint(i))))
				return err
			}
			if err := publish(); err != nil {
				t.Fatal(err)
			}
			working = append(working, publish)
		}
		before := h.Command("busy 300ms").Metrics["felix_published_records_total"] // from here on publishes wait for their answers
		for _, publish := range working {
			failed.Go(func() {
				for {
					if err := publish(); err != nil {
						if !errors.Is(err, client.ErrOutcomeUnknown) && !errors.Is(err, client.ErrConnectionLost) {
							t.Errorf("a publish to a killed broker ended with %v", err)
						}
						ends <- time.Now()
						return
					}
				}
			})
		}
		h.Counts("felix_published_records_total", before+float64(clients))
		stalled := stalls()
		began := time.Now()
		h.Kill()
		failed.Wait()
		cancel()
		soon := 8 * time.Second
		if lost := stalled(); !effort.Full() {
			soon += lost
		}
		for range clients {
			if took := (<-ends).Sub(began); took > soon {
				t.Errorf("a request ended %v after the broker was killed, want %v", took, soon)
			}
		}
	}
}

// stalls adds up how late a ticker of this process is, until the function that it returns is called.
func stalls() (end func() time.Duration) {
	const every = 10 * time.Millisecond
	stop, lost := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		var sum time.Duration
		timer := time.NewTimer(every)
		defer timer.Stop()
		for began := time.Now(); ; began = time.Now() {
			select {
			case <-timer.C:
				sum += time.Since(began) - every
				timer.Reset(every)
			case <-stop:
				lost <- sum
				return
			}
		}
	}()
	return func() time.Duration { close(stop); return <-lost }
}

// field case PRO-12: a client whose address changes again and again keeps its connection and its subscription.
func TestPRO12_AClientWhoseAddressChangesKeepsItsSubscription(t *testing.T) {
	aside(t)
	h := open(t, setup{})
	p := h.proxied(t)
	sub := must(h.connectTo(t, p.in.LocalAddr().String()).Subscribe(t.Context(), namespace, "other", client.SubscribeOptions{}))(t)
	publisher := h.connect(t)
	ctx, cancel := timeout(patience)
	defer cancel()
	moves := 6
	if !effort.Full() {
		moves = 3
	}
	for i := range moves {
		if _, err := publisher.Publish(ctx, namespace, "other", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		if e, err := sub.Next(ctx); err != nil || string(e.Payload) != fmt.Sprint(i) {
			t.Fatalf("event %d: %q, %v", i, e.Payload, err)
		}
		p.rebind()
		after(transport.ClientKeepAlive / 4)
	}
	if n := h.Metric("felix_client_connections_total"); n != 2 {
		t.Errorf("%v connections were made, want 2", n)
	}
}
