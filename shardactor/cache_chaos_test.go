package shardactor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// chaosKeys are few, so that requests meet each other.
const chaosKeys = 6

// wish is a request and what was known when it was sent.
type wish struct {
	kind        string
	key, value  string
	conditional bool
	version     id.Offset // of the condition
	delta       int64
	token       shardcore.Token
	sent        id.Offset // end of the log as it was read by then
}

// cacheChaos is one life of a cache's shard to which everything happens: requests of all kinds, many under way; disks that are full, slow or fail;
// clock steps; compaction; crashes of the actor, kills, power cuts.
type cacheChaos struct {
	t       *testing.T
	rng     *rand.Rand
	mode    disklog.FsyncMode
	mem     *vfs.Mem
	clock   *setClock
	w       *timedWorld
	h       *Handle
	log     *cacheHistory
	token   shardcore.Token
	counts  bool // nothing but counters, with long keys, so that their log is compacted
	owner   map[id.Offset]shardcore.Token
	refused map[string]bool  // values whose put was refused for certain
	deletes map[string]int   // deletes by key that were answered as done
	unknown map[string]int   // deletes without an outcome
	sums    map[string]int64 // of counters
	unsure  map[string]bool  // counters with an addition without an outcome
	seen    map[string]int   // what has happened
}

func (c *cacheChaos) setup(x *diskSetup) {
	x.disk.InlineBytes = 1024
	x.store.SegmentBytes = 64 << 10
	x.store.Fsync = c.mode
}

// live begins on what the disk holds.
func (c *cacheChaos) live() {
	c.w = newTimedWorld(c.t, c.clock, c.mem, c.setup)
	c.h = c.w.cacheShard("users")
}

func (c *cacheChaos) key(i int) string { return fmt.Sprint("k", i) }

func (c *cacheChaos) counter(key string) string {
	if c.counts {
		return key + strings.Repeat("k", 1500)
	}
	return key
}

// fault breaks the disk of the shard for a while, most of the time not.
func (c *cacheChaos) fault() *vfs.ActiveRule {
	ours := func(n string) bool { return strings.Contains(n, "users") }
	logs := func(n string) bool { return ours(n) && strings.HasSuffix(n, ".log") }
	writes := []vfs.Call{vfs.CallWrite}
	from := 1 + c.rng.IntN(3)
	switch c.rng.IntN(8) {
	case 0:
		return c.w.fault.Add(vfs.Rule{Calls: writes, Match: logs, From: from, Times: 1 + c.rng.IntN(3), Err: syscall.ENOSPC, Short: c.rng.IntN(2) == 0})
	case 1:
		return c.w.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite, vfs.CallSync}, Match: ours, From: from, Times: 1, Block: true})
	case 2:
		return c.w.fault.Add(vfs.Rule{Calls: writes, Match: logs, From: from, Times: 1, Block: true, Err: syscall.ENOSPC})
	case 3:
		return c.w.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead, vfs.CallRemove, vfs.CallCreate}, Match: ours, From: from, Times: 1, Err: syscall.EIO})
	}
	return nil
}

