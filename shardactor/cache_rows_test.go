package shardactor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/felixd/felixd/shardactor/reading"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// start sends a request and returns where its answer comes.
func start(t testing.TB, h *Handle, m interface {
	Message
	To(Reply, shardcore.Token)
}) *replies {
	t.Helper()
	r := &replies{got: map[shardcore.Token][]Answer{}, ch: make(chan shardcore.Token, 2)}
	m.To(r, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	return r
}

// overwritten puts a hot key until the log begins after an offset: a compaction came to its end.
func (d *diskWorld) overwritten(h *Handle, beyond id.Offset) {
	d.t.Helper()
	value := strings.Repeat("v", 4000)
	d.await("the log begins later", func() bool {
		put(d.t, h, "hot", value)
		oldest, _ := h.Log.Bounds()
		return oldest > beyond
	})
}

// matrix G2
func TestADeletedKeyStaysDeletedAcrossCompactionAndRestart(t *testing.T) {
	mem := vfs.NewMem()
	change := func(x *diskSetup) { x.store.SegmentBytes = 64 << 10 }
	d := newDiskWorld(t, mem, change)
	h := d.cacheShard("users")
	for i := range 20 {
		put(t, h, fmt.Sprint("k", i), "v")
	}
	for i := range 10 {
		if a := ask(t, h, &CacheDelete{Key: fmt.Sprint("k", i)}); !a.Found {
			t.Fatalf("%+v", a)
		}
	}
	d.overwritten(h, 30)
	check := func(d *diskWorld, h *Handle) {
		t.Helper()
		for i := range 20 {
			if got := d.get(h, fmt.Sprint("k", i)); got != "-" != (i >= 10) {
				t.Fatalf("k%d is %s", i, got)
			}
		}
	}
	check(d, h)
	image := mem.Clone()
	d.stop()
	_ = image.Remove(keysFile(disklog.Cache)) // if there is one: all is read from the log
	for _, mem := range []*vfs.Mem{image, mem} {
		n := newDiskWorld(t, mem, change)
		check(n, n.cacheShard("users"))
		n.stop()
	}
}

// failedSync has the sync after a write fail, and returns the answer.
func failedSync(t *testing.T, d *diskWorld, h *Handle, kind disklog.Kind, m interface {
	Message
	To(Reply, shardcore.Token)
}) Answer {
	t.Helper()
	rule := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: cacheDir(kind) + "/*.log", Times: 1, Err: syscall.EIO, Block: true})
	r := start(t, h, m)
	<-rule.Reached()
	if got := d.get(h, "k"); got != "old@0" {
		t.Fatalf("before the sync the key is %s", got)
	}
	if sum, _ := h.Counters.Get("k"); sum != 5 {
		t.Fatalf("before the sync the sum is %d", sum)
	}
	rule.Release()
	a := r.wait(t, 1)
	if a.Refusal == nil || a.Refusal.Code != wire.CodeStorage || a.Refusal.Retry != wire.RetryOutcomeUnknown {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	return a
}

// The sync of a put, of a delete and of an add fails: who asked is told that the outcome is not known, no reader and no watch sees it, and the
// shard ends. After a power cut that leaves what was synced the key and the sum are as they were.
//
// matrix G3, H4
func TestWhatWasNotSyncedIsNotSeen(t *testing.T) {
	for name, c := range map[string]struct {
		kind disklog.Kind
		m    interface {
			Message
			To(Reply, shardcore.Token)
		}
	}{
		"put":    {disklog.Cache, &CachePut{Key: "k", Value: []byte("new")}},
		"put if": {disklog.Cache, &CachePutIf{Key: "k", Value: []byte("new"), HasVersion: true}},
		"delete": {disklog.Cache, &CacheDelete{Key: "k"}},
		"add":    {disklog.CountersLog, &CounterAdd{Key: "k", Delta: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			d := newDiskWorld(t, mem)
			h := d.cacheShard("users")
			put(t, h, "k", "old")
			ask(t, h, &CounterAdd{Key: "k", Delta: 5})
			failedSync(t, d, h, c.kind, c.m)
			if _, end := h.Log.Bounds(); end != 1 {
				t.Fatalf("watches see up to %d", end)
			}
			d.target(durableCache("users").Name, 0, func(x Target) bool { return x.State == route.Refused && x.Reason == ReasonPoisoned })
			d.await("the shard whose log ended serves nobody", func() bool { return !h.Serving() })
			image := mem.CrashHard()
			d.stop()
			n := newDiskWorld(t, image)
			h = n.cacheShard("users")
			if got := n.get(h, "k"); got != "old@0" {
				t.Fatalf("after the restart the key is %s", got)
			}
			if sum, ok := h.Counters.Get("k"); !ok || sum != 5 {
				t.Fatalf("after the restart the sum is %d", sum)
			}
			if a := ask(t, h, &CachePut{Key: "k", Value: []byte("goes on")}); a.Refusal != nil || a.Offset != 1 {
				t.Fatalf("%+v", a)
			}
		})
	}
}

