package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func TestWatchPrintsEachChangeAsAnObject(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	_, wait := c.start("cache", "watch", "c", "--prefix", "a", "--count", "3")
	c.stderr.await(t, "watching default/c (1 shard)")
	b.CachePut("default/c", 0, "a1", "text")
	b.CachePut("default/c", 0, "b", "somebody else's")
	b.CachePut("default/c", 0, "a2", "\xff")
	b.CacheDelete("default/c", 0, "a1")
	if code := wait(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	wantText(t, c.stdout.String(), `{"namespace":"default","cache":"c","shard":0,"event":"put","key":"a1","value":"text","offset":0}`+"\n"+
		`{"namespace":"default","cache":"c","shard":0,"event":"put","key":"a2","value_base64":"/w==","offset":2}`+"\n"+
		`{"namespace":"default","cache":"c","shard":0,"event":"delete","key":"a1","offset":3}`+"\n")
	wantContains(t, c.stderr.String(), "to go on from here: --from 0=4\n")
}

func TestWatchBeginsWithWhatIsThereAndGoesOnWhereAnotherEnded(t *testing.T) {
	b := newBroker(t)
	b.CachePut("default/c", 0, "a", "1")
	b.CachePut("default/c", 0, "a", "2")
	b.CachePut("default/c", 0, "b", "3")
	c := newCLI(t).at(b, "").onTerminal()
	wantText(t, c.run(exitOK, "cache", "watch", "c", "--retained", "--count", "2"), "shard 0: 2 current values follow\n0/1        current  a = 2\n0/2        current  b = 3\n")
	want := "0/1        put      a = 2\n"
	for _, args := range [][]string{{"--from", "1"}, {"--from", "0=1"}, {"--from", "1", "--shard", "0"}, {"--from", "1", "--key", "a"}} {
		wantText(t, c.run(exitOK, append([]string{"cache", "watch", "c", "--count", "1"}, args...)...), want)
	}
	c.run(exitRefused, "cache", "watch", "c", "--from", "4")
	wantContains(t, c.stderr.String(), "past the end, which is at 3")
}

func TestWatchOfAllShardsNeedsAnOffsetForEach(t *testing.T) {
	b := newBroker(t)
	for shard := range uint32(2) {
		for i := range 3 {
			b.CachePut("default/wide", shard, fmt.Sprintf("k%d", i), "v")
		}
	}
	c := newCLI(t).at(b, "")
	c.run(exitUsage, "cache", "watch", "wide", "--from", "1")
	wantContains(t, c.stderr.String(), "cache default/wide has 2 shards, each with offsets of its own; use --from SHARD=OFFSET")
	for _, from := range [][]string{{"--from", "0=2,1=1"}, {"--from", "0=2", "--from", "1=1"}} {
		out := c.run(exitOK, append([]string{"cache", "watch", "wide", "--count", "3"}, from...)...)
		if n := strings.Count(out, `"shard":0`); n != 1 || strings.Count(out, "\n") != 3 {
			t.Errorf("%v: %s", from, out)
		}
	}
	wantContains(t, c.run(exitOK, "cache", "watch", "wide", "--count", "1", "--shard", "1", "--from", "2"), `"shard":1`, `"offset":2`)
	for _, wrong := range [][]string{{"--from", "2=0"}, {"--from", "0=0", "--shard", "1"}} {
		c.run(exitUsage, append([]string{"cache", "watch", "wide"}, wrong...)...)
	}
	wantContains(t, c.stderr.String(), "From has an offset for shard 2", "From has no offset for shard 1")
	shard := wire.RoutingModulo.Shard([]byte("k1"), true, 2)
	wantContains(t, c.run(exitOK, "cache", "watch", "wide", "--count", "1", "--key", "k1", "--from", "1"), fmt.Sprintf(`"shard":%d`, shard), `"key":"k1"`)
}

func TestWatchTellsThatItWasInterruptedAndPrintsNothingTwice(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, "")
	_, wait := c.start("cache", "watch", "c", "--count", "2")
	c.stderr.await(t, "watching")
	b.CachePut("default/c", 0, "a", "1")
	c.stdout.await(t, `"offset":0`)
	b.Drop(transport.CloseOverload)
	c.stdout.await(t, `"event":"shard_recovered","exact":true`)
	b.CachePut("default/c", 0, "a", "2")
	if code := wait(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	out := c.stdout.String()
	wantContains(t, out, `"event":"shard_lost"`, `"error":"`, `"value":"2","offset":1`)
	if strings.Count(out, `"event":"put"`) != 2 {
		t.Errorf("printed %s", out)
	}
}

func TestWatchShowsThatHistoryIsGone(t *testing.T) {
	b := newBroker(t)
	b.CachePut("default/c", 0, "a", "1")
	b.CachePut("default/c", 0, "a", "2")
	b.CacheCompact("default/c", 0)
	c := newCLI(t).at(b, "")
	out := c.run(exitOK, "cache", "watch", "c", "--from", "0", "--count", "1")
	wantContains(t, out, `"event":"snapshot","resnapshot":true,"count":1}`, `"event":"current","key":"a","value":"2","offset":1,"resnapshot":true`)
	wantContains(t, c.onTerminal().run(exitOK, "cache", "watch", "c", "--from", "0", "--count", "1"), "shard 0: changes are missing: 1 current value follows, other keys have none\n")
}

func TestInterruptedWatchIsASuccess(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "")
	stop, _ := c.start("cache", "watch", "c")
	c.stderr.await(t, "watching")
	if code := stop(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, c.stderr)
	}
	wantContains(t, c.stderr.String(), "to go on from here: --from 0=0")
}