// send sends a request.
func (c *cacheChaos) send(r *replies) wish {
	c.token++
	key := c.key(c.rng.IntN(chaosKeys))
	w := wish{key: key, token: c.token, sent: c.log.next, value: fmt.Sprint(c.token, "/", strings.Repeat("v", c.rng.IntN(6000)))}
	ends, ttl, had := c.rng.IntN(3) == 0, uint64(1+c.rng.IntN(40)), c.log.last(key)
	var m interface {
		Message
		To(Reply, shardcore.Token)
	}
	choice := c.rng.IntN(12)
	if c.counts && choice > 3 {
		choice = 7
	}
	switch choice {
	case 0, 1:
		w.kind = "delete"
		m = &CacheDelete{Key: key}
	case 2:
		w.kind = "put if"
		m = &CachePutIf{Key: key, Value: []byte(w.value), HasTTL: ends, TTLMillis: ttl}
	case 3, 4:
		w.kind, w.conditional, w.version = "put if", true, had.version
		if c.rng.IntN(4) == 0 {
			w.version = id.Offset(c.rng.IntN(int(c.log.next) + 4))
		}
		m = &CachePutIf{Key: key, Value: []byte(w.value), HasTTL: ends, TTLMillis: ttl, HasVersion: true, Version: w.version}
	case 5, 6:
		w.kind, w.conditional, w.version = "delete if", true, had.version
		if c.rng.IntN(3) == 0 { // what may be about to be written
			w.version = c.log.next + id.Offset(c.rng.IntN(6))
		}
		m = &CacheDeleteIf{Key: key, Version: w.version}
	case 7:
		w.kind, w.delta = "add", c.rng.Int64N(100)-30
		m = &CounterAdd{Key: c.counter(key), Delta: w.delta}
	default:
		w.kind = "put"
		m = &CachePut{Key: key, Value: []byte(w.value), HasTTL: ends, TTLMillis: ttl}
	}
	m.To(r, w.token)
	if err := c.h.Ref.TrySend(m, Size(m)); err != nil {
		c.t.Fatal(err)
	}
	return w
}

// round sends some requests, with a fault or a crash beside them, and judges their answers. It reports whether the log is still there whole.
func (c *cacheChaos) round() bool {
	r, rule := newReplies(), c.fault()
	var asked []wish
	for i := range 1 + c.rng.IntN(40) {
		asked = append(asked, c.send(r))
		if i > 0 && c.rng.IntN(6) == 0 {
			yield()
		}
	}
	if rule != nil && rule.Rule().Block {
		for range 1000 { // it may be that nothing comes to it
			select {
			case <-rule.Reached():
			default:
				yield()
				continue
			}
			for range c.rng.IntN(12) {
				asked = append(asked, c.send(r))
			}
			c.seen["stood still"]++
			break
		}
		rule.Release()
	}
	crashed := c.rng.IntN(14) == 0
	if crashed {
		for range c.rng.IntN(200) {
			yield()
		}
		if err := c.w.sys.Faults().Crash(c.h.Ref.Path()); err != nil {
			c.t.Fatal(err)
		}
	}
	answers := make([]Answer, len(asked))
	for i := range asked {
		answers[i] = r.wait(c.t, asked[i].token)
	}
	if rule != nil {
		rule.Remove()
	}
	if crashed {
		c.again()
	}
	if !c.log.reads(c.h) {
		return false
	}
	for i := range asked {
		c.judge(&asked[i], &answers[i])
	}
	if crashed && c.mode == disklog.OnCommit && c.rng.IntN(2) == 0 { // and the power goes: what was shown is there
		c.image(c.mem.CrashHard(), func(n *timedWorld, h *Handle) { c.compare(n, h, "after a crash and a power cut") })
	}
	return true
}

// again waits until a shard that failed serves again.
func (c *cacheChaos) again() {
	c.seen["crashed"]++
	old := c.h
	c.w.await("the shard comes back", func() bool {
		x, ok := c.w.table.Get(durableCache("users").Name).Shard(0)
		if ok && x.Shard != nil && x.Shard != old && x.Shard.Serving() {
			c.h = x.Shard
			return true
		}
		c.w.time.Advance(50 * time.Millisecond)
		return false
	})
}

// pass lets time pass, and sets the wall clock.
func (c *cacheChaos) pass() {
	switch c.rng.IntN(6) {
	case 0:
		c.w.time.Advance(time.Duration(c.rng.IntN(400)) * time.Millisecond)
	case 1:
		c.w.time.Advance(time.Duration(c.rng.IntN(20)) * time.Millisecond)
	case 2:
		c.w.time.set(time.Duration(c.rng.IntN(60)-30) * time.Millisecond)
	case 3:
		c.w.time.Advance(time.Second)
		c.w.turn(c.h)
	}
}

