package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire/id"
)

// broker starts a broker for an example, and says how to reach it. A program names its own: Addrs, TenantID, Token and the
// CAFile of its cluster, or client.OptionsFromEnv.
func broker() (o client.Options, stop func()) {
	b, err := testbroker.Start(testbroker.Options{
		Streams: map[string]uint32{"shop/orders": 4, "shop/audit": 1}, Caches: map[string]uint32{"shop/sessions": 1}, Durable: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	o = client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM}
	return o, func() { _ = b.Stop() }
}

// connect is what every program begins with. One client per process is the intended number.
func connect(ctx context.Context) (c *client.Client, done func()) {
	o, stop := broker()
	c, err := client.Connect(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		if err := c.Close(ctx); err != nil { // flushes
			log.Print(err)
		}
		stop()
	}
}

func ExampleClient_Publish() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	result, err := c.Publish(ctx, "shop", "audit", []byte("door opened"))
	switch {
	case errors.Is(err, client.ErrOutcomeUnknown):
		fmt.Println("it may have been written; publish again only what may be there twice")
	case err != nil:
		fmt.Println("it was not written:", err)
	default:
		fmt.Println("written at offset", result.Offset)
	}
	// Output: written at offset 0
}

// Records of one key go to one shard and keep their order.
func ExampleWithKey() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	customer := client.WithKey([]byte("customer-42"))
	for _, step := range []string{"created", "paid", "shipped"} {
		result, err := c.Publish(ctx, "shop", "orders", []byte(step), customer)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(step, "at", result.Offset)
	}
	// Output:
	// created at 0
	// paid at 1
	// shipped at 2
}

// Many publishes may be under way at once. PublishAsync waits only for room.
func ExampleClient_PublishAsync() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	var under []*client.PendingPublish
	for i := range 1000 {
		p, err := c.PublishAsync(ctx, "shop", "audit", fmt.Append(nil, i))
		if err != nil {
			log.Fatal(err)
		}
		under = append(under, p)
	}
	for _, p := range under {
		if _, err := p.Wait(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("all written")
	// Output: all written
}

// A Batcher collects records that many goroutines add into few publishes.
func ExampleClient_NewBatcher() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	batcher, err := c.NewBatcher("shop", "orders", client.BatcherOptions{Linger: 2 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 10_000 {
		customer := fmt.Appendf(nil, "customer-%d", i%100)
		if _, err := batcher.AddKeyed(ctx, customer, []byte("clicked")); err != nil { // waits when there is no room
			log.Fatal(err)
		}
	}
	if err := batcher.Close(ctx); err != nil { // flushes, and tells how many records failed
		log.Fatal(err)
	}
	s := c.Stats()
	fmt.Println(s.PublishRecords, "records, in fewer publishes:", s.PublishBatches < s.PublishRecords)
	// Output: 10000 records, in fewer publishes: true
}

func ExampleClient_Subscribe() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	for _, line := range []string{"door opened", "door closed"} {
		if _, err := c.Publish(ctx, "shop", "audit", []byte(line)); err != nil {
			log.Fatal(err)
		}
	}
	s, err := c.Subscribe(ctx, "shop", "audit", client.SubscribeOptions{From: client.Earliest()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for event, err := range s.Events(ctx) { // until the subscription or ctx ends
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", event.Offset, event.Payload)
		if event.Offset == 1 {
			break
		}
	}
	// Output:
	// 0: door opened
	// 1: door closed
}

// The client goes on by itself after lost connections, restarts and moves. What it cannot know is what the program has dealt
// with before it was itself restarted: that is for the program to keep, with its results.
func ExampleClient_SubscribeAll() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	positions := map[uint32]id.Offset{} // kept where the results go
	run := func(upTo int) {
		m, err := c.SubscribeAll(ctx, "shop", "orders", client.SubscribeAllOptions{From: client.Earliest(), Positions: positions})
		if err != nil {
			log.Fatal(err)
		}
		defer m.Close()
		for range upTo {
			item, err := m.NextItem(ctx)
			if err != nil {
				log.Fatal(err)
			}
			switch item.Kind {
			case client.ItemEvent:
				fmt.Printf("%s\n", item.Event.Payload)
				positions = m.Positions()
			case client.ItemShardLost, client.ItemShardMoved: // the client is about to go on
				log.Printf("shard %d: %v", item.Shard, item.Err)
			case client.ItemShardRecovered:
				log.Printf("shard %d is back, nothing is missing: %v", item.Shard, item.Exact)
			case client.ItemShardEnded:
				log.Printf("shard %d ended: %v", item.Shard, item.Err)
			}
		}
	}
	key := client.WithKey([]byte("customer-42"))
	for i := range 4 {
		if _, err := c.Publish(ctx, "shop", "orders", fmt.Appendf(nil, "order %d", i), key); err != nil {
			log.Fatal(err)
		}
	}
	run(2)
	fmt.Println("restart")
	run(2)
	// Output:
	// order 0
	// order 1
	// restart
	// order 2
	// order 3
}

func ExampleClient_CachePut() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	if err := c.CachePut(ctx, "shop", "sessions", "alice", []byte("cart of three"), time.Hour); err != nil {
		log.Fatal(err)
	}
	value, found, err := c.CacheGet(ctx, "shop", "sessions", "alice")
	fmt.Printf("%s %v %v\n", value, found, err)
	_, found, err = c.CacheGet(ctx, "shop", "sessions", "bob")
	fmt.Println(found, err)
	// Output:
	// cart of three true <nil>
	// false <nil>
}

// Of those who want to be the one, one is.
func ExampleClient_CachePutIf() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	for _, worker := range []string{"first", "second"} {
		lock, err := c.CachePutIf(ctx, "shop", "sessions", "nightly-report", []byte(worker), client.IfAbsent(), time.Minute)
		switch {
		case errors.Is(err, client.ErrOutcomeUnknown):
			fmt.Println("it may be ours: read it with CacheGetVersion")
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(worker, lock.Applied)
		}
	}
	held, err := c.CacheGetVersion(ctx, "shop", "sessions", "nightly-report")
	if err != nil {
		log.Fatal(err)
	}
	released, err := c.CacheDeleteIf(ctx, "shop", "sessions", "nightly-report", held.Version) // not what somebody else put since
	fmt.Printf("%s %v %v\n", held.Value, released.Applied, err)
	// Output:
	// first true
	// second false
	// first true <nil>
}

