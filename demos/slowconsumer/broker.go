package main

import (
	"runtime/metrics"
	"time"

	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
)

// The broker's own numbers: records it did not give to some subscriber, and the two parts of what it holds of a stream.
const (
	droppedMetric = "felix_subscribe_dropped_total"
	tailMetric    = "felix_tail_bytes"
	readerMetric  = "felix_sub_reader_bytes"
)

// ringBatches is the history that the stream keeps for subscribers who begin at its oldest record. Here nobody does, so it is
// short: what slow subscribers need must come out of their windows.
const ringBatches = 64

// limits are the broker's settings for the experiment: the policy, memory for a short history and a full window of each subscriber, and
// the defaults.
func (o options) limits(p policy) node.Limits {
	l := node.DefaultLimits()
	l.RingBatches, l.RingBytes = ringBatches, ringBatches*o.batchBytes()
	l.TailBytes = l.RingBytes
	l.ReaderBytes = 0
	for i := range o.subscribers {
		l.ReaderBytes += min(int64(o.capacity(i))*o.batchBytes(), max(l.WindowBytes, o.batchBytes()))
	}
	l.Overflow = storage.DropNew
	if p == block { // what one publisher can have under way on one stream waits in the same memory
		l.Overflow = storage.Block
		l.ReaderBytes += wire.PublishWindow * o.batchBytes()
	}
	return l
}

func brokerFor(o options, p policy) func(*node.Options) {
	return func(n *node.Options) { n.Limits = o.limits(p) }
}

// memoryBound is the most that the broker may hold of the stream, in bytes, by its own formula. What waits under block is in the
// readers' memory already.
func (o options) memoryBound(p policy) int64 {
	l := o.limits(p)
	l.PublishBytes = 0
	return l.DeliveryBytes(1, o.subscribers, o.batchBytes())
}

// batchBytes is what one batch counts in the broker's memory.
func (o options) batchBytes() int64 {
	return int64(o.batch*(wire.PayloadOverhead+o.payload) + batch.Overhead)
}

// sample looks at everything.
func (l *lab) sample() (sample, error) {
	s := sample{at: time.Now(), published: l.publisher.acked.Load(), heap: liveHeap()}
	s.waited = l.publisher.held(s.at)
	for _, x := range l.readers {
		s.readers = append(s.readers, x.tally())
	}
	for _, name := range []string{tailMetric, readerMetric} {
		held, err := l.broker.Metric(name)
		if err != nil {
			return sample{}, err
		}
		s.held += int64(held)
	}
	return s, nil
}

// liveHeap is what the last collection found alive in the whole process, in bytes.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
