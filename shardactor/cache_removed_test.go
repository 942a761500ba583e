package shardactor

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/storage/keyed"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// asked sends requests as one sender does, and returns where their answers come, by their place from 1 on.
func asked(t testing.TB, h *Handle, list ...interface {
	Message
	To(Reply, shardcore.Token)
}) *replies {
	t.Helper()
	r := newReplies()
	for i, m := range list {
		m.To(r, shardcore.Token(i+1))
		if err := h.Ref.TrySend(m, Size(m)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// hungReads keeps what is read of the logs of caches from coming.
func (d *diskWorld) hungReads() *vfs.ActiveRule {
	return d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Match: func(n string) bool { return strings.Contains(n, "users") }, Block: true})
}

// What one sender sends is done in its order, whatever it takes to answer a delete: who removes a key whose value is in the log alone and puts it
// again has it, and conditions see what was sent before them.
func TestWhatIsSentBehindADeleteOfALongValueIsDoneBehindIt(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), inlineLittle)
	h := d.cacheShard("users")
	version := put(t, h, "k", coldValue)
	hang := d.hungReads()
	r := asked(t, h,
		&CacheDelete{Key: "k"},
		&CacheDelete{Key: "k"},
		&CacheDeleteIf{Key: "k", Version: version},
		&CachePutIf{Key: "k", Value: []byte("over the old"), HasVersion: true, Version: version},
		&CachePutIf{Key: "k", Value: []byte("into nothing")},
		&CachePut{Key: "other", Value: []byte("behind it too")},
		&CacheDelete{Key: "k"},
		&CachePut{Key: "k", Value: []byte(coldValue + "2")},
		&CacheDelete{Key: "k"}, // of a value that is claimed, too long to be kept
		&CachePut{Key: "k", Value: []byte("last")})
	if a := r.wait(t, 10); a.Refusal != nil || a.Offset != version+7 {
		t.Fatalf("the last put: %+v, %v", a, a.Refusal)
	}
	if got := d.get(h, "k"); got != fmt.Sprintf("last@%d", version+7) {
		t.Fatalf("k is %s", got)
	}
	hang.Release()
	hang.Remove()
	for token, want := range map[shardcore.Token]Answer{
		1: {Found: true, Value: []byte(coldValue), Offset: version + 1}, 2: {NoOffset: true}, 3: {NoOffset: true}, 4: {NoOffset: true},
		5: {Applied: true, HasVersion: true, Version: version + 2, Offset: version + 2}, 6: {Offset: version + 3},
		7: {Found: true, Value: []byte("into nothing"), Offset: version + 4}, 8: {Offset: version + 5},
		9: {Found: true, Value: []byte(coldValue + "2"), Offset: version + 6},
	} {
		a := r.wait(t, token)
		if want.NoOffset {
			a.Offset = 0
		}
		if fmt.Sprint(a) != fmt.Sprint(want) {
			t.Errorf("request %d: %.200s, want %.200s", token, fmt.Sprint(a), fmt.Sprint(want))
		}
	}
}

