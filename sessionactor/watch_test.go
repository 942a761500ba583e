package sessionactor

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/route"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func TestAWatchSeesTheChangesOfItsKeysAndNoOthers(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	key, prefix, all := l.watch(c, watchOf("users", ofKey("a/1"))), l.watch(c, watchOf("users", ofPrefix("a/"))), l.watch(c, watchOf("users"))
	if key.started.ResumeOffset != 0 || key.started.Resnapshot || key.started.RetainedCount.Set {
		t.Errorf("started %+v", key.started)
	}
	l.put("users", "a/1", "x")
	l.put("users", "b", "y")
	l.put("users", "a/2", "")
	l.ask(deleteFrom("users", "a/1"))
	l.ask(deleteFrom("users", "a/1")) // there is nothing to delete: no change
	l.put("users", "a/1", "z")
	key.expect("a/1=x at 0", "a/1 gone at 3", "a/1=z at 4")
	prefix.expect("a/1=x at 0", "a/2= at 2", "a/1 gone at 3", "a/1=z at 4")
	all.expect("a/1=x at 0", "b=y at 1", "a/2= at 2", "a/1 gone at 3", "a/1=z at 4")
	if n := x.metric("felix_cache_watches"); n != 3 {
		t.Errorf("%v watches are counted", n)
	}
	if n := x.metric("felix_cache_watch_events_total"); n != 12 {
		t.Errorf("%v changes are counted", n)
	}
	key.h.CancelRead()
	eventually(t, "the watch of the key is gone", func() bool { return x.metric("felix_cache_watches") == 2 })
}

// An expiry is a change: the entry is deleted for good, and whoever watches is told.
func TestAWatchSeesWhenAnEntryEnds(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	w := l.watch(c, watchOf("users"))
	m := putTo("users", "k", "short")
	m.TTLMillis = wire.Some(uint64(1))
	l.ask(m)
	if e := w.change(); said(e) != "k=short at 0" || e.ExpiresAtMillis == 0 {
		t.Errorf("got %+v", e)
	}
	w.expect("k gone at 1")
}

// matrix G25
func TestARetainedWatchOfNothingIsToldThatThereIsNothing(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	l.put("users", "a", "x")
	for _, m := range []*wire.CacheWatch{watchOf("users", ofPrefix("b"), retained), watchOf("users", ofKey("b"), retained)} {
		f := l.ask(m)
		started, _ := f.message.(*wire.CacheWatchStarted)
		text := fmt.Sprintf(`{"type":"cache_watch_started","subscription_id":%d,"resume_offset":1,"resnapshot":false,"retained_count":0}`, started.SubscriptionID)
		if string(f.payload) != text {
			t.Errorf("answered %s, want %s", f.payload, text)
		}
		want(t, c.toClient, "the event stream")
	}
}

// Current values come in the order of their versions, exactly as many as were announced, short and long ones; then the changes.
func TestARetainedWatchBeginsWithCurrentValuesByVersion(t *testing.T) {
	d := newSiteDisk()
	d.inline = 16
	long := strings.Repeat("v", 100)
	for life := range 2 {
		x := d.caching(t, setting{})
		c := x.connect()
		l := dial(t, c, today())
		if life == 0 {
			l.put("users", "z", "old")
			l.put("users", "y", long)
			l.put("users", "x", "gone")
			l.put("users", "z", "new")
			l.ask(deleteFrom("users", "x"))
			l.put("users", "a", "")
		}
		w := l.watch(c, watchOf("users", retained))
		if w.started.RetainedCount != wire.Some(uint64(3)) || w.started.ResumeOffset != id.Offset(6+2*life) {
			t.Errorf("life %d: started %+v", life, w.started)
		}
		w.expect("y="+long+" at 1", "z=new at 3", "a= at 5")
		key := l.watch(c, watchOf("users", ofKey("y"), retained))
		key.expect("y=" + long + " at 1")
		l.put("users", "b", "live")
		w.expect(fmt.Sprintf("b=live at %d", 6+2*life))
		l.ask(deleteFrom("users", "b"))
		if n := x.metric("felix_cache_watch_retained_values_total"); n != 4 {
			t.Errorf("%v values are counted", n)
		}
		// It is, a moment after the last of them has left.
		eventually(t, "what was held of current values is given back", func() bool { return x.opts.NodeSnapshots.Held() == 0 })
		x.close()
	}
}

func TestAWatchGoesOnWhereAnotherEnded(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	for i := range 5 {
		l.put("users", fmt.Sprint(i%2), fmt.Sprint(i))
	}
	w := l.watch(c, watchOf("users", ofKey("1"), since(2)))
	if w.started.ResumeOffset != 5 || w.started.Resnapshot {
		t.Errorf("started %+v", w.started)
	}
	w.expect("1=3 at 3")
	l.put("users", "1", "live")
	w.expect("1=live at 5")
	if f := l.ask(watchOf("users", since(7))); string(f.payload) != `{"type":"subscribe_cursor_error","reason":"in_future","requested":7,"available":6}` {
		t.Errorf("answered %s", f.payload)
	}
	l.watch(c, watchOf("users", since(6)))
}

