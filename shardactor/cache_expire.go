package shardactor

import (
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// expiredBatch is a batch of deletes of ended entries, on its way through the core. Which of them are written is judged at the claim: an
// entry that was put again meanwhile stays.
type expiredBatch struct {
	request
	batch   batch.Batch
	records []reading.Record
}

// expire begins a pass if an entry has ended, and returns when to look again.
func (d *cacheDisk) expire(core *shardcore.Core, at shardcore.At) time.Time {
	end, any := d.caching.keyed.NextEnd()
	due, again := d.ending.Due(at.Wall, end, any)
	if !due {
		return again
	}
	for _, list := range d.ending.Batches(d.caching.keyed.Due(uint64(at.Wall.UnixMilli()), reading.ExpirePass)) {
		d.claimExpired(core, at, list)
	}
	return d.ending.Next()
}

func (d *cacheDisk) claimExpired(core *shardcore.Core, at shardcore.At, list []reading.Record) {
	m := &expiredBatch{batch: batch.Batch{Kind: batch.Records, Count: 1}, records: list}
	m.To(expiredReply{d, m}, 0)
	m.write = shardcore.Write{
		Reply: &m.request, Batch: &m.batch, Fold: true,
		Judge: func(_ id.Offset, nowMillis uint64) shardcore.Verdict { return d.judgeExpired(m, nowMillis) },
	}
	core.Step(at, &m.write)
}

// judgeExpired makes the batch of those that are still as they were.
func (d *cacheDisk) judgeExpired(m *expiredBatch, nowMillis uint64) shardcore.Verdict {
	b := &m.batch
	b.Body, b.Count, b.PayloadBytes = nil, 0, 0
	for _, r := range m.records {
		if d.caching.main.Expire(r.Key, r.Version, nowMillis).Append {
			b.Body = reading.AppendRecord(b.Body, r)
			b.Count++
			b.PayloadBytes += len(r.Key)
		}
	}
	return shardcore.Verdict{Append: b.Count > 0}
}

// expiredReply takes the outcome of such a batch.
type expiredReply struct {
	d *cacheDisk
	m *expiredBatch
}

func (r expiredReply) Answer(_ shardcore.Token, a Answer) {
	d := r.d
	d.ending.Outcome(a.Refusal != nil)
	if a.Refusal == nil {
		d.metrics.Expired.Add(float64(r.m.batch.Count))
	}
}

func (expiredReply) Flush() {}