// A write fails and the disk goes on: that put is refused, nothing of it is there, and what was judged by it is judged anew.
//
// matrix G3, G20, H4
func TestWhatWasRefusedByTheDiskIsJudgedByNobody(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	h := d.cacheShard("users")
	ask(t, h, &CounterAdd{Key: "k", Delta: 5})
	rule := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Times: 1, Err: syscall.ENOSPC, Block: true})
	first := start(t, h, &CachePut{Key: "k", Value: []byte("no room")})
	<-rule.Reached()
	second := start(t, h, &CachePutIf{Key: "k", Value: []byte("judged by the first")})
	rule.Release()
	if a := first.wait(t, 1); a.Refusal == nil || a.Refusal.Retry == wire.RetryOutcomeUnknown {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	if a := second.wait(t, 1); a.Refusal != nil || !a.Applied || a.Version != 0 {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	if got := d.get(h, "k"); got != "judged by the first@0" {
		t.Fatal(got)
	}
	failing := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: cacheDir(disklog.CountersLog) + "/*.log", Times: 1, Err: syscall.ENOSPC})
	if a := ask(t, h, &CounterAdd{Key: "k", Delta: 7}); a.Refusal == nil || a.Refusal.Retry == wire.RetryOutcomeUnknown || failing.Hits() != 1 {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	if a := ask(t, h, &CounterAdd{Key: "k", Delta: 1}); a.Sum != 6 {
		t.Fatalf("the sum is %d: one that was refused is in it", a.Sum)
	}
}

// deaf is a reply that nobody waits for any more.
type deaf struct{}

func (deaf) Answer(shardcore.Token, Answer) {}
func (deaf) Flush()                         {}