func TestWatchesThatCannotBeAreRefused(t *testing.T) {
	c := newCLI(t).at(newBroker(t), "")
	c.run(exitNotFound, "cache", "watch", "nosuch")
	for _, wrong := range [][]string{
		{"--count", "-1"}, {"--shard", "x"}, {"--key", "k", "--prefix", "p"}, {"--key", "k", "--shard", "0"}, {"--from", "x"}, {"--from", "-1"}, {"--from", "0=1,0=2"},
		{"--from", "1,2"}, {"--from", "0=1,2"}, {"--from", "1", "--retained"}, {"--from", "=1"}, {"--from", "99999999999=1"},
	} {
		c.run(exitUsage, append([]string{"cache", "watch", "c"}, wrong...)...)
	}
	memory := testbroker.New(t, testbroker.Options{Caches: map[string]uint32{"default/c": 1}, Features: testbroker.DefaultFeatures | testbroker.DurableFeatures})
	c = newCLI(t).at(memory, "")
	c.run(exitRefused, "cache", "watch", "c")
	c.run(exitRefused, "counter", "get", "c", "k")
}

func TestEveryItemHasItsLineAndItsText(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 500e6, time.UTC)
	lost := errors.New("the broker went away")
	for _, c := range []struct {
		item       client.CacheItem
		line, text string
	}{
		{client.CacheItem{Change: client.CacheChange{Shard: 3, Key: "k\x1b", Value: []byte("\a"), Offset: id.Offset(12), ExpiresAt: at}},
			`{"namespace":"n","cache":"c","shard":3,"event":"put","key":"k\u001b","value":"\u0007","offset":12,"expires_at":"2026-01-31T12:00:00.5Z"}`,
			`3/12       put      k\x1b = \a  (until ` + at.Local().Format(time.RFC3339) + ")"},
		{client.CacheItem{Change: client.CacheChange{Key: "", Deleted: true, Offset: 1}},
			`{"namespace":"n","cache":"c","shard":0,"event":"delete","key":"","offset":1}`, "0/1        delete   "},
		{client.CacheItem{Kind: client.ItemSnapshot, Shard: 1, Count: 1, Counted: true},
			`{"namespace":"n","cache":"c","shard":1,"event":"snapshot","count":1}`, "shard 1: 1 current value follows"},
		{client.CacheItem{Kind: client.ItemSnapshot, Shard: 1, Counted: true, Resnapshot: true},
			`{"namespace":"n","cache":"c","shard":1,"event":"snapshot","resnapshot":true,"count":0}`,
			"shard 1: changes are missing: 0 current values follow, other keys have none"},
		{client.CacheItem{Kind: client.ItemSnapshotEnd, Shard: 1},
			`{"namespace":"n","cache":"c","shard":1,"event":"snapshot_end"}`, "shard 1: those were all values, changes follow"},
		{client.CacheItem{Kind: client.ItemShardLost, Shard: 1, Err: lost},
			`{"namespace":"n","cache":"c","shard":1,"event":"shard_lost","error":"the broker went away"}`,
			"shard 1: interrupted, about to go on: the broker went away"},
		{client.CacheItem{Kind: client.ItemShardLost, Shard: 1, Err: io.EOF},
			`{"namespace":"n","cache":"c","shard":1,"event":"shard_lost","error":"the broker ended the watch, as when the cache is deleted"}`,
			"shard 1: interrupted, about to go on: the broker ended the watch, as when the cache is deleted"},
		{client.CacheItem{Kind: client.ItemShardMoved, Shard: 1, Err: lost},
			`{"namespace":"n","cache":"c","shard":1,"event":"shard_moved","error":"the broker went away"}`,
			"shard 1: moved, about to follow: the broker went away"},
		{client.CacheItem{Kind: client.ItemShardRecovered, Shard: 1, Exact: true},
			`{"namespace":"n","cache":"c","shard":1,"event":"shard_recovered","exact":true}`, "shard 1: goes on, nothing is missing"},
		{client.CacheItem{Kind: client.ItemShardRecovered, Shard: 1},
			`{"namespace":"n","cache":"c","shard":1,"event":"shard_recovered","exact":false}`,
			"shard 1: goes on with a snapshot, changes are missing"},
		{client.CacheItem{Kind: client.ItemShardEnded, Shard: 1},
			`{"namespace":"n","cache":"c","shard":1,"event":"shard_ended"}`, "shard 1: ended"},
		{client.CacheItem{Kind: client.ItemShardEnded, Shard: 1, Err: lost},
			`{"namespace":"n","cache":"c","shard":1,"event":"shard_ended","error":"the broker went away"}`,
			"shard 1: ended: the broker went away"},
	} {
		cli := newCLI(t)
		a := &app{sys: cli.sys}
		if err := a.printItem("n", "c", c.item); err != nil {
			t.Fatal(err)
		}
		wantText(t, cli.stdout.String(), c.line+"\n")
		wantText(t, watchText(c.item), c.text)
	}
}

func TestNamesOfCachesAreCompleted(t *testing.T) {
	b := newBroker(t)
	c := newCLI(t).at(b, newControlPlane(t, b).URL)
	for _, name := range []string{"c1", "c2"} {
		c.run(exitOK, "cache", "create", name)
	}
	for _, command := range [][]string{{"cache", "watch"}, {"cache", "get"}, {"counter", "add"}, {"counter", "get"}, {"bench", "cache"}} {
		wantContains(t, c.run(exitOK, append(append([]string{"__complete"}, command...), "")...), "c1\nc2\n")
	}
	wantContains(t, c.run(exitOK, "__complete", "cache", "watch", "c1", "--shard", ""), "all\n")
	for _, flag := range []string{"in-memory", "durable"} {
		wantContains(t, c.run(exitOK, "__complete", "bench", "cache", "c1", "--"+flag, ""), "c1\nc2\n")
	}
}
