package sessionactor

import (
	"time"

	"github.com/felixd/felixd/wire"
)

// Delivery is how events go to the subscribers of a node.
type Delivery struct {
	// Capacity is how many batches may be queued for a subscriber that asks for no number, CapacityMax the most that one is
	// given; both at least 1.
	Capacity, CapacityMax int
	// MaxEvents and MaxBytes bound one event frame, in records and in bytes of its region; a larger record travels alone.
	MaxEvents, MaxBytes int
	// MaxDelay is how long a busy subscriber's events may wait for others to leave with them; 0 is not at all. One that finds nobody
	// before it leaves at once.
	MaxDelay time.Duration
	// PerIdentity bounds the subscriptions of one principal on one connection, PerConnection those of a connection; watches of caches count.
	// PerNode bounds those of all connections.
	PerIdentity, PerConnection, PerNode int
}

// DefaultDelivery are the bounds of wire/limits.go.
func DefaultDelivery() Delivery {
	return Delivery{
		Capacity: wire.SubscriberQueueCapacity, CapacityMax: wire.SubscriberQueueCapacityMax,
		MaxEvents: wire.EventBatchMaxEvents, MaxBytes: wire.EventBatchMaxBytes, MaxDelay: wire.EventBatchMaxDelayMicros * time.Microsecond,
		PerIdentity: wire.MaxSubscriptionsPerConn, PerConnection: wire.MaxSubscriptionsPerConnTotal, PerNode: wire.NodeSubscriptions,
	}
}

// capacity is what a subscriber gets that asked for so many batches, or for no number.
func (d *Delivery) capacity(asked wire.Opt[uint32]) int {
	if !asked.Set {
		return min(d.Capacity, d.CapacityMax)
	}
	return int(min(max(asked.V, 1), uint32(d.CapacityMax)))
}

const (
	// pageBytes bounds what one step takes from the log, in bytes as batches are counted: what fills a write. While it is being
	// written it counts in the subscriber's window, so a page is never more than half of that either.
	pageBytes = writeBytes
	// pageBatches bounds the same in batches; the smallest ones fill a write with about so many.
	pageBatches = 256
	// writeBytes is how much is joined into one write; a larger frame is written by itself.
	writeBytes = 64 << 10
)

// WritingBytes is the most that a subscription in the middle of a write holds for it, in bytes: the buffer, and the page in its hand,
// which is one batch when that is larger. largest is the largest batch there is.
func WritingBytes(largest int64) int64 { return writeBytes + max(pageBytes, largest) }

// pageOf is how many batches one step takes at most, of a window of that capacity.
func pageOf(capacity int) int { return max(1, min(pageBatches, capacity/2)) }

// enough is how many queued batches leave without waiting for more.
func (d *Delivery) enough(capacity int) int { return min(d.MaxEvents, pageOf(capacity)) }
