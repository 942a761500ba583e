package shardactor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// bursts sends requests of one sender in bursts, and holds each answer against what a map says that is changed in the order in which they were sent.
type bursts struct {
	*timedWorld
	h     *Handle
	rng   *rand.Rand
	has   map[string]burstEntry
	now   uint64 // when the burst was sent
	token shardcore.Token
	sent  []burstSent
}

type burstEntry struct {
	value   string
	version id.Offset
	end     uint64
}

type burstSent struct {
	token shardcore.Token
	what  string
	judge func(a Answer) bool // and changes the map
}

func (b *bursts) live(key string) (burstEntry, bool) {
	x, ok := b.has[key]
	if !ok || x.end != 0 && x.end <= b.now {
		return burstEntry{}, false
	}
	return x, true
}

// told reports whether a condition was answered as it stands.
func (b *bursts) told(key string, holds func(burstEntry, bool) bool, a Answer, applied func()) bool {
	x, ok := b.live(key)
	if a.Applied != holds(x, ok) || !a.Applied && (a.HasVersion != ok || a.Version != x.version) {
		return false
	}
	if a.Applied {
		applied()
	}
	return true
}

func (b *bursts) send(r *replies) {
	b.token++
	key := fmt.Sprint("k", b.rng.IntN(4))
	value := fmt.Sprint(b.token, strings.Repeat("v", b.rng.IntN(60)))
	ttl, has, end := uint64(1+b.rng.IntN(30)), b.rng.IntN(3) == 0, uint64(0)
	if has {
		end = b.now + 1 + ttl
	}
	version := b.has[key].version // as it was before this burst
	is := func(x burstEntry, ok bool) bool { return ok && x.version == version }
	none := func(_ burstEntry, ok bool) bool { return !ok }
	var m interface {
		Message
		To(Reply, shardcore.Token)
	}
	var judge func(Answer) bool
	switch b.rng.IntN(6) {
	case 0, 1:
		m = &CachePut{Key: key, Value: []byte(value), HasTTL: has, TTLMillis: ttl}
		judge = func(a Answer) bool { b.has[key] = burstEntry{value, a.Offset, end}; return true }
	case 2:
		m = &CacheDelete{Key: key}
		judge = func(a Answer) bool {
			x, ok := b.live(key)
			delete(b.has, key)
			return a.Found == ok && string(a.Value) == x.value
		}
	case 3, 4:
		c := &CachePutIf{Key: key, Value: []byte(value), HasTTL: has, TTLMillis: ttl}
		holds := none
		if b.rng.IntN(2) == 0 {
			c.HasVersion, c.Version, holds = true, version, is
		}
		m = c
		judge = func(a Answer) bool {
			return b.told(key, holds, a, func() { b.has[key] = burstEntry{value, a.Version, end} })
		}
	default:
		m = &CacheDeleteIf{Key: key, Version: version}
		judge = func(a Answer) bool { return b.told(key, is, a, func() { delete(b.has, key) }) }
	}
	m.To(r, b.token)
	if err := b.h.Ref.TrySend(m, Size(m)); err != nil {
		b.t.Fatal(err)
	}
	b.sent = append(b.sent, burstSent{b.token, fmt.Sprintf("%T of %s", m, key), judge})
}

// round sends one burst and judges it.
func (b *bursts) round() {
	b.now = b.millis()
	r := newReplies()
	b.sent = b.sent[:0]
	for range 1 + b.rng.IntN(30) {
		b.send(r)
	}
	for i, x := range b.sent {
		a := r.wait(b.t, x.token)
		before, had := b.has[x.what[len(x.what)-2:]]
		if a.Refusal != nil || !x.judge(a) {
			b.t.Fatalf("at %d request %d of %d, a %s, is answered %+v (%v); it had %+v, %v", b.now, i, len(b.sent), x.what, a, a.Refusal, before, had)
		}
	}
	for i := range 4 {
		key := fmt.Sprint("k", i)
		x, ok := b.live(key)
		v, there := b.h.Cache.Get(key, b.now)
		if there != ok || ok && (v.Version != x.version || v.ExpiresAtMillis != x.end) {
			b.t.Fatalf("%s is %v %+v, want %v %+v", key, there, v, ok, x)
		}
		if ok && !v.Cold && string(v.Value) != x.value {
			b.t.Fatalf("%s is %q, want %q", key, v.Value, x.value)
		}
	}
	b.time.Advance(time.Duration(b.rng.IntN(20)) * time.Millisecond)
}

// What one sender sends in a burst is done in its order, and answered as if each request had waited for the one before: in memory, in a log, and in a
// log that most values are in alone, also when there is no room for what deletes answer.
func TestABurstIsDoneInTheOrderInWhichItWasSent(t *testing.T) {
	rounds := effort.Size("cache_bursts")
	run := func(t *testing.T, w *timedWorld, h *Handle) {
		b := &bursts{timedWorld: w, h: h, rng: rand.New(rand.NewPCG(3, 3)), has: map[string]burstEntry{}}
		for range rounds {
			b.round()
		}
	}
	bothCaches(t, run)
	for name, change := range map[string]func(*diskSetup){
		"cold":         inlineLittle,
		"cold, little": func(x *diskSetup) { x.disk.InlineBytes, x.disk.RemovedBytes = 30, 50 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTimedWorld(t, newSetClock(), vfs.NewMem(), change)
			run(t, w, w.cacheShard("users"))
		})
	}
}