// Who asked goes away while its write waits for the disk: it is done all the same, and those behind it have their turn.
//
// matrix G4
func TestAWriteWhoseClientIsGoneHoldsUpNobody(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem())
	h := d.cacheShard("users")
	rule := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Name: "*.log", Block: true})
	m := &CachePut{Key: "k", Value: []byte("of nobody")}
	m.To(deaf{}, 1)
	if err := h.Ref.TrySend(m, Size(m)); err != nil {
		t.Fatal(err)
	}
	<-rule.Reached()
	next := start(t, h, &CachePutIf{Key: "k", Value: []byte("next"), HasVersion: true, Version: 0})
	sum := start(t, h, &CounterAdd{Key: "k", Delta: 1})
	if got := d.get(h, "k"); got != "-" {
		t.Fatalf("it is visible before it is durable: %s", got)
	}
	rule.Release()
	rule.Remove()
	if a := next.wait(t, 1); a.Refusal != nil || !a.Applied || a.Version != 1 {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	if a := sum.wait(t, 1); a.Sum != 1 {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	if got := d.get(h, "k"); got != "next@1" {
		t.Fatal(got)
	}
}

// Eight writers of one key, each waiting for its answer: the highest offset wins, whoever watches sees offsets grow, and many writes share a
// sync of 15 ms, in which a slow machine too comes to the others' writes.
//
// matrix G5
func TestWritersOfOneKeyShareSyncsAndTheLastOneWins(t *testing.T) {
	const writers, each = 8, 10
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, func(x *diskSetup) {
		f := vfs.NewFault(mem, nil)
		f.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Delay: 15 * time.Millisecond})
		x.fs = f
	})
	h := d.cacheShard("users")
	begun := d.store.Counters().Syncs.Load()
	type wrote struct {
		value string
		at    id.Offset
	}
	var mu sync.Mutex
	last := map[id.Offset]string{}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				x := wrote{value: fmt.Sprint(w, "/", i)}
				x.at = put(t, h, "k", x.value)
				mu.Lock()
				last[x.at] = x.value
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(last) != writers*each {
		t.Fatalf("%d offsets for %d writes", len(last), writers*each)
	}
	texts := stored(t, h)
	for i, text := range texts {
		r, err := reading.DecodeRecord([]byte(text))
		if err != nil || string(r.Value) != last[id.Offset(i)] {
			t.Fatalf("at %d is %q, want %q: %v", i, r.Value, last[id.Offset(i)], err)
		}
	}
	if got, want := d.get(h, "k"), fmt.Sprintf("%s@%d", last[writers*each-1], writers*each-1); got != want {
		t.Fatalf("the key is %s, want %s", got, want)
	}
	if n := d.store.Counters().Syncs.Load() - begun; n*3 > writers*each {
		t.Fatalf("%d syncs for %d writes", n, writers*each)
	}
}

// Keys are written, removed and counted all the time that compactions copy what they had: what each client was told last is what is there, in
// the same life and the next.
//
// matrix G8, H3
func TestWritesThatMeetACompactionAreNotUndoneByIt(t *testing.T) {
	mem := vfs.NewMem()
	change := func(x *diskSetup) { x.store.SegmentBytes, x.disk.InlineBytes = 32<<10, 512 }
	d := newDiskWorld(t, mem, change)
	h := d.cacheShard("users")
	const clients, keys = 4, 40
	most := float64(unlessRaced(6, 3))
	type known struct{ values, sums [keys]string }
	told := make([]known, clients)
	var all sync.WaitGroup
	late := time.Now().Add(patience)
	for c := range clients {
		all.Go(func() {
			for i := 0; testutil.ToFloat64(d.metrics.Disk.Compactions) < most && (i < 4000 || time.Now().Before(late)) || i%keys != 0; i++ {
				n := i % keys
				key := fmt.Sprint(c, "/", n)
				if i%7 == 3 {
					ask(t, h, &CacheDelete{Key: key})
					told[c].values[n] = "-"
				} else {
					at := put(t, h, key, fmt.Sprint(i, strings.Repeat("v", i%5*300)))
					told[c].values[n] = fmt.Sprintf("%d@%d", i, at)
				}
				a := ask(t, h, &CounterAdd{Key: key, Delta: int64(i)})
				told[c].sums[n] = fmt.Sprint(a.Sum)
			}
		})
	}
	all.Wait()
	_, end := h.Log.Bounds()
	t.Logf("%v compactions, %v given up, at %d", testutil.ToFloat64(d.metrics.Disk.Compactions), testutil.ToFloat64(d.metrics.Disk.CompactionFailures), end)
	if n := testutil.ToFloat64(d.metrics.Disk.Compactions); n < most {
		t.Fatalf("%v compactions", n)
	}
	check := func(d *diskWorld, h *Handle) {
		t.Helper()
		for c := range clients {
			for n := range keys {
				key, got := fmt.Sprint(c, "/", n), "-"
				if v, ok := h.Cache.Get(key, d.millis()); ok {
					number, _, _ := strings.Cut(d.settled(h, key, v), "v")
					got = fmt.Sprintf("%s@%d", number, v.Version)
				}
				if got != told[c].values[n] {
					t.Fatalf("%s is %s, its writer was told %s", key, got, told[c].values[n])
				}
				if sum, _ := h.Counters.Get(key); fmt.Sprint(sum) != told[c].sums[n] {
					t.Fatalf("the sum of %s is %d, its writer was told %s", key, sum, told[c].sums[n])
				}
			}
		}
	}
	check(d, h)
	image := mem.Clone()
	d.stop()
	_ = image.Remove(keysFile(disklog.Cache)) // if there are any: all is read from the log
	_ = image.Remove(keysFile(disklog.CountersLog))
	for _, mem := range []*vfs.Mem{image, mem} {
		n := newDiskWorld(t, mem, change)
		check(n, n.cacheShard("users"))
		n.stop()
	}
}

