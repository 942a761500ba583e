package sessionactor

import "sync"

// Suspects remembers the principals whose requests made shards fail. A shard that fails comes back; a principal who makes it fail
// again loses the connection, so that the next failure costs it a new one.
//
// It remembers so many, and forgets who was the first when there are more. Safe for concurrent use.
type Suspects struct {
	mu    sync.Mutex
	known map[principal]struct{}
	order []principal // ring, by first failure
	next  int
}

type principal struct{ tenant, subject string }

// suspectsMost bounds the memory for those who do harm, at some hundred bytes each; ten would be an incident.
const suspectsMost = 1024

// NewSuspects returns one that suspects nobody.
func NewSuspects() *Suspects { return &Suspects{known: map[principal]struct{}{}} }

// again notes that a request of the principal made a shard fail, and reports whether one did before.
func (s *Suspects) again(tenant, subject string) bool {
	p := principal{tenant, subject}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, before := s.known[p]; before {
		return true
	}
	s.known[p] = struct{}{}
	if len(s.order) < suspectsMost {
		s.order = append(s.order, p)
		return false
	}
	delete(s.known, s.order[s.next])
	s.order[s.next] = p
	s.next = (s.next + 1) % suspectsMost
	return false
}
