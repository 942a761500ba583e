package client

import (
	"context"
	"sync"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Consumer works on the records of a group until it is stopped. See Client.Consume. It is safe for concurrent use.
//
// Per shard there is one poll under way, and one stream on which settlements travel in order, many to a write. What it holds is
// bounded by ConsumeOptions.MaxInHand and MaxInHandBytes: a record counts from the poll that asked for it until its settlement was
// answered.
type Consumer struct {
	client  *Client
	op      string
	handler Handler
	opts    ConsumeOptions
	shards  []*consumedShard

	handling    context.Context // of the handlers
	endHandling context.CancelCauseFunc
	polling     context.Context // ends when Stop begins
	endPolling  context.CancelFunc
	settling    context.Context // ends when Stop gives up, or is done
	endSettling context.CancelFunc
	work        sync.WaitGroup // what polls, settles and extends
	spawn       func(f func()) bool
	latePoll    time.Duration // stopPatience
	kick        chan struct{} // a claim is to be prolonged earlier than the next that was known
	stopped     sync.Once
	late        chan struct{} // the time of Stop is up, and somebody is still in OnError
	done        chan struct{}
	result      error // of Stop; to be read when done is closed

	mu        sync.Mutex
	own       int // records that each shard may always have in hand
	shared    int // records that are there for whichever shard has work
	borrowed  int // of those
	bytes     int64
	all       []*delivery     // in hand
	ready     fifo[*delivery] // of those, waiting for a worker
	workers   int             // goroutines that run handlers, or are about to
	running   int             // handlers
	next      time.Time       // when the next claim is to be prolonged; zero: none
	telling   int             // calls of OnError by those who poll and settle
	reporting int             // handlers whose error is settled, and OnError is told or about to be
	heldUp    bool            // Stop was called during one
	freed     bell            // something was settled, or told, or stopping
	stopping  bool
	failed    error
	stats     ConsumerStats
}

type offset = id.Offset

// consumedShard is one shard of a consumer. The fields below are under its lock.
type consumedShard struct {
	consumer *Consumer
	target   wire.GroupTarget
	polls    *groupStream // of the goroutine that polls
	reclaim  bool         // likewise: records may be claimed for us that we never got
	settles  *groupStream // of the goroutine that settles
	wake     chan struct{}

	used  int // records in hand or asked for
	hot   bool
	held  map[offset]*delivery
	queue fifo[*settlement]
	// finished are those of the records in hand that were finished since the poll under way began: its answer may have them all the
	// same, when it and the answer to the settlement crossed.
	finished map[offset]struct{}
}

// ConsumerStats are the numbers of a consumer since it began, and how much it has in hand.
type ConsumerStats struct {
	Polls       uint64 // that were answered
	Received    uint64 // records in the answers
	Redelivered uint64 // of those, delivered before: Attempts above 1

	// Settlements that the broker answered; a record that is refused is in none of them. GivenBack are those not worked on, or not
	// to the end, when the consumer stopped.
	Acked, Nacked, DeadLettered, GivenBack uint64

	Failed   uint64 // handlers that returned an error or panicked
	Panics   uint64 // of those, panics
	Stale    uint64 // settlements and extensions refused because the claim was gone, or not sent because another record is at the offset
	Refused  uint64 // settlements and extensions refused for good, for another reason
	Lapsed   uint64 // records dropped before a handler began, because their claim was gone
	Extended uint64 // claims prolonged
	Resent   uint64 // settlements and extensions sent again because there was no answer, or one that asked for it

	InHand      int   // records claimed or asked for
	Running     int   // handlers
	InHandBytes int64 // of payloads
}

// Member is the name under which the consumer claims records.
func (k *Consumer) Member() string { return k.opts.Member }

// Done is closed when the consumer has ended: after Stop, or by itself, see Err.
func (k *Consumer) Done() <-chan struct{} { return k.done }

// Err is why the consumer ends, or has ended, by itself; nil if it does not.
func (k *Consumer) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed
}

// Stats returns the numbers. It is cheap enough to be called at each scrape.
func (k *Consumer) Stats() ConsumerStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	stats := k.stats
	for _, s := range k.shards {
		stats.InHand += s.used
	}
	stats.Running, stats.InHandBytes = k.running, k.bytes
	return stats
}

// fail makes the consumer end by itself.
func (k *Consumer) fail(err error) {
	k.mu.Lock()
	first := k.failed == nil && !k.stopping
	if first {
		k.failed = err
	}
	k.mu.Unlock()
	if !first {
		return
	}
	defer k.beginStop(context.Background()) // also when OnError ends the goroutine
	k.tell(nil, err)
}

// tell is report for those who poll and settle: a stop has to know that they are held up.
func (k *Consumer) tell(m *Message, err error) {
	k.mu.Lock()
	k.telling++
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.telling--
		k.freed.ring()
	}()
	k.report(m, err)
}

// report tells of an error.
func (k *Consumer) report(m *Message, err error) {
	if k.opts.OnError != nil {
		defer k.client.calls.end(k.client.calls.begin())
		k.opts.OnError(m, err)
	}
}

// bell wakes all who wait, under the lock of whoever has it. The zero value is one nobody waits for.
type bell struct{ ch chan struct{} }

func (b *bell) wait() <-chan struct{} {
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
