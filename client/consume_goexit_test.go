package client

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// Whoever has heard that a consumer has ended may close what OnError writes to.
func TestStopThatReturnsNilHasSeenOnErrorReturnAlsoWhenTheClientCloses(t *testing.T) {
	noLeaks(t)
	b := queue(t, 1, 1)
	release, in := make(chan struct{}), make(chan struct{})
	var told atomic.Bool
	c, err := Connect(within(t), optionsFor(b))
	if err != nil {
		t.Fatal(err)
	}
	k := consume(t, c, func(context.Context, Message) error { return DeadLetter(errors.New("poison")) }, ConsumeOptions{
		OnError: func(*Message, error) { close(in); <-release; told.Store(true) }})
	until(t, "the settlement", func() bool { return k.Stats().DeadLettered == 1 })
	await(t, "the call of OnError", in)
	wantIs(t, c.Close(short(t)), context.DeadlineExceeded)
	wantIs(t, k.Stop(short(t)), context.DeadlineExceeded)
	close(release)
	await(t, "end of the consumer", k.Done())
	if !told.Load() {
		t.Error("it has ended before OnError returned")
	}
	await(t, "end of the client", c.done)
}

// A test's FailNow ends its goroutine, and so may what a program calls. That is its own affair, and keeps no consumer from ending, and no record in hand.
func TestCallsThatEndTheirGoroutineKeepNoConsumer(t *testing.T) {
	noLeaks(t)
	poison := func(context.Context, Message) error { return errors.New("poison") }
	var once sync.Once
	for name, o := range map[string]ConsumeOptions{
		"OnError of a handler": {RetryDelay: soon, OnError: func(*Message, error) { runtime.Goexit() }},
		"RetryDelay":           {RetryDelay: func(Message, error) time.Duration { runtime.Goexit(); return 0 }},
		"handler":              {RetryDelay: soon},
	} {
		t.Run(name, func(t *testing.T) {
			b := queue(t, 1, 1)
			handler := poison
			if name == "handler" {
				handler = func(context.Context, Message) error { once.Do(runtime.Goexit); return nil }
			}
			k := consume(t, connect(t, b), handler, o)
			until(t, "a settlement", func() bool { return k.Stats().Nacked > 0 })
			stop(t, k)
		})
	}
	t.Run("OnError of a poll", func(t *testing.T) {
		b := queue(t, 1, 1, func(o *testbroker.Options) {
			o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) bool {
				is := isA[*wire.GroupPoll](f.Message())
				if is {
					s.Refuse(wire.Refuse(wire.CodeForbidden, "no"))
				}
				return is
			}
		})
		k := consume(t, connect(t, b), poison, ConsumeOptions{OnError: func(*Message, error) { runtime.Goexit() }})
		await(t, "end of the consumer", k.Done())
		wantIs(t, k.Err(), ErrForbidden)
	})
}