func ExampleClient_CounterAdd() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	for range 3 {
		sum, err := c.CounterAdd(ctx, "shop", "sessions", "visits", 2)
		if errors.Is(err, client.ErrOutcomeUnknown) {
			log.Print("it may have been added; adding again may count twice")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(sum)
	}
	_, found, err := c.CounterGet(ctx, "shop", "sessions", "never written")
	fmt.Println(found, err)
	// Output:
	// 2
	// 4
	// 6
	// false <nil>
}

// A copy of a cache that is kept up to date: current values first, then each change. The client goes on by itself after
// lost connections, restarts and moves; where it cannot go on from where it was, a snapshot replaces what was known.
func ExampleClient_WatchCache() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()

	for _, name := range []string{"alice", "bob"} {
		if err := c.CachePut(ctx, "shop", "sessions", name, []byte("1 item"), 0); err != nil {
			log.Fatal(err)
		}
	}
	w, err := c.WatchCache(ctx, "shop", "sessions", client.WatchOptions{Retained: true})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	if _, _, err := c.CacheDelete(ctx, "shop", "sessions", "bob"); err != nil {
		log.Fatal(err)
	}

	known := map[uint32]map[string]string{} // by shard
	for bobLeft := false; !bobLeft; {
		item, err := w.NextItem(ctx)
		if err != nil {
			log.Fatal(err)
		}
		switch change := item.Change; item.Kind {
		case client.ItemSnapshot: // what is not in it is gone
			known[item.Shard] = map[string]string{}
			fmt.Println("values to come:", item.Count)
		case client.ItemSnapshotEnd:
			fmt.Println(known[item.Shard])
		case client.ItemEvent:
			if change.Deleted {
				delete(known[item.Shard], change.Key)
				bobLeft = change.Key == "bob"
			} else {
				known[item.Shard][change.Key] = string(change.Value)
			}
		case client.ItemShardLost, client.ItemShardMoved: // the client is about to go on
			log.Printf("shard %d: %v", item.Shard, item.Err)
		case client.ItemShardEnded:
			log.Fatalf("shard %d ended: %v", item.Shard, item.Err)
		}
	}
	fmt.Println(known[0], "from here on:", w.Positions())
	// Output:
	// values to come: 2
	// map[alice:1 item bob:1 item]
	// map[alice:1 item] from here on: map[0:3]
}

// A TokenSource keeps the token fresh: a program says how to get one, and how long it is good.
func ExampleNewTokenSource() {
	ctx := context.Background()
	o, stop := broker()
	defer stop()

	fetched := 0
	source := client.NewTokenSource(func(ctx context.Context) (client.Token, error) {
		fetched++ // ask the issuer here, heeding ctx
		return client.Token{Value: testbroker.Token, Expires: time.Now().Add(time.Hour)}, nil
	})
	o.Token, o.TokenSource = "", source
	c, err := client.Connect(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Publish(ctx, "shop", "audit", []byte("hello")); err != nil {
		log.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("fetched", fetched, "token for all streams")
	// Output: fetched 1 token for all streams
}
