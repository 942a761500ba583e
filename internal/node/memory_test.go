package node

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// memoryInUse is what live objects take, in bytes.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one finished with
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// asking subscribes to shard 0 of orders with a queue of its own size.
func asking(capacity uint32) []byte {
	m := subscribe
	m.QueueCapacity = wire.Some(capacity)
	return wire.AppendJSONFrame(nil, &m)
}

// Readers that stand still, in different places of a stream, beside good ones: what the node holds for them stays inside the bound that
// can be computed from its limits. Neither the books nor the heap exceed it, and the good ones miss nothing.
func TestReadersThatStandStillBesideGoodOnesStayInsideTheMemoryBound(t *testing.T) {
	const size, each, stalled, good = 32 << 10, 48, 4, 2
	limits := DefaultLimits()
	limits.TailBytes, limits.RingBytes, limits.ReaderBytes, limits.WindowBytes = 512<<10, 512<<10, 1<<20, 512<<10
	b := start(t, func(o *Options) { o.Limits = limits })
	publisher, _ := b.dial().open(today())
	before := memoryInUse()
	publishes, got := uint64(0), make(chan struct{}, good*each*(stalled+1))
	publish := func(n int) { // as fast as the good readers read
		for range n {
			publisher.raw(batchTo("orders", publishes, fmt.Sprintf("%08d", publishes)+strings.Repeat("x", size)))
			if f := publisher.next(); f.flags != wire.FlagPublishAck|wire.FlagPublishAckOffset && f.flags != wire.FlagPublishAck {
				t.Fatalf("publish %d was answered %s", publishes, f)
			}
			publishes++
			for range good {
				select {
				case <-got:
				case <-time.After(patience):
					t.Fatalf("publish %d did not reach every good reader", publishes)
				}
			}
		}
	}
	var read sync.WaitGroup
	for range good {
		p := b.dial()
		l, _ := p.open(today())
		l.raw(asking(512))
		l.next()
		events, _ := p.events()
		read.Go(func() {
			for n := range uint64(each * (stalled + 1)) {
				f, err := events.read()
				if err != nil {
					t.Errorf("event %d: %v", n, err)
					return
				}
				e, err := wire.DecodeEventBatch(f.flags, f.payload)
				payload, _, _ := e.Next()
				if err != nil || !strings.HasPrefix(string(payload), fmt.Sprintf("%08d", n)) {
					t.Errorf("event %d: %.8q, %v", n, payload, err)
					return
				}
				got <- struct{}{}
			}
		})
	}
	highest := int64(0)
	look := func() {
		held := int64(b.metric("felix_tail_bytes") + b.metric("felix_sub_reader_bytes"))
		highest = max(highest, held)
	}
	for range stalled { // each begins where the one before it stands still already
		p := b.dial()
		l, _ := p.open(today())
		l.raw(asking(4096))
		l.next()
		p.events() // and nobody reads on
		publish(each)
		look()
	}
	publish(each)
	look()
	read.Wait()
	bound := limits.DeliveryBytes(1+4, stalled+good, size+2*wire.HeaderSize+512)
	if highest > bound || highest < limits.TailBytes {
		t.Errorf("%d bytes were held, and %d is the bound", highest, bound)
	}
	if n := b.metric("felix_subscribe_dropped_total"); n == 0 {
		t.Error("nobody lost anything: nothing was proved")
	}
	// The clients in this process have unread bytes of their own, as much as their windows take.
	const clients = stalled * (512<<10 + 1<<20)
	grown := memoryInUse() - before
	t.Logf("%d bytes held at most of %d, the heap grew by %d", highest, bound, grown)
	if grown > bound+clients {
		t.Errorf("the heap grew by %d bytes, and the bound is %d, and %d for the clients", grown, bound, clients)
	}
}

func TestTheMemoryBoundIsTheSumOfItsParts(t *testing.T) {
	l := Limits{TailBytes: 100, ReaderBytes: 10, PublishBytes: 7}
	if got := l.DeliveryBytes(3, 2, 1000); got != 110+3*1000+2*(64<<10+64<<10) {
		t.Errorf("%d", got)
	}
	l.Overflow = storage.Block
	if got := l.DeliveryBytes(0, 1, 1<<20); got != 117+64<<10+1<<20 {
		t.Errorf("%d", got)
	}
}

func TestANodeRefusesAPolicyThatItsStreamsCannotFollow(t *testing.T) {
	o := Options{Limits: DefaultLimits()}
	o.Limits.Overflow = storage.CatchUp
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "catch_up") {
		t.Errorf("%v", err)
	}
}

// Over QUIC, publishes reach every one of many idle subscriptions. A landing takes fewer of them.
func TestPublishesReachEverySubscriptionOfANode(t *testing.T) {
	connections, each := 2, 150
	if effort.Full() {
		connections, each = 4, 2500
	}
	b := start(t, func(o *Options) { o.Limits.Delivery.PerIdentity = 4096 })
	var events []*line
	for range connections {
		p := b.dial()
		l, _ := p.open(today())
		for range each {
			l.raw(wire.AppendJSONFrame(nil, &subscribe))
			l.next()
			e, _ := p.events()
			events = append(events, e)
		}
	}
	for _, e := range events {
		_ = e.r.(*quic.ReceiveStream).SetReadDeadline(time.Now().Add(patience))
	}
	l, _ := b.dial().open(today())
	for n := range uint64(3) {
		l.raw(batchTo("orders", n, fmt.Sprint("to all ", n)))
		l.next()
	}
	var all sync.WaitGroup
	for part := range slices.Chunk(events, (len(events)+7)/8) {
		all.Go(func() {
			for _, e := range part {
				for n := range 3 {
					f, err := e.read()
					if err != nil || !strings.Contains(string(f.payload), fmt.Sprint("to all ", n)) {
						t.Errorf("event %d: %s, %v", n, f, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if n := b.metric("felix_subscribers"); int(n) != len(events) {
		t.Errorf("%v subscriptions are open, want %d", n, len(events))
	}
}