// settled is a value that a compaction may be moving: a copy is found a moment before it is readable, and the old one may be gone.
func (d *diskWorld) settled(h *Handle, key string, v reading.Live) (text string) {
	d.t.Helper()
	d.await(key+" is readable", func() bool {
		if now, ok := h.Cache.Get(key, d.millis()); ok && now.Version == v.Version {
			v = now
		}
		if !v.Cold {
			text = string(v.Value)
			return true
		}
		got, err := h.History.Read(d.t.Context(), v.Offset, math.MaxUint64, 1, 1, nil)
		if err != nil || len(got) != 1 {
			return false
		}
		payload, err := keyed.RecordAt(got[0], v.Offset)
		if err != nil {
			return false
		}
		r, err := reading.DecodeRecord(payload)
		text = string(r.Value)
		return err == nil && string(r.Key) == key
	})
	return text
}

// Compactions may have one byte a second: no write waits for one, and a broker that is asked to stop stops.
//
// matrix G26
func TestACompactionWithoutBudgetHoldsUpNeitherWritesNorTheEnd(t *testing.T) {
	mem := vfs.NewMem()
	change := func(x *diskSetup) { x.disk.CompactionRate, x.store.SegmentBytes = 1, 64<<10 }
	d := newDiskWorld(t, mem, change)
	h := d.cacheShard("users")
	for i := range 200 { // more than one batch of copies
		put(t, h, fmt.Sprint("keep", i), strings.Repeat("k", 500))
	}
	value := strings.Repeat("v", 4000)
	for range 600 { // while the clock stands
		put(t, h, "hot", value)
		if a := ask(t, h, &CounterAdd{Key: "hot", Delta: 1}); a.Refusal != nil {
			t.Fatal(a.Refusal)
		}
	}
	if oldest, _ := h.Log.Bounds(); oldest != 0 || testutil.ToFloat64(d.metrics.Disk.Compactions) != 0 {
		t.Fatalf("the log begins at %d: a compaction came to its end", oldest)
	}
	d.await("a compaction waits for its budget", func() bool { _, at := h.Log.Bounds(); return at > 800 })
	_, end := h.Log.Bounds()
	d.clock.Advance(time.Second)
	put(t, h, "hot", value)
	if _, now := h.Log.Bounds(); now != end+1 {
		t.Fatalf("%d records in a second with one byte for copies", now-end)
	}
	want := d.get(h, "hot")
	d.drain()
	n := newDiskWorld(t, mem, change)
	h = n.cacheShard("users")
	if got := n.get(h, "hot"); got != want {
		t.Fatalf("%.20s, then %.20s", want, got)
	}
	if sum, _ := h.Counters.Get("hot"); sum != 600 {
		t.Fatalf("the sum is %d", sum)
	}
	for i := range 200 {
		if got := n.get(h, fmt.Sprint("keep", i)); !strings.HasSuffix(got, fmt.Sprint("@", i)) {
			t.Fatalf("keep%d is %.20s", i, got)
		}
	}
}

