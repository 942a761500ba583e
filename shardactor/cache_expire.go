package shardactor

import (
	"time"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire/id"
)

// Entries of a log-backed cache that have ended are absent for readers at once; their deletes follow, as records that watches see, at most
// expirePass of them every expireEvery: a thousand a second, so that many that end together do not hold up writes.
const (
	expirePass  = 256
	expireEvery = 250 * time.Millisecond
	// clockLook is how long a shard whose entries end may trust that the wall clock goes as timers do: when it was set forward, ends that it
	// went over are met by then.
	clockLook = time.Minute
	// expireRetry is the pause after deletes that could not be written.
	expireRetry = time.Second
	// expireBatch bounds one batch of such deletes in records and in bytes, as one publish is bounded.
	expireBatch      = 64
	expireBatchBytes = 64 << 10
)

// expiring is the pass that is under way.
type expiring struct {
	open int       // batches without an outcome
	next time.Time // no pass before
}

// expiredBatch is a batch of deletes of ended entries, on its way through the core. Which of them are written is judged at the claim: an
// entry that was put again meanwhile stays.
type expiredBatch struct {
	request
	batch   batch.Batch
	records []reading.Record
}

// expire begins a pass if an entry has ended, and returns when to look again.
func (d *cacheDisk) expire(core *shardcore.Core, at shardcore.At) time.Time {
	x := &d.expiring
	if x.open > 0 { // their answers come in a turn
		return time.Time{}
	}
	end, any := d.caching.keyed.NextEnd()
	if !any {
		return time.Time{}
	}
	due := time.UnixMilli(int64(end))
	if due.Before(x.next) {
		due = x.next
	}
	if at.Wall.Before(due) {
		return sooner(due, at.Wall.Add(clockLook))
	}
	x.next = at.Wall.Add(expireEvery)
	list := d.caching.keyed.Due(uint64(at.Wall.UnixMilli()), expirePass)
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && n < expireBatch && (n == 0 || bytes+len(list[n].Key) <= expireBatchBytes) {
			bytes += len(list[n].Key)
			n++
		}
		x.open++
		d.claimExpired(core, at, list[:n:n])
		list = list[n:]
	}
	if x.open > 0 {
		return time.Time{}
	}
	return x.next
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
	d.expiring.open--
	if a.Refusal != nil {
		d.expiring.next = d.expiring.next.Add(expireRetry)
		return
	}
	d.metrics.Expired.Add(float64(r.m.batch.Count))
}

func (expiredReply) Flush() {}
