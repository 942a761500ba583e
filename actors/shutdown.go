package actors

import (
	"context"
	"errors"
	"fmt"
	"sort"
)

var errPoolBusy = errors.New("workers of the pool are still in a turn")

// StopAll decides the end of all actors and refuses new ones; it does not wait. For a system whose scheduler the caller drives.
func (s *System) StopAll() {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		if len(s.tops) == 0 {
			close(s.empty)
		}
	}
	boxes := s.topsByName()
	s.mu.Unlock()
	for _, b := range boxes {
		b.stop()
	}
}

// Live lists the paths of the top-level actors that are not yet gone, sorted.
func (s *System) Live() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for _, b := range s.topsByName() {
		paths = append(paths, b.path)
	}
	return paths
}

// ShutdownError says which top-level actors had not ended in time; each waits for a descendant or is in a turn that does not end.
type ShutdownError struct {
	System string
	Live   []string
	Cause  error // the context's
}

// Error names the system, the actors and the cause.
func (e *ShutdownError) Error() string {
	return fmt.Sprintf("shut down actor system %q: %d top-level actors have not ended (%q): %v", e.System, len(e.Live), e.Live, e.Cause)
}

// Unwrap is the context's error.
func (e *ShutdownError) Unwrap() error { return e.Cause }

// Shutdown stops all actors, children before parents, waits for their ends, and ends the goroutines of the system. When ctx is done
// first it returns a *ShutdownError and the system goes on stopping; Shutdown may be called again.
func (s *System) Shutdown(ctx context.Context) error {
	s.StopAll()
	select {
	case <-s.empty:
	case <-ctx.Done():
		return &ShutdownError{System: s.name, Live: s.Live(), Cause: ctx.Err()}
	}
	if s.pool != nil {
		if err := s.pool.close(ctx); err != nil {
			return &ShutdownError{System: s.name, Cause: err}
		}
	}
	return nil
}

// topsByName lists the top-level mailboxes in the order of their names; mu is held.
func (s *System) topsByName() []*mailbox {
	names := make([]string, 0, len(s.tops))
	for name := range s.tops { // collected, then sorted
		names = append(names, name)
	}
	sort.Strings(names)
	boxes := make([]*mailbox, len(names))
	for i, name := range names {
		boxes[i] = s.tops[name]
	}
	return boxes
}