// A cache and a stream of one name, in one namespace, with as many shards: each has its own files, and its own records.
//
// matrix G27
func TestACacheAndAStreamOfOneNameNeverMeet(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem)
	s, c := durableStream("users", 1, 1), durableCache("users")
	open := func(d *diskWorld) (stream, cache *Handle) {
		list := []route.Assignment{s, c}
		slices.SortFunc(list, func(a, b route.Assignment) int { return a.Name.Compare(b.Name) })
		d.desire(list...)
		local := func(x Target) bool { return x.State == route.Local }
		return d.target(s.Name, 0, local).Shard, d.target(c.Name, 0, local).Shard
	}
	stream, cache := open(d)
	written(t, stream, 0, "an event", "another")
	put(t, cache, "k", "a value")
	ask(t, cache, &CounterAdd{Key: "k", Delta: 3})
	written(t, stream, 2, "the last")
	if stream.Cache != nil || stream.Counters != nil {
		t.Fatal("a stream has a cache")
	}
	d.drain()
	d = newDiskWorld(t, mem)
	stream, cache = open(d)
	if got := stored(t, stream); !slices.Equal(got, []string{"an event", "another", "the last"}) {
		t.Fatalf("the stream holds %q", got)
	}
	if _, end := cache.Log.Bounds(); end != 1 || d.get(cache, "k") != "a value@0" {
		t.Fatalf("the cache's log ends at %d, and k is %s", end, d.get(cache, "k"))
	}
	if sum, _ := cache.Counters.Get("k"); sum != 3 {
		t.Fatalf("the sum is %d", sum)
	}
	dirs := []string{cacheDir(disklog.Cache), cacheDir(disklog.CountersLog), cacheDir(disklog.Stream)}
	for i, dir := range dirs {
		if _, err := mem.Stat(dir); err != nil || slices.Index(dirs, dir) != i {
			t.Fatalf("%s: %v", dir, err)
		}
	}
}

// noNews is told nothing.
type noNews struct{ done chan struct{} }

func (n noNews) Persisted(uint64)          { close(n.done) }
func (n noNews) WriteFailed(uint64, error) {}
func (n noNews) SealFailed(uint64, error)  {}
func (n noNews) Poisoned(error)            {}
func (n noNews) Stalled()                  {}
func (n noNews) Back()                     {}

// A record that a later version wrote: the shard is refused and an operator is told. No key is said to be absent because its record was not
// understood.
//
// matrix G28
func TestALogWithARecordOfALaterVersionIsNotServed(t *testing.T) {
	good := reading.AppendRecord(nil, reading.Record{Op: reading.OpPut, Key: []byte("k"), Value: []byte("v")})
	later := slices.Clone(good)
	later[4] = 99 // the operation, behind the length
	counter := reading.AppendCounterRecord(nil, reading.CounterRecord{Op: reading.CounterAdd, Delta: 1, Sum: 1, Key: []byte("k")})
	counter[4] = 99
	for name, c := range map[string]struct {
		kind disklog.Kind
		body []byte
		ok   bool
	}{
		"known":           {disklog.Cache, good, true},
		"later":           {disklog.Cache, later, false},
		"later, counters": {disklog.CountersLog, counter, false},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			wroteRaw(t, mem, c.kind, c.body)
			d := newDiskWorld(t, mem)
			a := durableCache("users")
			d.desire(a)
			if c.ok {
				h := d.target(a.Name, 0, func(x Target) bool { return x.State == route.Local }).Shard
				if got := d.get(h, "k"); got != "v@0" {
					t.Fatal(got)
				}
				return
			}
			d.target(a.Name, 0, func(x Target) bool { return x.State == route.Refused && x.Reason == ReasonDamaged })
			if err := <-d.bad; !strings.Contains(err.Error(), "99") {
				t.Fatalf("the operator is told %v", err)
			}
		})
	}
}

