package sessionactor

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/felixd/felixd/wire"
)

// One connection publishes, subscribes, puts and gets at the same time. Every answer goes to its request, every event to every
// subscriber, in the order of its publisher.
//
// mission 190, mission 191, mission 207
func TestOneConnectionPublishesSubscribesPutsAndGetsAtTheSameTime(t *testing.T) {
	x := open(t, setting{})
	c := x.connect(func(c *memConn) { c.chunk = 7 })
	const publishers, batches, readers, keys = 4, 60, 3, 40
	var subs []subscription
	for range readers {
		subs = append(subs, dial(t, c, today()).subscribe(c, subscribeTo("orders", wire.StartLatest)))
	}
	var all sync.WaitGroup
	for p := range publishers {
		l := dial(t, c, today())
		all.Go(func() { publishMany(l, p, batches) })
	}
	for i := range 4 {
		l := dial(t, c, today())
		all.Go(func() { putAndGet(l, i, keys) })
	}
	for _, s := range subs {
		all.Go(func() {
			got, _, _ := s.events(publishers * batches * 2)
			inOrderOfEachPublisher(t, got, publishers, batches)
		})
	}
	all.Wait()
	x.balanced()
	if n := x.metric("felix_client_connections_total"); n != 1 {
		t.Errorf("%v connections were counted", n)
	}
	if n := x.metric("felix_published_records_total"); n != publishers*batches*2 {
		t.Errorf("%v records were counted", n)
	}
	if n := x.metric("felix_event_encodes_total"); n != 0 { // mission 211, mission 223
		t.Errorf("%v event frames were encoded for readers of the common form", n)
	}
}

// publishMany sends batches of two back to back and reads the answers, which come in the order of the requests.
func publishMany(l *line, p, batches int) {
	var sent sync.WaitGroup
	sent.Go(func() {
		for i := range batches {
			l.raw(batchTo("orders", uint64(i), wire.AckPerBatch, fmt.Sprintf("%d %d a", p, i), fmt.Sprintf("%d %d b", p, i)))
		}
	})
	for i := range batches {
		if f, err := l.read(); err != nil || f.flags != wire.FlagPublishAck || f.ack.RequestID != uint64(i) || f.ack.Refusal != nil {
			l.t.Errorf("publisher %d: answer %d: flags %s, %+v, %v", p, i, f.flags, f.ack, err)
		}
	}
	sent.Wait()
}

func putAndGet(l *line, i, keys int) {
	for k := range uint64(keys) {
		key, value := fmt.Sprintf("k-%d-%d", i, k), []byte(fmt.Sprintf("v-%d", k))
		l.send(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "wide", Key: key, Value: value, RequestID: wire.Some(k)})
		if f, err := l.read(); err != nil {
			l.t.Errorf("put: %v", err)
		} else if ok, is := f.message.(*wire.CacheOK); !is || ok.RequestID != k {
			l.t.Errorf("put %d was answered %q", k, f.payload)
		}
		l.send(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "wide", Key: key, RequestID: wire.Some(k)})
		if f, err := l.read(); err != nil {
			l.t.Errorf("get: %v", err)
		} else if v, is := f.message.(*wire.CacheValue); !is || v.RequestID.V != k || string(v.Value.V) != string(value) {
			l.t.Errorf("get %d was answered %q", k, f.payload)
		}
	}
}

func inOrderOfEachPublisher(t *testing.T, got []string, publishers, batches int) {
	for p := range publishers {
		var of []string
		for i, e := range got {
			if !strings.HasPrefix(e, fmt.Sprintf("%d ", p)) {
				continue
			}
			of = append(of, e)
			// A batch is appended as a whole: its second record follows its first. mission 222
			if strings.HasSuffix(e, "a") && (i+1 == len(got) || got[i+1] != e[:len(e)-1]+"b") {
				t.Errorf("the batch of %q was torn apart", e)
			}
		}
		var want []string
		for i := range batches {
			want = append(want, fmt.Sprintf("%d %d a", p, i), fmt.Sprintf("%d %d b", p, i))
		}
		if !slices.Equal(of, want) {
			t.Errorf("publisher %d: %d events, or out of order", p, len(of))
		}
	}
}

// mission 202
func TestOneStreamServesRequestsOfAllKindsOneAfterTheOther(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	sub := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	l.publish("orders", "one")
	for _, q := range []struct {
		ask  wire.Message
		want string
	}{
		{&wire.Topology{}, `{"type":"topology_view","brokers":[{"node_id":"n1","addr":"10.0.0.1:5000"}]}`},
		{&wire.StreamShards{TenantID: tenant, Namespace: namespace, Stream: "wide", RequestID: 1}, `{"type":"stream_shards_view","shards":4,"request_id":1}`},
		{&wire.StreamShards{TenantID: tenant, Namespace: namespace, Stream: "none", RequestID: 2}, `{"type":"stream_shards_view","shards":0,"request_id":2}`},
		{&wire.CacheShards{TenantID: tenant, Namespace: namespace, Cache: "wide", RequestID: 3}, `{"type":"cache_shards_view","shards":4,"request_id":3}`},
		{&wire.CacheShards{TenantID: tenant, Namespace: namespace, Cache: "none", RequestID: 4}, `{"type":"cache_shards_view","shards":0,"request_id":4}`},
		{&wire.ShardOwners{TenantID: tenant, Namespace: namespace, Name: "orders", RequestID: 5}, `{"type":"shard_owners_view","owners":[{"shard":0,"generation":0}],"request_id":5}`},
		{&wire.ShardOwners{TenantID: tenant, Namespace: namespace, Name: "users", Kind: wire.ResourceCache, RequestID: 6}, `{"type":"shard_owners_view","owners":[{"shard":0,"generation":0}],"request_id":6}`},
		{&wire.ShardOwners{TenantID: tenant, Namespace: namespace, Name: "users", RequestID: 7}, `{"type":"shard_owners_view","owners":[],"request_id":7}`},
		{&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: []byte("v")}, `{"type":"ok"}`},
		{&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "none", Key: "k"}, `{"type":"error","message":"cache not found: t1/default/none; if it was just created, repeat the request","code":"not_found","retry":"retry_after"}`},
	} {
		if got := string(l.ask(q.ask).payload); got != q.want {
			t.Errorf("%+v was answered\n%s, want\n%s", q.ask, got, q.want)
		}
	}
	if got, _, _ := sub.events(1); got[0] != "one" {
		t.Errorf("got %q", got)
	}
}
