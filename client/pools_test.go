package client

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// kindsOf counts the open connections by what they carry.
func kindsOf(c *Client) map[string]int {
	n := make(map[string]int)
	for _, k := range c.Connections() {
		n[k.Kind]++
	}
	return n
}

// mission 188, 189
func TestPoolsHaveTheirSizesAndAreUsedInTurn(t *testing.T) {
	noLeaks(t)
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 8}, Caches: map[string]uint32{"ns/c": 1}})
	c := connect(t, b, func(o *Options) {
		o.EventConns, o.CacheConns, o.PublishConns, o.PublishStreams, o.CacheStreams = 2, 3, 4, 8, 3
	})
	ctx := within(t)
	for i := range 4 { // an even number of subscriptions on two connections
		subscribe(t, c, SubscribeOptions{Shard: uint32(i)})
	}
	for i := range 64 { // over all eight shards, so over all eight streams
		if _, err := c.Publish(ctx, "ns", "s", nil, WithKey(fmt.Append(nil, i))); err != nil {
			t.Fatal(err)
		}
	}
	var callers sync.WaitGroup
	for i := range 30 {
		callers.Go(func() {
			if err := c.CachePut(ctx, "ns", "c", fmt.Sprint(i), nil, 0); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	got := kindsOf(c)
	if got["event"] != 2 || got["publish"] != 4 || got["cache"] < 1 || got["cache"] > 3 || got["shared"] != 0 {
		t.Fatalf("connections %v", got)
	}
	lanes := make(map[*link]int)
	for i := range c.entry.publishes.places {
		l, ok := c.entry.publishes.places[i].current()
		if !ok {
			t.Fatalf("stream %d was never used", i)
		}
		lanes[l.control.link]++
	}
	for _, n := range lanes {
		if n != 2 {
			t.Fatalf("publish streams by connection: %v", lanes)
		}
	}
	if subs := c.life.open(); len(subs) == 0 {
		t.Fatal("no connection is known")
	}
}

// mission 190
func TestParallelCacheRequestsShareFourStreams(t *testing.T) {
	var streams sync.Map
	b := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"ns/c": 1}, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		if _, ok := f.Message().(*wire.CacheGet); ok {
			streams.Store(s, true)
		}
		return false
	}})
	c := connect(t, b, func(o *Options) { o.CacheStreams = 4 })
	ctx := within(t)
	for i := range 32 {
		if err := c.CachePut(ctx, "ns", "c", fmt.Sprint(i), fmt.Append(nil, i), 0); err != nil {
			t.Fatal(err)
		}
	}
	var callers sync.WaitGroup
	for i := range 32 {
		callers.Go(func() {
			if v, found, err := c.CacheGet(ctx, "ns", "c", fmt.Sprint(i)); err != nil || !found || string(v) != fmt.Sprint(i) {
				t.Errorf("%d: %q, %v, %v", i, v, found, err)
			}
		})
	}
	callers.Wait()
	n := 0
	streams.Range(func(any, any) bool { n++; return true })
	if n > 4 {
		t.Fatalf("%d streams", n)
	}
}

func TestRoundRobinSpreadsPublishesOverAllStreams(t *testing.T) {
	b := testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}})
	c := connect(t, b, func(o *Options) { o.PublishSharding, o.PublishStreams = RoundRobin, 4 })
	var under []*PendingPublish
	for range 40 {
		p, err := c.PublishBatchAsync(within(t), "ns", "s", [][]byte{{1}, {2}})
		if err != nil {
			t.Fatal(err)
		}
		under = append(under, p)
	}
	for _, p := range under {
		if _, err := p.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c.entry.publishes.places {
		if l, ok := c.entry.publishes.places[i].current(); !ok || l.lastID != 10 {
			t.Fatalf("stream %d took other than a quarter", i)
		}
	}
}

