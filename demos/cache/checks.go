package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/demos/local"
)

// ttl is how long the value of the time-to-live check lives.
const ttl = 200 * time.Millisecond

// store is what the checks need of a client; client.Client is one.
type store interface {
	CachePut(ctx context.Context, namespace, cache, key string, value []byte, ttl time.Duration) error
	CacheGet(ctx context.Context, namespace, cache, key string) (value []byte, found bool, err error)
	CacheDelete(ctx context.Context, namespace, cache, key string) (removed []byte, found bool, err error)
}

var _ store = (*client.Client)(nil)

// check tries what the cache promises, prints a line for each promise, and fails when one was broken. That every hit had the
// right value and every miss none was part of the measurements.
func check(ctx context.Context, c store, out io.Writer) error {
	broken := 0
	for _, promise := range []struct {
		text string
		try  func(context.Context, store) error
	}{
		{"an empty value is a value, not a miss", tryEmpty},
		{fmt.Sprintf("a value that lives for %v is there until then, and not after", ttl), tryTTL},
		{"a put without a time to live takes it away", tryTTLTakenAway},
		{"a delete answers with the value it removed, and the key is a miss", tryDelete},
	} {
		if err := promise.try(ctx, c); err != nil {
			broken++
			fmt.Fprintf(out, "BROKEN  %s: %v\n", promise.text, err)
			continue
		}
		fmt.Fprintf(out, "ok      %s\n", promise.text)
	}
	if broken > 0 {
		return fmt.Errorf("%d promises were broken", broken)
	}
	return nil
}

func tryEmpty(ctx context.Context, c store) error {
	if err := c.CachePut(ctx, local.Namespace, cacheName, "empty", nil, 0); err != nil {
		return err
	}
	return expect(ctx, c, "empty", []byte{})
}

// ttlMost is how long it lives at most where the machine is so busy that it is over before anybody can look.
const ttlMost = 16 * ttl

// errUnseen says that a value was over before the first look at it was answered, which proves nothing.
var errUnseen = errors.New("it was never there")

// tryTTL gives the value longer until it is seen.
func tryTTL(ctx context.Context, c store) (err error) {
	for lives := ttl; lives <= ttlMost; lives *= 2 {
		if err = watchTTL(ctx, c, lives); !errors.Is(err, errUnseen) {
			break
		}
	}
	return err
}

// watchTTL reads until the value is gone. The broker set the end at some moment between the call of the put and its return, so a get
// that returned before the earliest end must hit, and one that was called after the latest must miss; a millisecond is the
// grain of the broker's clock.
func watchTTL(ctx context.Context, c store, lives time.Duration) error {
	called := time.Now()
	if err := c.CachePut(ctx, local.Namespace, cacheName, "short", []byte("lived"), lives); err != nil {
		return err
	}
	earliest, latest := called.Add(lives-time.Millisecond), time.Now().Add(lives+time.Millisecond)
	hits := 0
	for {
		asked := time.Now()
		_, found, err := c.CacheGet(ctx, local.Namespace, cacheName, "short")
		answered := time.Now()
		switch {
		case err != nil:
			return err
		case found && asked.After(latest):
			return fmt.Errorf("it was still there after %v", asked.Sub(called))
		case !found && answered.Before(earliest):
			return fmt.Errorf("it was gone after %v", answered.Sub(called))
		case !found && hits == 0:
			return errUnseen
		case !found:
			return nil
		}
		hits++
	}
}

func tryTTLTakenAway(ctx context.Context, c store) error {
	if err := c.CachePut(ctx, local.Namespace, cacheName, "kept", []byte("first"), ttl); err != nil {
		return err
	}
	if err := c.CachePut(ctx, local.Namespace, cacheName, "kept", []byte("second"), 0); err != nil {
		return err
	}
	for end := time.Now().Add(ttl + time.Millisecond); time.Now().Before(end); {
		if err := expect(ctx, c, "kept", []byte("second")); err != nil {
			return err
		}
	}
	return expect(ctx, c, "kept", []byte("second"))
}

func tryDelete(ctx context.Context, c store) error {
	if err := c.CachePut(ctx, local.Namespace, cacheName, "gone", []byte("value"), 0); err != nil {
		return err
	}
	removed, found, err := c.CacheDelete(ctx, local.Namespace, cacheName, "gone")
	switch {
	case err != nil:
		return err
	case !found || string(removed) != "value":
		return fmt.Errorf("it removed %q, found %v", removed, found)
	}
	if value, found, err := c.CacheGet(ctx, local.Namespace, cacheName, "gone"); err != nil || found {
		return fmt.Errorf("after it: %q, found %v, %w", value, found, err)
	}
	return nil
}

func expect(ctx context.Context, c store, key string, want []byte) error {
	got, found, err := c.CacheGet(ctx, local.Namespace, cacheName, key)
	if err == nil && (!found || !bytes.Equal(got, want)) {
		return fmt.Errorf("%s is %q, found %v; want %q", key, got, found, want)
	}
	return err
}
