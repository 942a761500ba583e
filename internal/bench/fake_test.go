package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// fakeLane is a server in memory. It answers at once, in order, and refuses, loses or repeats as it is told.
type fakeLane struct {
	refuse func(b Batch) bool
	fails  error // of Send, after the first batch
	shape  Shape
	// deliver, if not nil, gets the payloads of each batch.
	deliver func(b Batch, payloads [][]byte)

	mu      sync.Mutex
	answers chan error
	sent    []Batch
	flushed int
	open    int // unanswered
	most    int
}

func newFakeLane(s Shape) *fakeLane { return &fakeLane{shape: s, answers: make(chan error, 1<<16)} }

func (l *fakeLane) Send(_ context.Context, b Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil && len(l.sent) > 0 {
		return l.fails
	}
	l.sent = append(l.sent, b)
	if l.deliver != nil {
		l.deliver(b, newRecords(l.shape).fill(b))
	}
	if !b.Acked {
		return nil
	}
	l.open++
	l.most = max(l.most, l.open)
	var err error
	if l.refuse != nil && l.refuse(b) {
		err = &RefusedError{errors.New("overloaded: not now")}
	}
	l.answers <- err
	return nil
}

func (l *fakeLane) Flush(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushed++
	return nil
}

func (l *fakeLane) Settle(ctx context.Context) error {
	select {
	case err := <-l.answers:
		l.mu.Lock()
		l.open--
		l.mu.Unlock()
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// publisher opens lanes.
func publisher(closed *atomic.Int32, vouches bool, lanes ...Lane) func(context.Context) (*Publisher, error) {
	return func(context.Context) (*Publisher, error) {
		return &Publisher{Lanes: lanes, Vouches: vouches, Close: func(context.Context) error { closed.Add(1); return nil }}, nil
	}
}

// fakeSubscriber gets what a fake lane delivers.
type fakeSubscriber struct {
	batches chan [][]byte
	closed  bool
	gate    chan struct{} // if not nil, it begins when this is closed
	waiting int           // batches that were there then
}

func (s *fakeSubscriber) Receive(ctx context.Context, got *Received) error {
	if s.gate != nil {
		select {
		case <-s.gate:
			s.waiting = len(s.batches)
		case <-ctx.Done():
			return nil
		}
	}
	for {
		select {
		case payloads := <-s.batches:
			for _, p := range payloads {
				if err := got.Record(p); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *fakeSubscriber) Close(context.Context) error {
	s.closed = true
	return nil
}

// fakeMeter counts like a broker that took a part of what was sent.
type fakeMeter struct {
	taken func() uint64
	cpu   atomic.Int64
}

func (m *fakeMeter) Usage(context.Context) (ServerUsage, error) {
	cpu := time.Duration(m.cpu.Add(int64(time.Millisecond)))
	return ServerUsage{At: time.Now(), CPU: &cpu, Published: ptr(m.taken())}, nil
}