// Whatever is put while a watch begins is among its current values or its changes, once, or was overwritten by what is.
//
// matrix G24
func TestAPutThatMeetsTheBeginningOfAWatchIsDeliveredOnce(t *testing.T) {
	d := newSiteDisk()
	d.inline = 4
	x := d.caching(t, setting{})
	var writers sync.WaitGroup
	const each = 150
	for n := range 3 {
		l := dial(t, x.connect(), today())
		writers.Go(func() {
			for i := range each {
				l.put("users", fmt.Sprint(n, i%7), fmt.Sprintf("%06d", i))
			}
		})
	}
	c := x.connect()
	l := dial(t, c, today())
	for range 20 {
		w := l.watch(c, watchOf("users", retained))
		last := id.Offset(0)
		for i := range w.started.RetainedCount.V {
			e := w.change()
			if !e.Value.Set || e.Offset >= w.started.ResumeOffset || i > 0 && e.Offset <= last {
				t.Fatalf("value %s of those below %d, after one at %d", said(e), w.started.ResumeOffset, last)
			}
			last = e.Offset
		}
		for next := w.started.ResumeOffset; next < 3*each && next < w.started.ResumeOffset+10; next++ {
			if e := w.change(); e.Offset != next {
				t.Fatalf("change %s, want one at %d", said(e), next)
			}
		}
		w.h.CancelRead()
	}
	writers.Wait()
}

// Compaction appends copies and removes what they were copied from. Whoever asks for changes that went with it gets current values, and no
// watch sees a copy as a change.
//
// matrix G22
func TestAWatchOfChangesThatCompactionRemovedBeginsWithCurrentValues(t *testing.T) {
	d := newSiteDisk()
	d.inline = 64
	x := d.caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	l.put("users", "keep", strings.Repeat("k", 200))
	l.put("users", "short", "s")
	watcher := dial(t, c, today()).watch(c, watchOf("users", ofPrefix("keep")))
	filler := strings.Repeat("f", 30<<10)
	log := x.cacheShard(t, "users", 0).Log
	n := 0
	for oldest := id.Offset(0); oldest == 0; oldest, _ = log.Bounds() {
		if n++; n > 4000 {
			t.Fatal("nothing was ever compacted")
		}
		l.put("users", "filler", filler)
	}
	w := l.watch(c, watchOf("users", ofPrefix(""), since(0)))
	if !w.started.Resnapshot || w.started.RetainedCount.Set {
		t.Errorf("started %+v", w.started)
	}
	w.expect("keep="+strings.Repeat("k", 200)+" at 0", "short=s at 1")
	if e := w.change(); e.Key != "filler" || e.Offset >= w.started.ResumeOffset {
		t.Errorf("got %s", e.Key)
	}
	l.put("users", "keep", "after")
	if e := w.change(); e.Key != "keep" || string(e.Value.V) != "after" {
		t.Errorf("got %.60s, want the one change that was made since", said(e))
	}
	if e := watcher.change(); string(e.Value.V) != "after" {
		t.Errorf("a watch that was there all the while got %.60s", said(e))
	}
	if x.metric("felix_cache_watch_resnapshots_total") != 1 {
		t.Error("the resnapshot is not counted")
	}
	l.put("users", "after", "x")
	if m, ok := l.ask(getFrom("users", "short")).message.(*wire.CacheValue); !ok || m.Version != wire.Some(uint64(1)) {
		t.Errorf("after the compaction: %+v", m)
	}
}

func TestWhatNoWatchCanBeIsRefusedByName(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	both := watchOf("users")
	both.Key = wire.Some("k")
	neither := watchOf("users")
	neither.Prefix = wire.Opt[string]{}
	shard := watchOf("wide")
	shard.Shard = wire.Some(uint32(4))
	for name, q := range map[string]struct {
		ask    *wire.CacheWatch
		code   wire.Code
		reason string
	}{
		"key and prefix":         {both, wire.CodeInvalidRequest, ""},
		"neither":                {neither, wire.CodeInvalidRequest, ""},
		"retained and an offset": {watchOf("users", retained, since(0)), wire.CodeInvalidRequest, ""},
		"no shard of several":    {watchOf("wide"), wire.CodeInvalidRequest, ""},
		"a shard too many":       {shard, wire.CodeInvalidRequest, ""},
		"in memory":              {watchOf("temp"), wire.CodeInvalidRequest, "in_memory"},
		"unknown":                {watchOf("none"), wire.CodeNotFound, ""},
	} {
		if r := refused(t, l.ask(q.ask)); r.Code != q.code || r.Reason != q.reason {
			t.Errorf("%s was answered %+v", name, r)
		}
	}
	// A key is in the shard that it hashes to, whatever the request says.
	w := dial(t, c, today()).watch(c, watchOf("wide", ofKey("k"), func(m *wire.CacheWatch) { m.Shard = wire.Some(uint32(99)) }))
	l.put("wide", "k", "v")
	if e := w.change(); e.Key != "k" {
		t.Errorf("got %s", said(e))
	}
	// Each shard of a prefix shows its own keys.
	seen := map[string]bool{}
	for n := range uint32(4) {
		s := l.watch(c, watchOf("wide", retained, func(m *wire.CacheWatch) { m.Shard = wire.Some(n) }))
		for range s.started.RetainedCount.V {
			seen[s.change().Key] = true
		}
	}
	if !seen["k"] || len(seen) != 1 {
		t.Errorf("the shards showed %v", seen)
	}
}