// Deletes that wait for a sync, or for the disk to be read, keep no more of what they will answer than the node has room for, whether it was in
// memory or not: the rest is read later, and all are answered. Their messages, which may lie in memory for watches, keep nothing of it.
func TestDeletesKeepABoundedAmountOfWhatTheyAnswer(t *testing.T) {
	const room, each = 40 << 10, 40
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) {
		x.disk.InlineBytes, x.disk.RemovedBytes, x.store.SegmentBytes = 4096, room, 1<<20
	})
	h := d.cacheShard("users")
	sizes := []int{0, 100, 4000, 5000, 9000}
	value := func(i int) string { return strings.Repeat(fmt.Sprint(i%10), sizes[i%len(sizes)]) }
	for i := range each * len(sizes) {
		put(t, h, fmt.Sprint(i), value(i))
	}
	put(t, h, "huge", strings.Repeat("h", 2*room)) // more than there is for all
	held := func() int64 {
		r := &d.disks.removed
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.held
	}
	sync := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallSync}, Match: func(n string) bool { return strings.Contains(n, "users") }, Block: true})
	r, list := newReplies(), []*CacheDelete{}
	for i := range each*len(sizes) + 1 {
		m := &CacheDelete{Key: fmt.Sprint(i)}
		if i == each*len(sizes) {
			m.Key = "huge"
		}
		m.To(r, shardcore.Token(i))
		if err := h.Ref.TrySend(m, Size(m)); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	<-sync.Reached()
	counted := start(t, h, &CounterAdd{Key: "behind them", Delta: 1}) // its log hangs as well
	d.await("all are claimed", func() bool { return held() > room/2-4000 })
	if n := held(); n > room/2 {
		t.Fatalf("%d bytes are kept for deletes that wait for a sync", n)
	}
	sync.Release()
	sync.Remove()
	counted.wait(t, 1)
	for i, m := range list {
		want := value(i)
		if m.Key == "huge" {
			want = strings.Repeat("h", 2*room)
		}
		if a := r.wait(t, shardcore.Token(i)); !a.Found || string(a.Value) != want {
			t.Fatalf("delete %d: found %v, %d bytes, want %d: %v", i, a.Found, len(a.Value), len(want), a.Refusal)
		}
		if n := held(); n > max(room, int64(len(want))) && n != 2*room {
			t.Fatalf("%d bytes are kept", n)
		}
	}
	ask(t, h, &CacheDelete{Key: "no such key"}) // a turn later
	for _, m := range list {
		if m.judged.Value != nil || m.removed.value != nil {
			t.Fatalf("the message of the delete of %s keeps its value", m.Key)
		}
	}
	if n := held(); n != 0 {
		t.Fatalf("%d bytes are booked when all are answered", n)
	}
}

// A shard that ends while its deletes wait gives back what was booked for them, and others that wait get it.
func TestAShardThatEndsGivesBackTheRoomOfItsDeletes(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), inlineLittle, func(x *diskSetup) { x.disk.RemovedBytes = 1 })
	list := d.coldCaches(2)
	hang := d.hungReads()
	first := start(t, list[0], &CacheDelete{Key: "k"})
	<-hang.Reached()
	second := start(t, list[1], &CacheDelete{Key: "k"})
	waits := func(n int) func() bool {
		return func() bool {
			r := &d.disks.removed
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.waiting) == n
		}
	}
	d.await("the second waits for room", waits(1))
	a := durableCache("users01")
	d.desire(a) // the first is deleted
	if a := first.wait(t, 1); a.Refusal == nil || a.Refusal.Retry != wire.RetryOutcomeUnknown {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	d.await("the second has room", waits(0))
	hang.Release()
	hang.Remove()
	if a := second.wait(t, 1); string(a.Value) != coldValue {
		t.Fatalf("found %v, %d bytes, %v", a.Found, len(a.Value), a.Refusal)
	}
}

// A compaction removes nothing that a delete which is done has still to answer, and goes on when that was read.
func TestAValueThatADeleteAnswersIsThereUntilItIsRead(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.store.SegmentBytes = 32 << 10 })
	h := d.cacheShard("users")
	long := strings.Repeat("long", 2000)
	put(t, h, "k", long)
	for i := range 20 {
		put(t, h, fmt.Sprint("keep", i), "v")
	}
	hang := d.hungReads()
	r := start(t, h, &CacheDelete{Key: "k"})
	<-hang.Reached()
	value := strings.Repeat("v", 4000)
	d.await("what is live was copied", func() bool {
		put(t, h, "hot", value)
		moved := true
		for c := keyed.Cursor(0); !c.Done(); {
			c = h.Keyed.Index().Scan(c, nil, func(e keyed.Entry) { moved = moved && e.Offset > 21 })
		}
		return moved
	})
	for range 100 { // turns in which it could go on
		put(t, h, "hot", value)
		d.clock.Advance(flushPoll)
	}
	if oldest, _ := h.Log.Bounds(); oldest != 0 {
		t.Fatalf("the log begins at %d, and a value at 0 is still to be read", oldest)
	}
	hang.Release()
	hang.Remove()
	if a := r.wait(t, 1); string(a.Value) != long {
		t.Fatalf("found %v, %d bytes, %v", a.Found, len(a.Value), a.Refusal)
	}
	d.await("the compaction goes on", func() bool {
		put(t, h, "hot", value)
		oldest, _ := h.Log.Bounds()
		return oldest > 0
	})
}

