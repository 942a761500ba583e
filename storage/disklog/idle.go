package disklog

// The store has one timer for all logs that hold files for writing, and for the files that readers left open. It is armed only while there
// are any. A log that was not written to between two of its runs gives its files back.

// watch enters a log that has woken.
func (s *Store) watch(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.awake {
		return
	}
	l.awake = true
	s.opts.Counters.AwakeLogs.Add(1)
	if s.awake == nil {
		l.nextAwake, l.prevAwake = l, l
		s.awake = l
	} else {
		l.nextAwake, l.prevAwake = s.awake, s.awake.prevAwake
		l.prevAwake.nextAwake, s.awake.prevAwake = l, l
	}
	s.arm()
}

// unwatch takes out a log that rests.
func (s *Store) unwatch(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.awake {
		return
	}
	l.awake = false
	s.opts.Counters.AwakeLogs.Add(-1)
	switch {
	case l.nextAwake == l:
		s.awake = nil
	default:
		l.prevAwake.nextAwake, l.nextAwake.prevAwake = l.nextAwake, l.prevAwake
		if s.awake == l {
			s.awake = l.nextAwake
		}
	}
	l.nextAwake, l.prevAwake = nil, nil
}

// arm starts the timer. mu is held.
func (s *Store) arm() {
	if s.swept == nil && !s.closed {
		s.swept = s.opts.Exec.After(s.opts.IdleAfter, s.sweep)
	}
}

// sweep sends the logs to rest that had nothing to write since the sweep before.
func (s *Store) sweep() {
	s.mu.Lock()
	s.swept = nil
	var awake []*Log
	for l := s.awake; l != nil; {
		awake = append(awake, l)
		if l = l.nextAwake; l == s.awake {
			break
		}
	}
	s.mu.Unlock()
	for _, l := range awake {
		l.restIfIdle()
	}
	held := s.files.age()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awake != nil || held {
		s.arm()
	}
}

func (l *Log) restIfIdle() {
	l.mu.Lock()
	idle := !l.touched && len(l.queue) == 0 && !l.writing && !l.syncing && !l.closing
	l.touched = false
	if idle {
		l.queue = append(l.queue, op{kind: opIdle})
	}
	l.startAndUnlock()
}