// Watches count with subscriptions in what one principal may have on a connection.
func TestWatchesAndSubscriptionsShareOneLimit(t *testing.T) {
	x := newSiteDisk().caching(t, setting{change: func(o *Options) { o.Delivery.PerIdentity = 2 }})
	c := x.connect()
	l := dial(t, c, today())
	l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	w := l.watch(c, watchOf("users"))
	for _, m := range []wire.Message{watchOf("users"), subscribeTo("orders", wire.StartLatest)} {
		if r := refused(t, l.ask(m)); r.Code != wire.CodeLimitExceeded {
			t.Errorf("%s was answered %+v", m.MessageType(), r)
		}
	}
	w.h.CancelRead()
	eventually(t, "the watch is gone", func() bool { return x.metric("felix_cache_watches") == 0 })
	eventually(t, "there is room for another", func() bool {
		_, ok := l.ask(watchOf("users")).message.(*wire.CacheWatchStarted)
		return ok
	})
}

// What ends a shard ends its watches, which are told where to resume if they can be.
func TestAWatchIsToldWhereToResumeWhenItsShardGoesAway(t *testing.T) {
	plain := today()
	plain.ClientFeatures.V &^= wire.FeatureShardMoved
	for name, auth := range map[string]*wire.Auth{"told": today(), "not": plain} {
		x := newSiteDisk().caching(t, setting{})
		c := x.connect()
		l := dial(t, c, auth)
		w := l.watch(c, watchOf("users"))
		l.put("users", "k", "v")
		w.expect("k=v at 0")
		x.sabotage.panicNext("users/0")
		l.ask(putTo("users", "k", "lost"))
		if name == "told" {
			if m, ok := w.next().message.(*wire.ShardMoved); !ok || m.ResumeFrom != wire.Some(id.Offset(1)) || m.SubscriptionID != w.started.SubscriptionID {
				t.Errorf("the last frame is %+v", m)
			}
		}
		w.over()
		eventually(t, "it goes on where it was", func() bool {
			_, ok := l.ask(watchOf("users", since(1))).message.(*wire.CacheWatchStarted)
			return ok
		})
	}
}

// As subscriptions do, a watch of a deleted cache just ends.
func TestAWatchOfADeletedCacheEnds(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	w := l.watch(c, watchOf("users"))
	x.desire(stream("orders", 1), cache("temp", 1))
	w.over()
	if r := refused(t, l.ask(watchOf("users"))); r.Code != wire.CodeNotFound {
		t.Errorf("answered %+v", r)
	}
}

// meddled is a log in which something happens whenever a reader has just taken its place.
type meddled struct {
	storage.Reader
	then func()
}

func (m meddled) Register(o storage.CursorOptions) (storage.Cursor, error) {
	c, err := m.Reader.Register(o)
	m.then()
	return c, err
}

// meddle changes what sessions see of the first shard of a cache.
func (x *site) meddle(name string, change func(h *shardactor.Handle)) {
	e := x.opts.Table.Get(cache(name, 1).Name)
	targets := slices.Clone(e.Shards())
	h := *targets[0].Shard
	change(&h)
	targets[0].Shard = &h
	x.opts.Table.Update([]*shardactor.Entry{route.NewEntry(e.Name, e.Incarnation, e.Routing, true, targets)}, nil)
}

// What is put after a watch has its place in the log and before it looks at what there is, is a change, and no current value.
//
// matrix G24
func TestAPutBehindThePlaceOfAWatchIsAChangeAndNoValue(t *testing.T) {
	x := newSiteDisk().caching(t, setting{})
	writer := dial(t, x.connect(), today())
	writer.put("users", "k", "old")
	writer.put("users", "j", "stays")
	once := sync.OnceFunc(func() {
		writer.put("users", "k", "new")
		writer.put("users", "l", "more")
	})
	x.meddle("users", func(h *shardactor.Handle) { h.Log = meddled{h.Log, once} })
	c := x.connect()
	w := dial(t, c, today()).watch(c, watchOf("users", retained))
	if w.started.ResumeOffset != 2 || w.started.RetainedCount != wire.Some(uint64(1)) {
		t.Errorf("started %+v", w.started)
	}
	w.expect("j=stays at 1", "k=new at 2", "l=more at 3")
	writer.put("users", "k", "on")
	w.expect("k=on at 4")
}
