package clientguide

import (
	"context"
	"fmt"
	"testing"

	"github.com/felixd/felixd/client"
)

func publishOne(ctx context.Context, c *client.Client) error {
	if _, err := c.Publish(ctx, "default", "orders", []byte("hello")); err != nil {
		return err
	}
	_, err := c.Publish(ctx, "default", "orders", []byte("hello again"), client.WithKey([]byte("user-42")))
	return err
}

func publishMany(ctx context.Context, c *client.Client, lines [][]byte) error {
	b, err := c.NewBatcher("default", "orders", client.BatcherOptions{})
	if err != nil {
		return err
	}
	for _, line := range lines {
		if _, err := b.Add(ctx, line); err != nil {
			return err
		}
	}
	return b.Close(ctx) // flushes; its error says how many records failed, and why the first did
}

func publishOverlapped(ctx context.Context, c *client.Client, batches [][][]byte) error {
	var pending []*client.PendingPublish
	for _, records := range batches {
		p, err := c.PublishBatchAsync(ctx, "default", "orders", records)
		if err != nil {
			return err
		}
		pending = append(pending, p)
	}
	for _, p := range pending {
		if _, err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func publishUntilKnown(ctx context.Context, c *client.Client, record []byte) error {
	_, err := c.PublishAtLeastOnce(ctx, "default", "orders", [][]byte{record})
	return err
}

func TestPublishing(t *testing.T) {
	s := begin(t)
	c := s.client()
	var lines [][]byte
	for i := range 300 {
		lines = append(lines, fmt.Appendf(nil, "line %d", i))
	}
	for name, f := range map[string]func() error{
		"one":        func() error { return publishOne(s.ctx, c) },
		"many":       func() error { return publishMany(s.ctx, c, lines) },
		"overlapped": func() error { return publishOverlapped(s.ctx, c, [][][]byte{lines[:100], lines[100:]}) },
		"again":      func() error { return publishUntilKnown(s.ctx, c, lines[0]) },
	} {
		if err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := s.broker.Metric("felix_published_records_total"); err != nil || n != 2+300+300+1 {
		t.Errorf("%v records were published, %v; want 603", n, err)
	}
}
