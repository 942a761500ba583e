package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// One broker, two streams, two promises: of the durable one every record is there after a restart, from any offset on; of the ephemeral one the
// publish is acknowledged, the reader who is there gets it, and nothing is left.
//
// mission 363, mission 364, mission 365
func TestGuaranteesAreChosenPerStream(t *testing.T) {
	const records = 24
	r := start(t, t.TempDir(), "--durable-segment-bytes", "4096")
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	c := r.connect(t)
	sub, err := c.Subscribe(t.Context(), devNamespace, devStreams[0], client.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(i int) string { return fmt.Sprint(i, " ", strings.Repeat("x", 500)) }
	for i := range records {
		if at, err := c.Publish(t.Context(), devNamespace, "kept", []byte(text(i))); err != nil || !at.HasOffset || int(at.Offset) != i {
			t.Fatalf("record %d of the durable stream is at %+v, %v", i, at, err)
		}
		if at, err := c.Publish(t.Context(), devNamespace, devStreams[0], []byte(text(i))); err != nil || at.HasOffset {
			t.Fatalf("record %d of the ephemeral stream is at %+v, %v", i, at, err)
		}
		if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != text(i) {
			t.Fatalf("received %.20q, %v", e.Payload, err)
		}
	}
	stopped(t, r, c)
	if n := len(segments(t, r.dir, "kept")); n < 3 {
		t.Fatalf("the log has %d files", n)
	}

	r = start(t, r.dir)
	c = r.connect(t)
	for from := range records {
		next := from
		for record, err := range c.ReadRange(t.Context(), devNamespace, "kept", client.ReadOptions{From: id.Offset(from)}) {
			if err != nil || int(record.Offset) != next || string(record.Payload) != text(next) {
				t.Fatalf("from %d on: %.20q at %d, %v, want record %d", from, record.Payload, record.Offset, err, next)
			}
			next++
		}
		if next != records {
			t.Errorf("from %d on there are %d records", from, next-from)
		}
	}
	sub, err = c.Subscribe(t.Context(), devNamespace, devStreams[0], client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), devNamespace, devStreams[0], []byte("after")); err != nil {
		t.Fatal(err)
	}
	if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != "after" {
		t.Errorf("the ephemeral stream begins with %.20q, %v", e.Payload, err)
	}
	stopped(t, r, c)
}

// A reader of an ephemeral stream that falls behind its window misses records, which is counted; who publishes is not held up.
//
// mission 364
func TestAReaderOfAnEphemeralStreamThatFallsBehindMissesRecords(t *testing.T) {
	r := start(t, t.TempDir(), "--subscriber-queue-capacity", "2")
	defer r.stop(t)
	c := r.connect(t)
	defer closeClient(c)
	reader, err := client.Connect(t.Context(), client.Options{
		Addrs: []string{r.dev.ClientAddr}, TenantID: r.dev.TenantID, Token: r.dev.ClientToken, CAFile: r.dev.CAFile,
		EventConnRecvWindow: 64 << 10, EventStreamRecvWindow: 64 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(reader)
	sub, err := reader.Subscribe(t.Context(), devNamespace, devStreams[0], client.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	const dropped = "felix_subscribe_dropped_total"
	payload := []byte(strings.Repeat("x", 256<<10))
	published := 0
	for deadline := time.Now().Add(patience); metricOf(t, r, dropped) == 0; published++ {
		if _, err := c.Publish(t.Context(), devNamespace, devStreams[0], payload); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is dropped after %d records", published)
		}
	}
}

// metricOf is the sum of a metric over its labels; 0 if it is not there.
func metricOf(t *testing.T, r *running, name string) (sum float64) {
	t.Helper()
	_, page := r.get(t, r.dev.HTTP+"/metrics")
	for _, line := range strings.Split(page, "\n") {
		var value float64
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value); err != nil {
				t.Fatal(err)
			}
			sum += value
		}
	}
	return sum
}