func TestPresetsHaveThePublishedSizes(t *testing.T) {
	type sizes struct{ event, cache, publish, publishStreams, cacheStreams int }
	for name, row := range map[string]struct {
		o    Options
		want sizes
	}{
		"shared":          {Options{}.Shared(), sizes{0, 0, 0, 8, 8}},
		"pooled":          {Options{}.Pooled(), sizes{8, 8, 4, 8, 32}},
		"low latency":     {Options{}.LowLatency(), sizes{4, 4, 2, 2, 8}},
		"high throughput": {Options{}.HighThroughput(), sizes{16, 16, 8, 32, 128}},
	} {
		got := sizes{row.o.EventConns, row.o.CacheConns, row.o.PublishConns, row.o.PublishStreams, row.o.CacheStreams}
		if got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// mission 194, 195, 196, 198: the defaults, and windows multiply with pool sizes.
func TestReceiveWindowsAddUpAsDocumented(t *testing.T) {
	const mib = 1 << 20
	for name, row := range map[string]struct {
		o    Options
		want uint64
	}{
		"shared":             {Options{}, 256 * mib},
		"eight event pools":  {Options{EventConns: 8, PublishConns: 1, CacheConns: 1}, (8*256 + 256 + 8) * mib},
		"pooled":             {Options{}.Pooled(), (8*256 + 8*256 + 4*8) * mib},
		"high throughput":    {Options{}.HighThroughput(), 2 * (8*256 + 8*256 + 4*8) * mib},
		"windows of its own": {Options{EventConns: 8, EventConnRecvWindow: 1 * mib, CacheConnRecvWindow: 2 * mib}, (8*1 + 2) * mib},
	} {
		if got := row.o.ReceiveWindowBytes(); got != row.want {
			t.Errorf("%s: %d MiB, want %d", name, got/mib, row.want/mib)
		}
	}
	o, err := Options{Addrs: []string{"a:1"}, TenantID: "t", Token: "x"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if o.EventConnRecvWindow != 256*mib || o.EventStreamRecvWindow != 64*mib || o.EventSendWindow != 256*mib ||
		o.CacheConnRecvWindow != 256*mib || o.CacheStreamRecvWindow != 64*mib || o.CacheSendWindow != 256*mib {
		t.Fatalf("%+v", o)
	}
}

// mission 193, 194, 195: what nobody reads stops the sender at the window, of the stream and of the connection.
func TestUnreadEventsStopTheSenderAtTheWindow(t *testing.T) {
	const kib = 1 << 10
	for name, row := range map[string]struct{ streams, stream, conn, want int }{
		"stream":     {1, 64 * kib, 1024 * kib, 64 * kib},
		"connection": {4, 64 * kib, 128 * kib, 128 * kib},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			moved, begin := make(chan struct{}, 1), make(chan struct{})
			b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
				e := s.OpenEvents()
				s.Send(&wire.Subscribed{SubscriptionID: e.ID})
				select {
				case <-begin: // all are open: the answer to a later one would find no room
				case <-s.Conn.Context().Done():
					return
				}
				piece := make([]byte, kib)
				wire.PutHeader(piece, wire.Header{Flags: wire.FlagEventBatchShared, Length: kib - wire.HeaderSize})
				for e.Raw(piece) {
					sent.Add(kib)
					wake(moved)
				}
			})
			c := connect(t, b, func(o *Options) {
				o.EventConns, o.EventStreamRecvWindow, o.EventConnRecvWindow = 1, uint64(row.stream), uint64(row.conn)
			})
			for range row.streams {
				subscribe(t, c, SubscribeOptions{})
			}
			close(begin)
			for quiet := false; !quiet; { // until nothing has moved for a while
				select {
				case <-moved:
				case <-time.After(100 * time.Millisecond): // too soon on a slow machine, which then has sent less
					quiet = int(sent.Load()) >= row.want/2 || t.Context().Err() != nil
				}
			}
			// A write is counted when QUIC took it: what is allowed to go, and up to a packet's worth on each stream ahead.
			n := int(sent.Load())
			if ahead := row.streams * 4 * kib; n < row.want/2 || n > row.want+ahead {
				t.Fatalf("%d KiB went to nobody, the window is %d", n/kib, row.want/kib)
			}
		})
	}
}

// mission 196: requests without an answer stop at the send window.
func TestUnansweredRequestsStopAtTheSendWindow(t *testing.T) {
	const window = 40_000
	var puts, most atomic.Int64
	hold := make(chan func(), 100)
	b := testbroker.New(t, testbroker.Options{OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		m, ok := f.Message().(*wire.CachePut)
		if !ok {
			return false
		}
		if n := puts.Add(int64(len(f.Payload))); n > most.Load() {
			most.Store(n)
		}
		hold <- func() {
			puts.Add(-int64(len(f.Payload)))
			s.Send(&wire.CacheOK{RequestID: m.RequestID.V})
		}
		return true
	}})
	c := connect(t, b, func(o *Options) { o.CacheConns, o.CacheSendWindow = 1, window })
	ctx := within(t)
	var callers sync.WaitGroup
	for i := range 30 { // 12 KB each on the wire
		callers.Go(func() {
			if err := c.CachePut(ctx, "ns", "c", fmt.Sprint(i), []byte(strings.Repeat("v", 9000)), 0); err != nil {
				t.Error(err)
			}
		})
	}
	for range 30 {
		await(t, "put", hold)()
	}
	callers.Wait()
	if n := most.Load(); n > window || n < window/4 {
		t.Fatalf("%d bytes were unanswered at once, the window is %d", n, window)
	}
}

// A connection's window grows only as something is read: it is whole from the start, so that subscriptions that nobody reads leave the rest to others,
// however large or small it was made.
func TestAConnectionOfEventsHasItsWholeWindowFromTheStart(t *testing.T) {
	for _, most := range []uint64{0, 1 << 20, 1 << 30} {
		o := Options{EventConnRecvWindow: most}.withWindows()
		w, err := o.windows(sharedLink)
		if err != nil || w.ConnInitial != w.ConnMax || w.ConnMax != max(o.EventConnRecvWindow, o.CacheConnRecvWindow) {
			t.Errorf("%d: %+v, %v", most, w, err)
		}
	}
}
