package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/felixd/felixd/storage/keyed"
)

// cachePlan is how a durable world uses its caches; most have none.
type cachePlan struct {
	On       bool
	Large    bool // values and names of counters are so long that logs are compacted
	Shards   uint32
	Clients  int
	Requests int // of one client
	Pause    time.Duration
	TTL      uint64 // the longest, in milliseconds
	Down     bool   // counters are subtracted from, too
	Inline   int    // see shardactor.DiskOptions
	Rate     int64  // the same
	Tight    bool   // streams and what is kept for watches are small
}

// cacheWorlds: one durable world in so many has caches.
const cacheWorlds = 3

// newCachePlan draws how a world uses caches.
func newCachePlan(seed uint64) cachePlan {
	if seed%cacheWorlds != 1 {
		return cachePlan{}
	}
	r := rand.New(rand.NewPCG(seed, 0x6361636865))
	p := cachePlan{
		On: true, Large: r.IntN(3) == 0, Shards: 1 + r.Uint32N(2), Clients: 1 + r.IntN(3), Requests: 12 + r.IntN(30),
		Pause: []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}[r.IntN(3)],
		TTL:   []uint64{5, 50, 500, 5000}[r.IntN(4)], Down: r.IntN(2) == 0,
		Inline: []int{0, -1, 16, 64, 4096}[r.IntN(5)], Rate: []int64{0, 64 << 20, 256 << 10}[r.IntN(3)], Tight: r.IntN(2) == 0,
	}
	if p.Large {
		p.Shards, p.Clients, p.Requests = 1, 2+r.IntN(2), 60+r.IntN(40)
	}
	return p
}

// keys are those that clients share: few, so that they meet.
func (p *cachePlan) keys() []string {
	if p.Large {
		return []string{"a1", "a2", "b1"}
	}
	return []string{"a1", "a2", "a3", "b1", "b2", "b3"}
}

func (p *cachePlan) counters() []string {
	list := []string{"n1", "n2"}
	if p.Large {
		for i := range list {
			list[i] += strings.Repeat("-", 6000)
		}
	}
	return list
}

// drawSize is how long a value is.
func (p *cachePlan) drawSize(r *rand.Rand) int {
	switch n := r.IntN(16); {
	case p.Large && n < 12:
		return 16<<10 + r.IntN(48<<10)
	case n < 2:
		return 1000 + r.IntN(8<<10)
	}
	return 8 + r.IntN(150)
}

// cold reports whether a value of so many bytes is in the log alone.
func (p *cachePlan) cold(bytes int) bool {
	inline := p.Inline
	if inline == 0 {
		inline = keyed.DefaultInlineMax
	}
	return bytes > inline
}

// mayCompact reports whether so many bytes of keys and values can have made a log of a cache worth a compaction.
func mayCompact(bytes int) bool { return int64(bytes) > keyed.CachePolicy().Floor/2 }

// String is what a trace says of it.
func (p *cachePlan) String() string {
	return fmt.Sprintf("caches: %v, large: %v, %d shards, %d clients, %d requests, values up to %d bytes in memory", p.On, p.Large, p.Shards, p.Clients, p.Requests, p.Inline)
}
