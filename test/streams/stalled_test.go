package streams

import (
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

const (
	goodReaders = 20
	goodClients = 4
)

// goodOnes subscribes the good readers, some on each of their connections.
func (f *flow) goodOnes(b *testkit.Broker) {
	f.t.Helper()
	for range goodClients {
		c := b.Client(f.t)
		for range goodReaders / goodClients {
			f.reads(subscribe(f.t, c, f.stream, client.SubscribeOptions{}))
		}
	}
}

// Twenty good readers beside one that stands still get records as fast as without it.
//
// mission 217, mission 342, mission 348
//
// matrix K1
func TestAStalledSubscriberCostsTwentyGoodOnesNothing(t *testing.T) {
	ctx := patient(t)
	b := start(t, testkit.Setup{})
	f := newFlow(t, b.Client(t), orders, 16, 256, 24)
	f.goodOnes(b)
	lazy := b.Client(t, narrow)
	f.rate(ctx, length()) // windows and buffers grow to their sizes
	var rates contest
	rates.hold(t, "good readers beside a stalled one", 0.85, func() float64 { return f.rate(ctx, length()) }, func() float64 {
		n := f.neglect(lazy, client.SubscribeOptions{QueueCapacity: 8})
		defer n.sub.Close()
		for before, began := b.Metric(dropped), time.Now(); b.Metric(dropped) == before; { // until what it may queue is full
			if f.send(ctx, 8*f.batch); time.Since(began) > patience {
				t.Fatal("the stalled reader loses nothing")
			}
		}
		return f.rate(ctx, length())
	})
}

// A stalled reader is given its window and no more, however much is published and however many batches it may have: the bytes that are
// kept for it stay below the window, and the memory of the process below that, the stream's ring, and what the runtime needs beside them.
func TestAStalledSubscriberHoldsNoMoreThanItsWindow(t *testing.T) {
	aside(t)
	const batch, size = 16, 1 << 10
	ctx := patient(t)
	limits := node.DefaultLimits()
	if !effort.Full() {
		limits.RingBytes, limits.WindowBytes = 2*mib, 2*mib
	}
	b := start(t, testkit.Setup{Limits: &limits})
	f := newFlow(t, b.Client(t), orders, batch, size, 0)
	ring := int(limits.RingBytes / size)
	f.send(ctx, 2*ring) // it is full, and buffers have grown to their sizes
	before := b.Collect()
	f.neglect(b.Client(t, narrow), client.SubscribeOptions{QueueCapacity: wire.SubscriberQueueCapacityMax})
	var kept, resident int64
	for range 8 {
		f.send(ctx, ring/2)
		s := b.Look()
		kept = max(kept, int64(s.Metrics["felix_sub_reader_bytes"]))
		resident = max(resident, b.Collect().Resident)
	}
	t.Logf("%d MiB published beside a stalled reader: %.1f MiB kept for it, %.1f MiB more resident",
		4*limits.RingBytes/mib, float64(kept)/mib, float64(resident-before.Resident)/mib)
	if kept == 0 || kept > limits.WindowBytes {
		t.Errorf("%d bytes are kept for the stalled reader, want some and at most %d", kept, limits.WindowBytes)
	}
	if grown := resident - before.Resident; grown > (limits.WindowBytes+noise)*slack() {
		t.Errorf("the broker holds %.1f MiB more, of which %d MiB are the window", float64(grown)/mib, limits.WindowBytes/mib)
	}
}

// noise is by how much resident memory may differ for no reason, in bytes.
const noise = 8 * mib
