package sessionactor

// gatherMost is how many bytes of answers a lane may have that leave with those of others, and are not in the books of Answers until then.
const gatherMost = 8 << 10

// gathers reports whether what the lane has to send is to leave with answers of others: they are there, and it is little. mu is held.
func (l *lane) gathers() bool {
	n := l.core.Pending()
	return n > 0 && n <= gatherMost && !l.writing && l.send != nil && l.session.astir.Load() > 1
}

// flushGathered flushes a lane that is in its session's gathering, once, while lane.gathered is set.
func (l *lane) flushGathered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gathered = false
	l.flush()
}