// image opens what a disk would be, beside the one that lives on.
func (c *cacheChaos) image(mem *vfs.Mem, look func(n *timedWorld, h *Handle)) {
	n := newTimedWorld(c.t, c.clock, mem, c.setup)
	look(n, n.cacheShard("users"))
	n.stop()
}

// cut looks at what a power cut would leave now: a beginning of what the log told, and what follows from it.
func (c *cacheChaos) cut() bool {
	if !c.log.reads(c.h) {
		return false
	}
	told := c.log.next
	mem := c.mem.CrashHard()
	if c.rng.IntN(2) == 0 {
		mem = c.mem.Crash(c.rng.IntN)
	}
	if !c.log.reads(c.h) { // what was on its way meanwhile may be there
		return false
	}
	c.seen["power cut"]++
	c.image(mem, func(n *timedWorld, h *Handle) {
		end := c.agree(h)
		if c.mode == disklog.OnCommit && end < told {
			c.t.Fatalf("a power cut leaves the log up to %d of %d", end, told)
		}
		for i := range chaosKeys {
			key := c.key(i)
			want := c.log.before(key, end)
			v, ok := h.Cache.Get(key, 0)
			switch {
			case ok && v.Version >= end: // written at the moment of the cut, and not told yet
			case !ok && want.has && !want.live(c.w.millis()): // its end was recorded while it was looked at
			case ok != want.has, ok && (v.Version != want.version || v.ExpiresAtMillis != want.expiresAtMillis),
				ok && want.expiresAtMillis == 0 && n.settled(h, key, v) != want.value:
				c.t.Fatalf("after a power cut that left the log up to %d, %s is %v, version %d, want %+.60v", end, key, ok, v.Version, want)
			}
		}
	})
	return true
}

// agree is the end of what a log and the history say in common. What it says beyond was not refused for certain.
func (c *cacheChaos) agree(h *Handle) (end id.Offset) {
	at, end := h.Log.Bounds()
	for at < min(end, c.log.next) {
		page, err := h.History.Read(c.t.Context(), at, end, 256, 1<<20, nil)
		var old *storage.TooOldError
		if errors.As(err, &old) {
			at = old.Oldest
			continue
		}
		if err != nil || len(page) == 0 {
			c.t.Fatalf("read at %d: %d batches, %v", at, len(page), err)
		}
		for _, b := range page {
			if at = b.Base; b.Kind != batch.Records { // offsets that are passed over: of records that were lost, or before
				if _, known := c.log.records[at]; known {
					return at
				}
			}
			for r := range reading.Records(b.Body) {
				if c.log.records[at] != (logged{r.Op, string(r.Key), string(r.Value)}) {
					if r.Op == reading.OpPut && c.refused[string(r.Value)] {
						c.t.Fatalf("a put of %s that was refused for certain is at %d after a power cut", r.Key, at)
					}
					return min(at, c.log.next)
				}
				at++
			}
			at = b.End()
		}
	}
	return min(end, c.log.next)
}

// kill ends the process, and in the mode that syncs every commit maybe the power, too; and goes on with what is left.
func (c *cacheChaos) kill() bool {
	c.w.turn(c.h)
	if !c.log.reads(c.h) {
		return false
	}
	c.seen["killed"]++
	c.log.leave()
	mem := c.mem.Clone()
	if c.mode == disklog.OnCommit && c.rng.IntN(2) == 0 {
		mem = c.mem.CrashHard()
	}
	c.w.stop()
	c.mem = mem
	c.live()
	if base, end := c.h.Log.Bounds(); end < c.log.next || base > c.log.next {
		c.t.Fatalf("after a kill the log is [%d, %d), want %d", base, end, c.log.next)
	}
	if !c.log.reads(c.h) {
		return false
	}
	c.compare(c.w, c.h, "after a kill")
	return true
}

