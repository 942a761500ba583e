package shardactor

import (
	"sync"
	"time"
)

// pace spreads work of many shards over time: so many bytes per second, all together.
type pace struct {
	rate int64 // 0 is no bound

	mu   sync.Mutex
	free time.Time // when everything that was let through is paid for
}

// paceAhead is how far ahead of its rate work may be: timers are not finer than that.
const paceAhead = 5 * time.Millisecond

// take books n bytes that go now, and returns when they are paid for: what follows them waits until then. So everybody is ahead of the rate by
// what they take at once, and no more.
func (p *pace) take(now time.Time, n int64) time.Time {
	if p.rate <= 0 {
		return now
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	if p.free.Sub(now) <= paceAhead {
		return now
	}
	return p.free
}
