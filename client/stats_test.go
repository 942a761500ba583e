package client

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

func TestCountersTellWhatWentInAndOut(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b)
	ctx := within(t)
	s := subscribe(t, c, SubscribeOptions{})
	for range 3 {
		if _, err := c.PublishBatch(ctx, "ns", "s", [][]byte{{1}, {2}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Publish(ctx, "ns", "s", nil, WithAck(AckNone)); err != nil {
		t.Fatal(err)
	}
	if err := c.CachePut(ctx, "ns", "c", "k", nil, 0); err != nil {
		t.Fatal(err)
	}
	for range 7 {
		if _, err := s.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	got := c.Stats()
	if got.PublishBatches != 4 || got.PublishRecords != 7 || got.Events != 7 || got.FramesOut != 5 || got.FramesIn < 4+1 ||
		got.BytesOut == 0 || got.Connects != 1 || got.Forwarded+got.Cancelled+got.Dropped+got.Retries+got.Resumes+got.Disconnects != 0 {
		t.Fatalf("%+v", got)
	}
	k := c.Connections()
	if len(k) != 1 || k[0].Addr != b.Addr() || k[0].Kind != "shared" || k[0].Busy != 1 || k[0].BytesSent == 0 || k[0].BytesReceived == 0 ||
		k[0].PacketsSent == 0 || k[0].Since.IsZero() || k[0].CongestionWindow == 0 {
		t.Fatalf("%+v", k)
	}
}

func TestPublishGivenUpAfterItLeftIsCountedOnce(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{OnFrame: func(*testbroker.Stream, testbroker.Frame) bool { return true }})
	c, err := Connect(within(t), optionsFor(b))
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.PublishAsync(within(t), "ns", "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for range 3 {
		_, err := p.Wait(canceled)
		wantIs(t, err, ErrOutcomeUnknown)
	}
	if n := c.Stats().Cancelled; n != 1 {
		t.Fatalf("counted %d times", n)
	}
	if c.Close(canceled) == nil {
		t.Fatal("Close says that everything was answered")
	}
}

func TestHooksAreToldOfConnectionsAndRetries(t *testing.T) {
	noLeaks(t)
	var mu sync.Mutex
	var heard []string
	hear := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, fmt.Sprintf(format, args...))
	}
	gone := make(chan error, 10)
	refused := false
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.StreamShards); ok && !refused {
			refused = true
			s.Refuse(wire.Refuse(wire.CodeOverloaded, "later").WithReason(wire.ReasonTenantQuota, 1))
			return true
		}
		return false
	}})
	c := connect(t, b, func(o *Options) {
		o.Hooks = Hooks{
			Connected:    func(i ConnectionInfo) { hear("up %s %s", i.Addr, i.Kind) },
			Disconnected: func(i ConnectionInfo, err error) { hear("down %s", i.Addr); gone <- err },
			Retrying: func(r Retry) {
				hear("retry %s after try %d in %v", r.Op, r.Try, r.Pause)
				wantIs(t, r.Err, ErrOverloaded)
			},
		}
	})
	if _, err := c.StreamShards(within(t), "ns", "s"); err != nil {
		t.Fatal(err)
	}
	b.Drop(transport.CloseOverload)
	if code, remote, ok := transport.CloseCode(await(t, "end of the connection", gone)); !ok || !remote || code != transport.CloseOverload {
		t.Fatalf("code %d, %v, %v", code, remote, ok)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"up " + b.Addr() + " shared", "retry ask shards of stream ns/s after try 1 in " + time.Millisecond.String(), "down " + b.Addr()}
	if fmt.Sprint(heard) != fmt.Sprint(want) {
		t.Fatalf("heard %q, want %q", heard, want)
	}
	if s := c.Stats(); s.Retries != 1 || s.Disconnects != 1 {
		t.Fatalf("%+v", s)
	}
}