// compare wants a shard to have what the log has told.
func (c *cacheChaos) compare(w *timedWorld, h *Handle, when string) {
	c.t.Helper()
	for i := range chaosKeys {
		key := c.key(i)
		v, ok := h.Cache.Get(key, 0)
		want := c.log.last(key)
		if h == c.h { // an end that is being recorded
			w.await("what is told of "+key+" is what is found", func() bool {
				c.log.reads(h)
				v, ok = h.Cache.Get(key, 0)
				want = c.log.last(key)
				return ok == want.has
			})
		}
		if !ok && want.has && !want.live(w.millis()) {
			continue
		}
		if ok != want.has || ok && (v.Version != want.version || v.ExpiresAtMillis != want.expiresAtMillis || w.settled(h, key, v) != want.value) {
			c.t.Fatalf("%s: %s is %v, version %d, want %+.60v", when, key, ok, v.Version, want)
		}
		if sum, _ := h.Counters.Get(c.counter(key)); !c.unsure[key] && sum != c.sums[key] {
			c.t.Fatalf("%s: the sum of %s is %d, want %d", when, key, sum, c.sums[key])
		}
		if n := c.log.removed[key] - c.deletes[key]; n < 0 || n > c.unknown[key] {
			c.t.Fatalf("%s: %d deletes of %s are recorded, %d were answered, %d have no outcome", when, c.log.removed[key], key, c.deletes[key], c.unknown[key])
		}
	}
}

