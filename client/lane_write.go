package client

// write is the goroutine that puts requests on the stream, in the order of submit.
func (l *lane) write() {
	for {
		select {
		case <-l.wake:
		case <-l.dead:
			return
		}
		for {
			c, last := l.nextChunk()
			if c == nil {
				if last {
					l.endWriting()
					return
				}
				break
			}
			if _, err := l.control.stream.Write(c.bytes); err != nil {
				l.fail(err)
				return
			}
			l.written(c)
		}
	}
}

// nextChunk moves the requests of the next write to those that await an answer. last says that the lane is closing and
// nothing is left to write.
func (l *lane) nextChunk() (c *chunk, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c = l.out.next()
	if c == nil {
		return nil, l.closing
	}
	if l.pending.len() == 0 {
		l.timer.Reset(l.client.opts.AckTimeout)
	}
	l.client.stats.framesOut.Add(uint64(len(c.requests)))
	l.client.stats.bytesOut.Add(uint64(len(c.bytes)))
	now := l.client.now()
	for _, r := range c.requests {
		r.sentAt = now
		l.pending.push(r) // before the write: its answer may come before Write returns
	}
	return c, false
}

// written ends the requests of a chunk that get no answer, and gives it back.
func (l *lane) written(c *chunk) {
	for _, r := range c.requests {
		if r.silent && l.settle(r) {
			r.end(reply{}, nil)
		}
	}
	l.client.chunks.put(c)
}

// settle takes a written request without an answer out; false when the lane failed meanwhile and ended it.
func (l *lane) settle(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.pending.len() {
		if l.pending.at(i) == r {
			l.pending.remove(i)
			l.finishOne()
			return true
		}
	}
	return false
}

// endWriting finishes the send half of a lane that closes. The broker ends its half when it has answered everything.
func (l *lane) endWriting() {
	if err := l.control.stream.Close(); err != nil {
		l.fail(err)
	}
}