// wroteRaw makes a log of the cache with one batch.
func wroteRaw(t *testing.T, mem *vfs.Mem, kind disklog.Kind, body []byte) {
	t.Helper()
	pool := diskpool.New(diskpool.Options{})
	store, err := disklog.OpenStore(mem, disklog.Options{Exec: pool})
	if err != nil {
		t.Fatal(err)
	}
	n := noNews{make(chan struct{})}
	log, err := store.Open(disklog.Spec{Kind: kind, Tenant: "t1", Namespace: "default", Name: "users", Incarnation: 1, Generation: 1}, n, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Append(1, []*batch.Batch{{Count: 1, Generation: 1, Kind: batch.Records, Body: body, PayloadBytes: len(body)}})
	<-n.done
	closed := make(chan error, 1)
	log.Close(func(err error) { closed <- err })
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	<-pool.Close()
}

// An in-memory cache forgets with its broker: a version that was read before means nothing after, whatever was written there since.
//
// matrix G30
func TestAVersionOfAnInMemoryCacheDoesNotOutliveIt(t *testing.T) {
	first := newWorld(t, nil)
	a := cache("users")
	first.desire(a)
	h := first.shard(a.Name, 0, nil)
	var versions []id.Offset
	for i := range 100 {
		versions = append(versions, put(t, h, fmt.Sprint("k", i), "v"))
	}
	second := newWorld(t, nil)
	second.clock.Advance(first.clock.Now().Sub(second.clock.Now()) + time.Second) // it starts later
	second.desire(a)
	h = second.shard(a.Name, 0, nil)
	for i, version := range versions {
		key := fmt.Sprint("k", i)
		if a := ask(t, h, &CachePutIf{Key: key, Value: []byte("x"), HasVersion: true, Version: version}); a.Applied || a.HasVersion {
			t.Fatalf("into an empty cache: %+v", a)
		}
		now := put(t, h, key, "v")
		if a := ask(t, h, &CachePutIf{Key: key, Value: []byte("x"), HasVersion: true, Version: version}); a.Applied || a.Version != now {
			t.Fatalf("version %d of before: %+v", version, a)
		}
		if a := ask(t, h, &CacheDeleteIf{Key: key, Version: version}); a.Applied || a.Version != now {
			t.Fatalf("version %d of before: %+v", version, a)
		}
		if a := ask(t, h, &CachePutIf{Key: key, Value: []byte("x"), HasVersion: true, Version: now}); !a.Applied {
			t.Fatalf("version %d of now: %+v", now, a)
		}
	}
}

// The broker is killed while an add, and a conditional put, wait for the disk. Who asks again reads what became of them first; an add that is
// made again may count twice, and never less than once.
//
// matrix G21, H1
func TestAfterAKillAReadTellsWhatBecameOfAWrite(t *testing.T) {
	for _, after := range []bool{false, true} { // whether the kill comes before or after the bytes are in the file
		t.Run(fmt.Sprint("written_", after), func(t *testing.T) {
			mem := vfs.NewMem()
			d := newDiskWorld(t, mem)
			h := d.cacheShard("users")
			put(t, h, "k", "old")
			ask(t, h, &CounterAdd{Key: "n", Delta: 5})
			call := vfs.CallWrite
			if after {
				call = vfs.CallSync
			}
			values := d.fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Name: cacheDir(disklog.Cache) + "/*.log", Block: true})
			sums := d.fault.Add(vfs.Rule{Calls: []vfs.Call{call}, Name: cacheDir(disklog.CountersLog) + "/*.log", Block: true})
			start(t, h, &CachePutIf{Key: "k", Value: []byte("new"), HasVersion: true})
			start(t, h, &CounterAdd{Key: "n", Delta: 7})
			<-values.Reached()
			<-sums.Reached()
			image := mem.Clone()
			values.Release()
			sums.Release()
			d.stop()
			n := newDiskWorld(t, image)
			h = n.cacheShard("users")
			wantValue, wantSum := "old@0", int64(5)
			if after {
				wantValue, wantSum = "new@1", 12
			}
			if got := n.get(h, "k"); got != wantValue {
				t.Fatalf("the key is %s, want %s", got, wantValue)
			}
			again := ask(t, h, &CachePutIf{Key: "k", Value: []byte("new"), HasVersion: true})
			if again.Applied == after {
				t.Fatalf("%+v", again)
			}
			if a := ask(t, h, &CounterAdd{Key: "n", Delta: 7}); a.Sum != wantSum+7 {
				t.Fatalf("the sum is %d, want %d", a.Sum, wantSum+7)
			}
		})
	}
}