// A delete whose value cannot be read is done, and whoever asked is told both.
func TestADeleteWhoseValueCannotBeReadIsNotSaidToHaveDoneNothing(t *testing.T) {
	mem := vfs.NewMem()
	d := newDiskWorld(t, mem, inlineLittle)
	h := d.cacheShard("users")
	put(t, h, "k", coldValue)
	rule := d.fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallRead}, Match: func(n string) bool { return strings.Contains(n, "users") }, Err: syscall.EIO})
	a := ask(t, h, &CacheDelete{Key: "k"})
	if a.Refusal == nil || a.Refusal.Code != wire.CodeStorage || a.Refusal.Retry != wire.RetryOutcomeUnknown || !strings.Contains(a.Refusal.Message, "was removed") {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	rule.Remove()
	if a := ask(t, h, &CacheDelete{Key: "k"}); a.Refusal != nil || a.Found {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
	put(t, h, "k", coldValue)
	if a := ask(t, h, &CacheDelete{Key: "k"}); string(a.Value) != coldValue {
		t.Fatalf("%+v, %v", a, a.Refusal)
	}
}

// A broker that is asked to stop answers the deletes that are done with what they removed.
func TestADeleteThatIsDoneIsAnsweredBeforeItsBrokerStops(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), inlineLittle)
	h := d.cacheShard("users")
	put(t, h, "k", coldValue)
	hang := d.hungReads()
	r := start(t, h, &CacheDelete{Key: "k"})
	<-hang.Reached()
	drained := make(chan struct{})
	if err := d.host.TrySend(&DrainAll{Done: func() { close(drained) }}, 0); err != nil {
		t.Fatal(err)
	}
	d.await("the shard takes nothing more", func() bool { return !h.Serving() })
	hang.Release()
	if a := r.wait(t, 1); string(a.Value) != coldValue {
		t.Fatalf("found %v, %d bytes, %v", a.Found, len(a.Value), a.Refusal)
	}
	<-drained
	d.stop()
}

// As many deletes of long values as come at once are done on a broker with nothing else to do.
func TestDeletesOfLongValuesAreDoneHoweverManyComeAtOnce(t *testing.T) {
	d := newDiskWorld(t, vfs.NewMem(), inlineLittle, func(x *diskSetup) { x.store.SegmentBytes = 1 << 20 })
	h := d.cacheShard("users")
	n := unlessRaced(900, 200) // of 1024 that the mailbox takes
	var puts, deletes []interface {
		Message
		To(Reply, shardcore.Token)
	}
	for i := range n {
		puts = append(puts, &CachePut{Key: fmt.Sprint(i), Value: fmt.Append(nil, coldValue, i)})
		deletes = append(deletes, &CacheDelete{Key: fmt.Sprint(i)})
	}
	r := asked(t, h, puts...)
	for i := range n {
		if a := r.wait(t, shardcore.Token(i+1)); a.Refusal != nil {
			t.Fatal(a.Refusal)
		}
	}
	r = asked(t, h, deletes...)
	for i := range n {
		if a := r.wait(t, shardcore.Token(i+1)); string(a.Value) != fmt.Sprint(coldValue, i) {
			t.Fatalf("delete %d: found %v, %d bytes, %v", i, a.Found, len(a.Value), a.Refusal)
		}
	}
}

func TestRoomIsGivenInTheOrderItIsAskedForAndNeverTwice(t *testing.T) {
	room := &removedRoom{limit: 100}
	var got []string
	share := func(name string) *roomShare {
		return &roomShare{room: room, granted: func() { got = append(got, name) }}
	}
	a, b, c := share("a"), share("b"), share("c")
	if !a.keep(30) || !a.keep(20) || a.keep(1) || !a.more(40) || a.more(11) {
		t.Fatalf("%+v", room)
	}
	if b.take(60) || c.take(5) { // the second is behind the first, though it would fit
		t.Fatalf("%+v", room)
	}
	if a.more(1) || a.keep(1) || len(got) > 0 {
		t.Fatalf("somebody is faster than who waits: %v", got)
	}
	a.give(50)
	if !slices.Equal(got, []string{"b"}) || room.held != 100 {
		t.Fatalf("%v, %+v", got, room)
	}
	b.end()
	if !slices.Equal(got, []string{"b", "c"}) || room.held != 45 || b.take(1) || b.more(1) {
		t.Fatalf("%v, %+v", got, room)
	}
	b.give(60) // what was given back with its end
	if b.take(1); room.held != 45 || len(room.waiting) != 0 {
		t.Fatalf("%+v", room)
	}
	if b := share("b"); b.take(1000) || len(room.waiting) != 1 {
		t.Fatal("a value beyond the room shares it")
	}
	a.end()
	c.end()
	if !slices.Equal(got, []string{"b", "c", "b"}) || room.held != 1000 {
		t.Fatalf("%v, %+v", got, room)
	}
}

