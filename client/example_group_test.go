package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/felixd/felixd/client"
)

// A worker of a queue. Any number of them, in any number of processes, share the records of a group: each is worked on by one at a
// time, and again only when that failed.
func ExampleClient_Consume() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()
	for _, order := range []string{`{"id":1}`, `{"id":2}`, `no order`} {
		if _, err := c.Publish(ctx, "shop", "orders", []byte(order), client.WithKey([]byte(order))); err != nil {
			log.Fatal(err)
		}
	}

	var finished sync.WaitGroup
	finished.Add(3)
	worker, err := c.Consume(ctx, "shop", "orders", "billing", func(ctx context.Context, m client.Message) error {
		defer finished.Done()
		var order struct{ ID int }
		if err := json.Unmarshal(m.Payload, &order); err != nil {
			return client.DeadLetter(err) // trying again would not help
		}
		return bill(ctx, order.ID) // nil finishes it; an error has it tried again, after a pause
	}, client.ConsumeOptions{
		Concurrency: 8,
		OnError:     func(_ *client.Message, err error) { log.Print(err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	finished.Wait()
	if err := worker.Stop(ctx); err != nil { // finishes what is being worked on
		log.Fatal(err)
	}
	s := worker.Stats()
	fmt.Println(s.Acked, "finished,", s.DeadLettered, "given up,", s.InHand, "in hand")
	// Output: 2 finished, 1 given up, 0 in hand
}

func bill(context.Context, int) error { return nil }

// What Consume does by itself, done by hand: on one shard, one record at a time.
func ExampleClient_GroupPoll() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()
	for _, job := range []string{"first", "second"} {
		if _, err := c.Publish(ctx, "shop", "audit", []byte(job)); err != nil {
			log.Fatal(err)
		}
	}

	for range 3 {
		messages, err := c.GroupPoll(ctx, "shop", "audit", 0, "reports", client.GroupPollOptions{Wait: time.Second, Visibility: time.Minute})
		if err != nil {
			log.Fatal(err)
		}
		for _, m := range messages {
			fmt.Printf("%s, delivery %d\n", m.Payload, m.Attempts)
			if m.Offset == 0 && m.Attempts == 1 { // only if this delivery still stands
				err = c.GroupNack(ctx, "shop", "audit", m.Shard, "reports", m.Offset, client.GroupNackOptions{Attempts: m.Attempts})
			} else {
				err = c.GroupAck(ctx, "shop", "audit", m.Shard, "reports", m.Offset)
			}
			if err != nil {
				log.Fatal(err)
			}
		}
	}
	info, err := c.GroupDescribe(ctx, "shop", "audit", 0, "reports")
	fmt.Println("lag", info.Lag(), err)
	// Output:
	// first, delivery 1
	// first, delivery 2
	// second, delivery 1
	// lag 0 <nil>
}

// Records that were given up on stay in the stream, and the group keeps a list of them.
func ExampleClient_GroupDeadLetters() {
	ctx := context.Background()
	c, done := connect(ctx)
	defer done()
	if _, err := c.Publish(ctx, "shop", "audit", []byte("broken")); err != nil {
		log.Fatal(err)
	}
	if _, err := c.GroupPoll(ctx, "shop", "audit", 0, "reports", client.GroupPollOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := c.GroupDeadLetter(ctx, "shop", "audit", 0, "reports", 0); err != nil {
		log.Fatal(err)
	}

	dead, err := c.GroupDeadLetters(ctx, "shop", "audit", 0, "reports")
	if err != nil {
		log.Fatal(err)
	}
	for _, at := range dead {
		page, err := c.Read(ctx, "shop", "audit", client.ReadOptions{From: at, End: at.Add(1)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", at, page.Records[0].Payload)
		if err := c.GroupRedrive(ctx, "shop", "audit", 0, "reports", at); err != nil { // it is fixed: try it again
			log.Fatal(err)
		}
	}
	again, err := c.GroupPoll(ctx, "shop", "audit", 0, "reports", client.GroupPollOptions{})
	fmt.Println(len(again), "to do", err)
	// Output:
	// 0: broken
	// 1 to do <nil>
}