// mission 73
func TestEachKeyHasOneShardAndEachShardOneOwner(t *testing.T) {
	const shards = 4
	r := start(t, t.TempDir())
	defer r.stop(t)
	r.must(t, "POST", devStreamsPath, fmt.Sprintf(`{"stream":"wide","shards":%d,"durable":true}`, shards))
	c := r.connect(t)
	defer closeClient(c)
	owners, err := c.ShardOwners(t.Context(), wire.ResourceStream, devNamespace, "wide")
	if err != nil || len(owners) != shards {
		t.Fatalf("owners %+v, %v", owners, err)
	}
	for i, o := range owners {
		if int(o.Shard) != i || o.Unavailable != "" {
			t.Errorf("owner %d is %+v", i, o)
		}
	}
	about, err := c.StreamShards(t.Context(), devNamespace, "wide")
	if err != nil || about.Count != shards {
		t.Fatalf("%+v, %v", about, err)
	}
	want := make([][]string, shards)
	for i := range 16 {
		key := fmt.Sprint("key-", i)
		shard := about.Routing.Shard([]byte(key), true, shards)
		for range 2 {
			want[shard] = append(want[shard], key)
			if _, err := c.Publish(t.Context(), devNamespace, "wide", []byte(key), client.WithKey([]byte(key))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for shard := range uint32(shards) {
		var got []string
		for record, err := range c.ReadRange(t.Context(), devNamespace, "wide", client.ReadOptions{Shard: shard}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(record.Payload))
		}
		if !slices.Equal(got, want[shard]) || len(got) == 0 {
			t.Errorf("shard %d has %q, want %q", shard, got, want[shard])
		}
	}
}

// There is no API, and nobody follows the catalog any more: what is hosted is served on, to new connections too.
//
// mission 319
func TestClientsAreServedWhileTheControlPlaneIsGone(t *testing.T) {
	before := start(t, t.TempDir())
	before.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	publishOnce(t, before, "kept", "before")
	if code := before.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, before.err)
	}

	config := DefaultConfig()
	config.DataDir, config.Listen, config.HTTP, config.Limits.AckWait = before.dir, "127.0.0.1:0", "127.0.0.1:0", patience
	d := &daemon{config: config, logger: quiet(), stdout: io.Discard, began: time.Now(), signals: make(chan os.Signal), failed: make(chan error, 2), applied: make(chan uint64, 1)}
	defer d.close()
	present, goes := context.WithCancel(t.Context())
	defer goes()
	for _, step := range []func(context.Context) error{d.openData, d.startHealth, d.startCatalog, d.openStorage, d.startNode, d.startClients} {
		if err := step(present); err != nil {
			t.Fatal(err)
		}
	}
	d.ended = d.node.Failed(t.Context())
	if over, err := d.awaitShards(); over || err != nil {
		t.Fatal(err)
	}
	if err := d.becomeReady(); err != nil {
		t.Fatal(err)
	}
	goes()

	r := &running{dev: d.dev}
	c := r.connect(t)
	defer closeClient(c)
	for _, stream := range []string{"kept", devStreams[0]} {
		sub, err := c.Subscribe(t.Context(), devNamespace, stream, client.SubscribeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Publish(t.Context(), devNamespace, stream, []byte("now")); err != nil {
			t.Fatal(err)
		}
		if e, err := sub.Next(t.Context()); err != nil || string(e.Payload) != "now" {
			t.Errorf("%s: received %q, %v", stream, e.Payload, err)
		}
	}
	if got := records(t, c, "kept", 2); got[0] != "before" || got[1] != "now" {
		t.Errorf("read %q", got)
	}
	putOnce(t, c, "users", "alice", "42")
	holds(t, c, "users", "alice", "42")
	if list := polled(t, c, "kept", 2); string(list[1].Payload) != "now" {
		t.Errorf("polled %q", list[1].Payload)
	}
	if _, err := c.Publish(t.Context(), devNamespace, "nobody-made-it", []byte("x")); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a stream that there is not: %v", err)
	}
}
