package bench

import (
	"context"
	"errors"
	"testing"
)

// fakeCaller answers at once.
type fakeCaller struct {
	calls  uint64
	refuse bool
	fails  error
}

func (c *fakeCaller) Call(_ context.Context, n uint64) error {
	if n != c.calls {
		return errors.New("the calls are not numbered")
	}
	c.calls++
	if c.refuse && n%2 == 1 {
		return &RefusedError{errors.New("overloaded")}
	}
	if n > 10 {
		return c.fails
	}
	return nil
}

func openCallers(closed *bool, all ...Caller) func(context.Context) (*Callers, error) {
	return func(context.Context) (*Callers, error) {
		return &Callers{All: all, Close: func(context.Context) error { *closed = true; return nil }}, nil
	}
}

func TestCallsAreCountedOncePerAnswer(t *testing.T) {
	var a, b *fakeCaller
	r := longEnough(t, true, func(timing Timing) (Result, error) {
		closed := false
		a, b = &fakeCaller{}, &fakeCaller{refuse: true}
		r, err := CallLoad{Payload: 10}.Run(newContext(t), timing, nil, openCallers(&closed, a, b))
		if !closed {
			t.Error("not closed")
		}
		if b.calls < 2 { // none that is refused
			r.Records = 0
		}
		return r, err
	})
	if r.Sent != a.calls+b.calls || r.Refused != b.calls/2 || r.FirstRefusal != "overloaded" || r.Records == 0 || r.Records > a.calls+(b.calls+1)/2 {
		t.Fatalf("%d and %d calls; the result says %+v", a.calls, b.calls, r)
	}
	if answers := a.calls + (b.calls+1)/2; r.Latency.Count == 0 || r.Latency.Count > answers { // the ends of what is counted and timed are not the same instant
		t.Fatalf("%d latencies of %d answers", r.Latency.Count, answers)
	}
}

func TestCallThatFailsEndsTheTrial(t *testing.T) {
	broken, closed := &fakeCaller{fails: errors.New("connection lost")}, false
	_, err := CallLoad{}.Run(newContext(t), Timing{Duration: patience}, nil, openCallers(&closed, &fakeCaller{}, broken))
	if !errors.Is(err, broken.fails) || !closed {
		t.Fatalf("got %v, closed is %v", err, closed)
	}
}