// Whatever happens to a cache's shard, every answer is true of its log, each record is one request's, nothing that was refused for certain is ever there,
// copies of a compaction are those of what they copy, and what was acknowledged durably survives kills and power cuts.
func TestEveryAnswerOfACacheIsTrueOfItsLogWhateverHappensToIt(t *testing.T) {
	const rounds = 200 // of one life
	seen := map[string]int{}
	for left, seed := effort.Size("cache_chaos_rounds"), uint64(1); left > 0; left, seed = left-rounds, seed+1 {
		mode := []disklog.FsyncMode{disklog.OnCommit, disklog.Periodic, disklog.None}[seed%3]
		t.Run(fmt.Sprint(seed, " ", mode), func(t *testing.T) {
			c := &cacheChaos{
				t: t, rng: rand.New(rand.NewPCG(seed, 5)), mode: mode, mem: vfs.NewMem(), clock: newSetClock(), counts: seed%4 == 0, owner: map[id.Offset]shardcore.Token{},
				refused: map[string]bool{}, deletes: map[string]int{}, unknown: map[string]int{}, sums: map[string]int64{}, unsure: map[string]bool{}, seen: seen,
			}
			c.log = newCacheHistory(t, func() uint64 { return c.w.millis() })
			c.live()
			c.log.next, _ = c.h.Log.Bounds()
			whole := c.log.reads(c.h)
			for round := 0; round < min(rounds, left) && whole; round++ {
				if whole = c.round(); !whole {
					break
				}
				c.pass()
				if c.rng.IntN(8) == 0 {
					whole = c.cut()
				}
				if whole && c.rng.IntN(30) == 0 {
					whole = c.kill()
				}
			}
			if whole {
				c.w.turn(c.h)
				whole = c.log.reads(c.h)
			}
			if whole {
				c.compare(c.w, c.h, "in the end")
			} else {
				seen["overtaken by a compaction"]++
			}
			c.log.leave()
			c.w.stop()
			seen["copied"] += c.log.moves
			seen["ended"] += c.log.ends
		})
	}
	t.Log(seen)
	for _, what := range []string{"refused", "ended", "power cut", "stood still"} {
		if seen[what] == 0 && seen["overtaken by a compaction"] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
}

// judge holds an answer against the log.
func (c *cacheChaos) judge(w *wish, a *Answer) {
	c.t.Helper()
	if a.Refusal != nil {
		c.refusal(w, a.Refusal)
		return
	}
	switch w.kind {
	case "put":
		c.owns(w, a.Offset)
	case "add":
		c.sums[w.key] += w.delta
	case "put if":
		c.judgePutIf(w, a)
	case "delete":
		c.judgeDelete(w, a.Found, func(s keyState) bool { return s.value == string(a.Value) }, func(s keyState) bool { return !s.live(c.w.millis()) })
	case "delete if":
		c.judgeDelete(w, a.Applied, func(s keyState) bool { return s.version == w.version }, func(s keyState) bool {
			if a.HasVersion {
				return s.has && s.version == a.Version && s.version != w.version
			}
			return !s.live(c.w.millis())
		})
	}
}

func (c *cacheChaos) refusal(w *wish, f *wire.Refusal) {
	c.t.Helper()
	c.seen["refused"]++
	unknown := f.Retry == wire.RetryOutcomeUnknown
	switch {
	case unknown && w.kind == "add":
		c.unsure[w.key] = true
	case unknown && strings.HasPrefix(w.kind, "delete"):
		c.unknown[w.key]++
	case !unknown && strings.HasPrefix(w.kind, "put"):
		c.refused[w.value] = true
		for at, x := range c.log.records {
			if x.op == reading.OpPut && x.value == w.value {
				c.t.Fatalf("a %s was refused with %v, and is at %d", w.kind, f, at)
			}
		}
	}
}

// owns wants the put of a wish at an offset, and of no other.
func (c *cacheChaos) owns(w *wish, at id.Offset) {
	c.t.Helper()
	if other, taken := c.owner[at]; taken {
		c.t.Fatalf("offset %d was answered to %d and to %d", at, other, w.token)
	}
	c.owner[at] = w.token
	if got := c.log.records[at]; got != (logged{reading.OpPut, w.key, w.value}) {
		c.t.Fatalf("%s %s was answered with %d, where there is %.40v", w.kind, w.key, at, got)
	}
}

func (c *cacheChaos) judgePutIf(w *wish, a *Answer) {
	c.t.Helper()
	if a.Applied {
		c.owns(w, a.Version)
		if was := c.log.before(w.key, a.Version); w.conditional && (!was.has || was.version != w.version) || !w.conditional && was.live(c.w.millis()) {
			c.t.Fatalf("a put at %d on condition %v %d was applied over %+.60v", a.Version, w.conditional, w.version, was)
		}
		return
	}
	if !c.log.during(w.key, w.sent, c.log.next, func(s keyState) bool {
		if a.HasVersion {
			return s.has && s.version == a.Version && (!w.conditional || s.version != w.version)
		}
		return w.conditional && !s.live(c.w.millis())
	}) {
		c.t.Fatalf("a put of %s on condition %v %d, sent at %d, was answered %+v; %s", w.key, w.conditional, w.version, w.sent, a, c.log.lately(w.key))
	}
}

// judgeDelete wants a record that nobody else was answered with and that removed what is said, or a moment at which there was nothing to remove.
func (c *cacheChaos) judgeDelete(w *wish, done bool, removed, nothing func(keyState) bool) {
	c.t.Helper()
	if !done {
		if !c.log.during(w.key, w.sent, c.log.next, nothing) {
			c.t.Fatalf("a %s of %s at version %d did nothing; %s", w.kind, w.key, w.version, c.log.lately(w.key))
		}
		return
	}
	c.deletes[w.key]++
	for at := w.sent; at < c.log.next; at++ {
		x := c.log.records[at]
		if _, taken := c.owner[at]; !taken && x.op == reading.OpDelete && x.key == w.key && removed(c.log.before(w.key, at)) {
			c.owner[at] = w.token
			return
		}
	}
	c.t.Fatalf("a %s of %s at version %d was answered as done, and no record removed that", w.kind, w.key, w.version)
}
