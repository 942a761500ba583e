package client

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// flushers are batchers, or producers, of a client that are not closed.
type flushers struct {
	mu     sync.Mutex
	sealed bool
	list   []flusher
}

type flusher interface {
	Close(ctx context.Context) error
}

func (s *flushers) add(b flusher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sealed {
		s.list = append(s.list, b)
	}
	return !s.sealed
}

func (s *flushers) remove(b flusher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other flusher) bool { return other == b })
}

// close closes all, and lets none be made any more.
func (s *flushers) close(ctx context.Context) error {
	s.mu.Lock()
	s.sealed = true
	list := slices.Clone(s.list)
	s.mu.Unlock()
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, b := range list {
		all.Go(func() { errs[i] = b.Close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
