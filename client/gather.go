package client

// gathers reports whether what the lane has to write is to leave with requests of others: there are some under way on its connection, and
// it is little. The lock is held.
func (l *lane) gathers() bool {
	return l.writable() && (l.pending.len() > 0 || l.control.link.busy.Load() > 1)
}

// writeGathered writes what is queued, unless the writer has done so meanwhile. The lane is in its connection's gathering, once, while
// lane.gathered is set.
func (l *lane) writeGathered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gathered = false
	if l.out.chunks.len() > 0 && !l.writeNow() {
		l.ring()
	}
}
