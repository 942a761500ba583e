package shardactor

import (
	"errors"
	"fmt"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// caching is what the shard of a cache knows beyond a stream's: what its writes are judged by, in the shard's turns. Everything but main and
// memory is nil in memory, and everything is nil until the logs are open; no write is judged before.
type caching struct {
	memory   *reading.MemoryCache
	keyed    *reading.KeyedCache
	main     *reading.Ledger // over one of the two
	counters *reading.Counters
	sums     *reading.CounterLedger // over counters

	void [shardcore.LogCounters + 1]id.Offset // by log: the lowest offset from which on claims became void since somebody looked

	unfit map[id.Offset]struct{} // puts that an in-memory cache had no room for, in this turn
}

var _ shardcore.Book = (*caching)(nil)

// claims are those of a log, nil until it is open.
func (c *caching) claims(log shardcore.Log) *reading.Claims {
	switch {
	case log == shardcore.LogCounters && c.sums != nil:
		return &c.sums.Claims
	case log == shardcore.LogMain && c.main != nil:
		return &c.main.Claims
	}
	return nil
}

// Claimed implements shardcore.Book.
func (c *caching) Claimed(log shardcore.Log, b *batch.Batch) { c.claims(log).Claimed(b) }

// Void implements shardcore.Book.
func (c *caching) Void(log shardcore.Log, from id.Offset) {
	c.void[log] = min(c.void[log], from)
	if l := c.claims(log); l != nil {
		l.Void(from)
	}
}

// record makes b a batch of one record.
func record(b *batch.Batch, r reading.Record) {
	b.Body = reading.AppendRecord(make([]byte, 0, reading.RecordSize(r.Op, len(r.Key), len(r.Value))), r)
	b.Count, b.Kind, b.PayloadBytes = 1, batch.Records, len(r.Key)+len(r.Value)
}

func counterRecord(b *batch.Batch, r reading.CounterRecord) {
	b.Body = reading.AppendCounterRecord(make([]byte, 0, reading.CounterRecordSize(len(r.Key))), r)
	b.Count, b.Kind, b.PayloadBytes = 1, batch.Records, len(r.Key)
}

// admit refuses a put for which the node has no memory.
func (c *caching) admit(key []byte, value int, expires bool) *wire.Refusal {
	var err error
	if c.memory != nil {
		err = c.memory.Admit(key, value, expires)
	} else {
		err = c.keyed.Admit(key, value, expires)
	}
	if err == nil {
		return nil
	}
	f := wire.Refuse(wire.CodeLimitExceeded, full(err))
	return &f
}

// full says what a write found no room in, and which setting that is.
func full(err error) string {
	var index *keyed.FullError
	if errors.As(err, &index) {
		return fmt.Sprintf("the entry needs %d bytes of this node's memory for keys (FELIX_CACHE_INDEX_BYTES), of which %d of %d are taken; remove entries, let some end, or raise it",
			index.Needed, index.Used, index.Limit)
	}
	var large *reading.TooLargeError
	if errors.As(err, &large) {
		return fmt.Sprintf("the entry needs %d bytes, and this node's in-memory caches have %d in all (FELIX_CACHE_MEMORY_BYTES); store less or raise it", large.Needed, large.Limit)
	}
	return err.Error()
}

// outcome is the answer to a cache write that was not refused.
func (c *caching) outcome(r *request, a *shardcore.Answer) Answer {
	var out Answer
	if r.result != nil {
		out = *r.result
	}
	out.Offset, out.NoOffset = a.Offset, a.Unwritten
	if a.Unwritten {
		return out
	}
	if _, is := c.unfit[a.Offset]; is {
		f := wire.Refuse(wire.CodeLimitExceeded, "the value does not fit into this node's cache memory (FELIX_CACHE_MEMORY_BYTES); store less or raise it")
		return Answer{Refusal: &f}
	}
	if r.versioned {
		out.HasVersion, out.Version = true, a.Offset
	}
	return out
}
