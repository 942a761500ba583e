package streams

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

// parallel is how many clients come and go at a time.
const parallel = 8

// guest is a raw client with a subscription.
type guest struct {
	*raw
	socket *mute
	stream *quic.Stream
	events *quic.ReceiveStream
}

// settle signs in, subscribes and receives a record.
func (g *guest) settle(ctx context.Context) (err error) {
	if g.stream, err = g.signIn(ctx); err != nil {
		return err
	}
	if g.events, err = g.subscribe(ctx, g.stream, orders); err != nil {
		return err
	}
	if h, _, err := readFrame(g.events); err != nil || !h.Flags.Has(wire.FlagEventBatchShared) {
		return fmt.Errorf("receive: flags 0x%04x, %w", uint16(h.Flags), err)
	}
	return nil
}

// way is one in which guests leave.
type way struct {
	name string
	do   func(g *guest)
}

// The ways there are, the last of which takes its time. A killed process is one more, see killOne.
var leaving = []way{
	{"closed", func(g *guest) {
		_ = g.conn.CloseWithError(0, "")
		g.release()
	}},
	{"reset", func(g *guest) {
		g.events.CancelRead(7)
		g.stream.CancelWrite(7)
		g.stream.CancelRead(7)
		_ = g.conn.CloseWithError(9, "reset")
		g.release()
	}},
	{"silent", func(g *guest) { // both sides give the connection up when nothing was heard for long enough
		g.socket.silent.Store(true)
		<-g.conn.Context().Done()
		g.release()
	}},
}

// come lets n guests come, some at a time, each with the next of the ways to leave, and waits until all have left. It returns how many came in
// vain.
func come(t testing.TB, at testkit.Place, n int, ways []way) (vain int) {
	t.Helper()
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	var left sync.WaitGroup
	var all atomic.Int64
	inParallel(t, n, func(i int) error {
		g, vain, err := receive(ctx, at)
		if err != nil {
			return err
		}
		all.Add(int64(vain))
		left.Go(func() { ways[i%len(ways)].do(g) })
		return nil
	})
	left.Wait()
	return int(all.Load())
}

// inParallel does something n times, some at a time. The first error ends it and fails the test.
func inParallel(t testing.TB, n int, do func(i int) error) {
	t.Helper()
	var workers sync.WaitGroup
	failed := make(chan error, parallel)
	for w := range parallel {
		workers.Go(func() {
			for i := w; i < n; i += parallel {
				if err := do(i); err != nil {
					failed <- fmt.Errorf("%d of %d: %w", i, n, err)
					return
				}
			}
		})
	}
	workers.Wait()
	close(failed)
	for err := range failed {
		t.Fatal(err)
	}
}

// gauges are what must be exactly 0 in a broker that nobody uses.
func gauges() []string {
	return []string{
		"felix_client_connections", "felix_client_streams", "felix_subscribers", "felix_publish_inflight_bytes", "felix_publish_queue_slots",
		"felix_frame_bytes", "felix_partial_frame_bytes", "felix_preauth_streams", "felix_sub_lagging", "felix_sub_reader_bytes",
	}
}

// empty waits until a broker holds nothing for anybody, and returns its state after a collection.
func empty(t testing.TB, b *testkit.Broker) (s testkit.State) {
	t.Helper()
	var left string
	if !testkit.Eventually(t, "nothing is held any more", func() bool {
		s, left = b.Look(), ""
		for _, name := range gauges() {
			if v, ok := s.Metrics[name]; !ok || v != 0 {
				left = fmt.Sprintf("%s is %v", name, v)
			}
		}
		return left == "" && s.Open == 0
	}) {
		t.Errorf("%s; %s", left, s)
	}
	return b.Collect()
}

// What a broker may have grown by when everybody has gone, in bytes: pools and tables that are kept for the next time.
const (
	heapGrowth     = 2 * mib
	residentGrowth = 16 * mib
	// registryEach and registryMost are for the actor runtime's registry of names: 32,768 small tables, each of which takes its memory
	// when the first name falls into it and keeps it.
	registryEach = 300
	registryMost = registryEach << 15
	// newSeries is how many series may have begun: those that tell of what a busy machine does, like a time that was up. It is far less than one for
	// each that came, or for each of one kind.
	newSeries = 10
)

// asBefore requires that a broker that nobody uses is back where it was, after so many actors have come and gone.
func asBefore(t testing.TB, b *testkit.Broker, before testkit.State, actors int) {
	t.Helper()
	registry := min(int64(actors)*registryEach, registryMost)
	var s testkit.State
	if !testkit.Eventually(t, "goroutines, descriptors and memory are back", func() bool {
		s = empty(t, b)
		return s.Goroutines <= before.Goroutines+2 && s.Descriptors == before.Descriptors &&
			s.Heap-before.Heap <= heapGrowth+registry && s.Resident-before.Resident <= (residentGrowth+registry)*slack()
	}) {
		t.Errorf("before: %s", before)
	}
	t.Logf("before: %s", before)
	t.Logf("after:  %s", s)
	for name := range s.Metrics {
		if _, known := before.Metrics[name]; !known {
			t.Logf("new: %s", name)
		}
	}
	if s.Series > before.Series+newSeries {
		t.Errorf("there are %d series of metrics, %d before", s.Series, before.Series)
	}
}

// slack widens bounds on resident memory where the broker is instrumented.
func slack() int64 {
	if testkit.Raced {
		return 8
	}
	return 1
}
