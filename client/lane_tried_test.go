package client

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// relay stands between a client and a broker, which hears nothing any more once it is deaf, and whom the client hears all the same.
type relay struct {
	addr string
	deaf atomic.Bool
}

func relayTo(t *testing.T, broker string) *relay {
	t.Helper()
	near, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	to, err := net.ResolveUDPAddr("udp4", broker)
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.DialUDP("udp4", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: near.LocalAddr().String()}
	var client atomic.Pointer[net.UDPAddr]
	var both sync.WaitGroup
	both.Go(func() {
		for b := make([]byte, 1<<16); ; {
			n, from, err := near.ReadFromUDP(b)
			if err != nil {
				return
			}
			client.Store(from)
			if !r.deaf.Load() {
				_, _ = far.Write(b[:n])
			}
		}
	})
	both.Go(func() {
		for b := make([]byte, 1<<16); ; {
			n, err := far.Read(b)
			if err != nil {
				return
			}
			_, _ = near.WriteToUDP(b[:n], client.Load())
		}
	})
	t.Cleanup(func() { _, _ = near.Close(), far.Close(); both.Wait() })
	return r
}

// A broker that acknowledges nothing and answers requests that it cannot have got gives back what they hold of the client's budgets. All that is
// written without the writer is bounded by itself.
func TestABrokerThatHearsNothingAndAnswersHasABoundedPartKept(t *testing.T) {
	const size = 4 << 10
	streams := make(chan *testbroker.Stream, 1)
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, is := f.Message().(*wire.CachePut); is {
			select {
			case streams <- s:
			default:
			}
		}
		return false
	}})
	r := relayTo(t, b.Addr())
	c := connectWith(t, b, func(c *Client) {
		for _, q := range c.quic {
			q.MaxIdleTimeout = patience // it must not find out first
		}
	}, func(o *Options) { o.Addrs, o.CacheStreams = []string{r.addr}, 1 })
	put := func() <-chan error {
		over := make(chan error, 1)
		go func() { over <- c.CachePut(within(t), "ns", "c", "k", make([]byte, size), time.Minute) }()
		return over
	}
	if err := await(t, "the first answer", put()); err != nil {
		t.Fatal(err)
	}
	broker := await(t, "the first request", streams)
	l, _ := c.entry.caches.places[0].current()
	look := func() (last uint64, written, stands bool, tried int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.lastID, l.pending.len() == 1, l.writing, l.tried
	}
	r.deaf.Store(true)
	before, _, _, _ := look()
	for {
		over := put()
		until(t, "the request is written, or about to be", func() bool { last, written, _, _ := look(); return last > before && written })
		last, _, stands, tried := look()
		if before = last; tried > triedMost {
			t.Fatalf("%d bytes were written without the writer", tried)
		}
		broker.Send(&wire.CacheOK{RequestID: last})
		if err := await(t, "the answer", over); err != nil {
			t.Fatal(err)
		}
		if stands { // the windows of the broker have room for twice as much
			break
		}
	}
	b.Drop(0)
	await(t, "the end of the lane", l.closed)
}

// One whose broker takes what is written writes without the writer again and again.
func TestAWriteOfTheWriterMakesRoomForWhatIsWrittenWithoutIt(t *testing.T) {
	const size = 3 << 10
	c := connect(t, testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}}), func(o *Options) { o.CacheStreams = 1 })
	most, fell := 0, 0
	for last := 0; most < triedMost/2 || fell < 2; {
		if err := c.CachePut(within(t), "ns", "c", "k", make([]byte, size), time.Minute); err != nil {
			t.Fatal(err)
		}
		l, _ := c.entry.caches.places[0].current()
		l.mu.Lock()
		now := l.tried
		l.mu.Unlock()
		if now < last {
			fell++
		}
		last, most = now, max(most, now)
	}
	if most > triedMost {
		t.Errorf("%d bytes were written without the writer", most)
	}
}
