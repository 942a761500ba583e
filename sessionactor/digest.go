package sessionactor

// Digest is the state of all streams of the session in 64 bits, for a simulation's trace.
func (a *Session) Digest() uint64 {
	a.s.mu.Lock()
	lanes := append([]*lane(nil), a.s.lanes...)
	a.s.mu.Unlock()
	sum := uint64(len(lanes))
	for _, l := range lanes {
		sum = sum*1099511628211 ^ l.digest()
	}
	return sum
}

func (l *lane) digest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.Digest()
}
