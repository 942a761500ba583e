package node

import (
	"github.com/felixd/felixd/sessionactor"
	"github.com/felixd/felixd/storage"
)

// DeliveryBytes is the most that a node holds of its streams and for their subscribers, in bytes as batches are counted: the rings of all
// shards, what readers that are behind are kept beside them, and what subscriptions have in hand. shards is how many stream shards it has,
// writing how many subscriptions stand in the middle of a write, and largest the largest publish that is made, in bytes.
//
//   - rings: TailBytes, and one batch of each shard, which always keeps its newest;
//   - windows: ReaderBytes, whatever the number of readers and the size of their windows, since nothing is kept beyond it but what
//     is in hand. Under block what publishers wait for comes on top, which is admitted: PublishBytes;
//   - in hand: a buffer, and a page of batches or one larger batch, for each subscription that is writing.
func (l Limits) DeliveryBytes(shards, writing int, largest int64) int64 {
	sum := l.TailBytes + l.ReaderBytes + int64(shards)*largest + int64(writing)*sessionactor.WritingBytes(largest)
	if l.Overflow == storage.Block {
		sum += int64(l.PublishBytes)
	}
	return sum
}
