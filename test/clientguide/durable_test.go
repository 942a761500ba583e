package clientguide

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire/id"
)

func readOn(ctx context.Context, c *client.Client, from id.Offset, save func(id.Offset) error, handle func([]byte)) error {
	sub, err := c.Subscribe(ctx, "default", "orders", client.SubscribeOptions{From: client.At(from)})
	var cursor *client.CursorError
	if errors.Is(err, client.ErrTooOld) && errors.As(err, &cursor) {
		return fmt.Errorf("records %d to %d are gone", cursor.Requested, cursor.Available-1)
	}
	if err != nil {
		return err
	}
	defer sub.Close()

	for event, err := range sub.Events(ctx) {
		if err != nil {
			return err
		}
		handle(event.Payload)
		if err := save(event.Offset + 1); err != nil { // the offset of the first record not handled yet
			return err
		}
	}
	return nil
}

func readAll(ctx context.Context, c *client.Client, positions map[uint32]id.Offset, n int) (map[uint32]id.Offset, error) {
	sub, err := c.SubscribeAll(ctx, "default", "clicks", client.SubscribeAllOptions{From: client.Earliest(), Positions: positions})
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	for range n {
		if _, err := sub.Next(ctx); err != nil {
			return nil, err
		}
	}
	return sub.Positions(), nil // save them, and pass them again next time
}

func readRange(ctx context.Context, c *client.Client, handle func(time.Time, []byte)) error {
	from, found, err := c.OffsetForTime(ctx, "default", "orders", 0, time.Now().Add(-time.Hour))
	if err != nil || !found {
		return err
	}
	for record, err := range c.ReadRange(ctx, "default", "orders", client.ReadOptions{From: from}) {
		if err != nil {
			return err
		}
		handle(record.Time, record.Payload)
	}
	return nil // that was all there is now
}

func publishOnce(ctx context.Context, c *client.Client, records [][]byte) error {
	p, err := c.NewProducer(ctx, client.ProducerOptions{})
	if err != nil {
		return err
	}
	for _, record := range records {
		if _, err := p.PublishAsync(ctx, "default", "orders", record); err != nil {
			return err
		}
	}
	return p.Close(ctx) // waits for all; its error says how many failed, and why the first did
}

func publishManyOnce(ctx context.Context, c *client.Client, p *client.Producer, records [][]byte) error {
	b, err := c.NewBatcher("default", "orders", client.BatcherOptions{Producer: p})
	if err != nil {
		return err
	}
	for _, record := range records {
		if _, err := b.Add(ctx, record); err != nil {
			return err
		}
	}
	return b.Close(ctx)
}

func publishIfFirst(ctx context.Context, c *client.Client, next id.Offset, decision []byte) error {
	_, err := c.PublishIf(ctx, "default", "orders", next, [][]byte{decision})
	var lost *client.OffsetMismatchError
	if errors.As(err, &lost) {
		return fmt.Errorf("somebody was faster: read from %d to %d, and decide again", next, lost.Tail)
	}
	return err
}

func commit(ctx context.Context, c *client.Client) error {
	account := []byte("account-7")
	at, err := c.Commit(ctx, "default", "accounts", account, []byte("deposited 10"),
		client.Put("balance", []byte("110")), client.Delete("overdrawn"))
	if err != nil {
		return err
	}
	state, err := c.StateGet(ctx, "default", "accounts", account, "balance")
	if err != nil {
		return err
	}
	fmt.Printf("%s since offset %d, asked after %d\n", state.Value, state.Version, at)
	return nil
}

// durable is a client of a small broker with durable streams.
func durable(t *testing.T) (context.Context, *client.Client, *testbroker.Broker) {
	t.Helper()
	b := testbroker.New(t, testbroker.Options{Durable: true,
		Streams: map[string]uint32{"default/orders": 1, "default/clicks": 4, "default/accounts": 2}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	c := testkit.Connect(t, client.Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM})
	t.Cleanup(func() {
		cancel()
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return ctx, c, b
}

func TestReadingOnWhereOneStopped(t *testing.T) {
	ctx, c, b := durable(t)
	for i := range 20 {
		b.Append("default/orders", 0, testbroker.Region(fmt.Sprint(i)))
	}
	enough := errors.New("enough")
	var saved id.Offset
	got := ""
	for _, stop := range []id.Offset{7, 20} {
		err := readOn(ctx, c, saved, func(at id.Offset) error {
			if saved = at; at == stop {
				return enough
			}
			return nil
		}, func(p []byte) { got += string(p) + " " })
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	if want := "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "; got != want {
		t.Errorf("read %s", got)
	}
	b.Trim("default/orders", 0, 5)
	if err := readOn(ctx, c, 2, nil, nil); err == nil || err.Error() != "records 2 to 4 are gone" {
		t.Error(err)
	}
	n := 0
	if err := readRange(ctx, c, func(at time.Time, _ []byte) { n++ }); err != nil || n != 15 {
		t.Errorf("%d records, %v", n, err)
	}
}

func TestReadingAllShardsOnWhereOneStopped(t *testing.T) {
	ctx, c, b := durable(t)
	for i := range 40 {
		b.Append("default/clicks", uint32(i%4), testbroker.Region("x"))
	}
	positions, err := readAll(ctx, c, nil, 25)
	if err != nil {
		t.Fatal(err)
	}
	if positions, err = readAll(ctx, c, positions, 15); err != nil {
		t.Fatal(err)
	}
	for shard, at := range positions {
		if at != 10 {
			t.Errorf("shard %d is at %d", shard, at)
		}
	}
}

func TestWritingDurably(t *testing.T) {
	ctx, c, b := durable(t)
	records := [][]byte{[]byte("0"), []byte("1"), []byte("2")}
	p, err := c.NewProducer(ctx, client.ProducerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"once": publishOnce(ctx, c, records), "many once": publishManyOnce(ctx, c, p, records), "if first": publishIfFirst(ctx, c, 6, []byte("6")),
		"commit": commit(ctx, c),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := publishIfFirst(ctx, c, 2, nil); err == nil || err.Error() != "somebody was faster: read from 2 to 7, and decide again" {
		t.Error(err)
	}
	if got := b.Payloads("default/orders", 0); len(got) != 7 {
		t.Errorf("%q", got)
	}
}
