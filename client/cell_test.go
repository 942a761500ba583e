package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// attempt is one making of a test cell, which the test decides.
type attempt struct {
	ctx    context.Context
	result chan error
}

func testCell(t *testing.T) (*cell[*atomic.Bool], *life, <-chan attempt) {
	t.Helper()
	made := make(chan attempt, 10)
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{}
	c := &cell[*atomic.Bool]{life: l, ctx: ctx, alive: func(b *atomic.Bool) bool { return b.Load() }}
	c.build = func(ctx context.Context) (*atomic.Bool, error) {
		a := attempt{ctx, make(chan error)}
		made <- a
		select {
		case err := <-a.result:
			b := &atomic.Bool{}
			b.Store(true)
			return b, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	t.Cleanup(func() { l.seal(); cancel(); l.work.Wait() })
	return c, l, made
}

func TestThoseWhoWaitForOneMakingShareItsFailure(t *testing.T) {
	noLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		c, _, made := testCell(t)
		broken := errors.New("broken")
		results := make(chan error, 100)
		for range cap(results) {
			go func() {
				_, err := c.get(t.Context())
				results <- err
			}()
		}
		synctest.Wait() // until all of them wait
		(<-made).result <- broken
		for range cap(results) {
			wantIs(t, <-results, broken)
		}
		if len(made) != 0 {
			t.Fatal("it was made again for those who waited")
		}
	})
}

func TestMakingGoesOnWhenItsCallerGivesUp(t *testing.T) {
	c, _, made := testCell(t)
	impatient, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() { _, err := c.get(impatient); gone <- err }()
	a := await(t, "making", made)
	cancel()
	wantIs(t, await(t, "end of the call", gone), context.Canceled)
	if a.ctx.Err() != nil {
		t.Fatal("the making was given up with its caller")
	}
	found := make(chan error, 1)
	go func() { _, err := c.get(within(t)); found <- err }()
	a.result <- nil
	if err := await(t, "second call", found); err != nil {
		t.Fatal(err)
	}
	if len(made) != 0 {
		t.Fatal("it was made twice")
	}
}

func TestWhatDiedIsMadeAgainAndNothingIsMadeAfterTheSeal(t *testing.T) {
	c, l, made := testCell(t)
	get := func() *atomic.Bool {
		t.Helper()
		done := make(chan *atomic.Bool, 1)
		go func() {
			v, err := c.get(within(t))
			if err != nil {
				t.Error(err)
			}
			done <- v
		}()
		select {
		case a := <-made:
			a.result <- nil
			return await(t, "value", done)
		case v := <-done:
			return v
		}
	}
	first := get()
	if get() != first {
		t.Fatal("a living one was replaced")
	}
	first.Store(false)
	if get() == first {
		t.Fatal("a dead one was handed out")
	}
	l.seal()
	if v, ok := c.current(); !ok {
		t.Fatal("nothing is there")
	} else {
		v.Store(false)
	}
	_, err := c.get(within(t))
	wantIs(t, err, ErrClosed)
}
