package client

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// batchers are those of a client that are not closed.
type batchers struct {
	mu     sync.Mutex
	sealed bool
	list   []*Batcher
}

func (s *batchers) add(b *Batcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sealed {
		s.list = append(s.list, b)
	}
	return !s.sealed
}

func (s *batchers) remove(b *Batcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *Batcher) bool { return other == b })
}

// close closes all, and lets none be made any more.
func (s *batchers) close(ctx context.Context) error {
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
