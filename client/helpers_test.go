package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
)

// patience is how long a test waits for something that should happen at once.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

type change func(*Options)

func optionsFor(b *testbroker.Broker, changes ...change) Options {
	o := Options{Addrs: []string{b.Addr()}, TenantID: "t1", Token: testbroker.Token, CAPEM: b.CA().CertPEM}
	for _, c := range changes {
		c(&o)
	}
	return o
}

// connect makes a client whose pauses between tries take no time.
func connect(t *testing.T, b *testbroker.Broker, changes ...change) *Client {
	t.Helper()
	c, err := Connect(within(t), optionsFor(b, changes...))
	if err != nil {
		t.Fatal(err)
	}
	c.jitter = func(time.Duration) time.Duration { return 0 }
	t.Cleanup(func() {
		if err := c.Close(within(t)); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return c
}

func wantIs(t *testing.T, err error, marks ...error) {
	t.Helper()
	for _, mark := range marks {
		if !errors.Is(err, mark) {
			t.Fatalf("got %v (%T), want an error that matches %q", err, err, mark)
		}
	}
}

func wantAs[T error](t *testing.T, err error) T {
	t.Helper()
	var target T
	if !errors.As(err, &target) {
		t.Fatalf("got %v (%T), want a %T", err, err, target)
	}
	return target
}

func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}
