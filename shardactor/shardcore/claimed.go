package shardcore

import (
	"fmt"

	"github.com/felixd/felixd/storage/batch"
)

// claimedRuns are the numbered batches that were claimed and are not durable yet: the ones that Producers does not know, because they
// may still be given back. A run is one producer's, of consecutive sequences. The bytes of the shard that are on their way to the log
// bound how many there are.
type claimedRuns struct {
	byID map[uint64]*claimedRun
	free []*claimedRun // without batches, to be used again
}

// claimedRun holds batches[head:], the first of which has the sequence first.
type claimedRun struct {
	first   uint64
	batches []*batch.Batch
	head    int
}

// runsKept is how many runs are kept to be used again: more producers than that with batches on their way at once are rare.
const runsKept = 64

func newClaimedRuns() *claimedRuns { return &claimedRuns{byID: make(map[uint64]*claimedRun)} }

func (r *claimedRun) len() int { return len(r.batches) - r.head }

// next is the sequence after the newest batch of the run.
func (r *claimedRun) next() uint64 { return r.first + uint64(r.len()) }

// find returns the batch of that sequence, nil if it is not in the run.
func (r *claimedRun) find(sequence uint64) *batch.Batch {
	if i := sequence - r.first; sequence >= r.first && i < uint64(r.len()) {
		return r.batches[r.head+int(i)]
	}
	return nil
}

// push appends a batch that was claimed; its sequence is the next of the run, if there is one.
func (c *claimedRuns) push(b *batch.Batch) {
	r := c.byID[b.ProducerID]
	if r == nil {
		if n := len(c.free); n > 0 {
			r, c.free = c.free[n-1], c.free[:n-1]
		} else {
			r = &claimedRun{}
		}
		r.first = b.Sequence
		c.byID[b.ProducerID] = r
	}
	if b.Sequence != r.next() {
		panic(fmt.Sprintf("shardcore: sequence %d of a producer is claimed after %d", b.Sequence, r.next()))
	}
	if r.head > 0 && len(r.batches) == cap(r.batches) { // there is room in front
		n := copy(r.batches, r.batches[r.head:])
		clear(r.batches[n:])
		r.batches, r.head = r.batches[:n], 0
	}
	r.batches = append(r.batches, b)
}

// pop takes the oldest batch of its producer out: it is durable.
func (c *claimedRuns) pop(b *batch.Batch) {
	r := c.byID[b.ProducerID]
	if r == nil || r.batches[r.head] != b {
		panic(fmt.Sprintf("shardcore: batch %d of a producer is durable before one that was claimed earlier", b.Sequence))
	}
	r.batches[r.head] = nil
	r.head, r.first = r.head+1, r.first+1
	c.drop(b.ProducerID, r)
}

// giveBack takes the newest batch of its producer out: its claim is void.
func (c *claimedRuns) giveBack(b *batch.Batch) {
	r := c.byID[b.ProducerID]
	last := len(r.batches) - 1
	if r.batches[last] != b {
		panic(fmt.Sprintf("shardcore: batch %d of a producer is given back before a later one", b.Sequence))
	}
	r.batches[last] = nil
	r.batches = r.batches[:last]
	c.drop(b.ProducerID, r)
}

// drop lets go of a run that has no batches.
func (c *claimedRuns) drop(producer uint64, r *claimedRun) {
	if r.len() > 0 {
		return
	}
	delete(c.byID, producer)
	if r.batches, r.head = r.batches[:0], 0; len(c.free) < runsKept && cap(r.batches) <= 2*producerBatches {
		c.free = append(c.free, r)
	}
}