// Bounds on what streams keep take nothing from a cache: its keys and counters live until they are deleted, or end.
func TestRetentionTakesNothingFromCachesAndCounters(t *testing.T) {
	for name, r := range map[string]route.Retention{"bytes": {Bytes: 1}, "age": {Age: time.Nanosecond}} {
		t.Run(name, func(t *testing.T) {
			d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) { x.disk.Retention, x.disk.InlineBytes = r, 1024 })
			a := durableCache("users")
			a.Retention = r
			d.desire(a)
			h := d.target(a.Name, 0, func(t Target) bool { return t.State == route.Local }).Shard
			for i := range 20 { // segments of each log
				put(t, h, fmt.Sprint("key", i), strings.Repeat("v", 4000))
				ask(t, h, &CounterAdd{Key: fmt.Sprint("key", i, strings.Repeat("k", 4000)), Delta: 1})
			}
			d.clock.Advance(24 * time.Hour)
			for _, f := range d.listed(2) {
				for f.lookAfter(uint64(d.clock.Now().UnixMicro()), d.metrics.Disk) { // as the janitor does
				}
				if base, _, tail := f.file.Bounds(); base != 0 || tail != 20 {
					t.Errorf("the log of %v begins at %d and ends at %d", f.spec.Kind, base, tail)
				}
			}
			if a := ask(t, h, &CacheDelete{Key: "key0"}); len(a.Value) != 4000 {
				t.Fatalf("%+v, %v", a, a.Refusal)
			}
		})
	}
}

// quiet waits until the shard and its disk have done all there is to do before time passes: how far a compaction comes in a second is then for its
// budget to say, and not for the machine.
func (d *diskWorld) quiet(h *Handle) {
	d.t.Helper()
	idle := func() bool {
		for _, c := range d.pool.Stats().Jobs {
			if c.Running+c.Queued > 0 {
				return false
			}
		}
		return true
	}
	for again := true; again; again = !idle() {
		d.await("the disk has nothing to do", idle)
		ask(d.t, h, &CacheDelete{Key: "no such key"}) // the shard has heard of all that was done
	}
}

// A cache and its counters are written all the time, while compactions may have little: what is live, and twice that in time, bounds their logs.
func TestALogThatIsWrittenAllTheTimeStaysInItsBounds(t *testing.T) {
	const rate, live, size = 1 << 20, 150, 900
	d := newDiskWorld(t, vfs.NewMem(), func(x *diskSetup) {
		x.disk.CompactionRate, x.store.SegmentBytes = rate, 64<<10
	})
	h := d.cacheShard("users")
	for i := range live {
		put(t, h, fmt.Sprint("keep", i), strings.Repeat("k", size))
		ask(t, h, &CounterAdd{Key: fmt.Sprint("keep", i), Delta: 1})
	}
	value := strings.Repeat("v", 2000)
	const each = 4 * time.Millisecond // 0.5 MB a second
	most := [2]int64{}
	var base [2]id.Offset
	for range unlessRaced(1600, 900) {
		put(t, h, "hot", value)
		ask(t, h, &CounterAdd{Key: "hot", Delta: 1})
		d.clock.Advance(each)
		d.quiet(h)
		for i, l := range d.listed(2) {
			most[i] = max(most[i], l.file.Size())
			base[i], _, _ = l.file.Bounds()
		}
	}
	perSecond := func(bytes int) int64 { return int64(bytes+150) * int64(time.Second/each) }
	for i, l := range d.listed(2) {
		policy, kept, written := keyed.CachePolicy(), int64(live*(size+150)+2000), perSecond(2000)
		if i == 1 {
			policy, kept, written = keyed.CounterPolicy(), live*200, perSecond(0)
		}
		during := kept + written*(2*kept)/rate + 128<<10 // copies, what comes meanwhile, and the segments at both ends
		bound := max(policy.Ratio*kept, policy.Floor, during+max(during/4, policy.Floor)) + during
		if most[i] > bound || base[i] == 0 {
			t.Errorf("the log of %v came to %d bytes, at most %d are expected; it begins at %d", l.spec.Kind, most[i], bound, base[i])
		}
	}
}
