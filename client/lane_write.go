package client

import "context"

// write is the goroutine that puts requests on the stream, in the order of submit.
func (l *lane) write() {
	for {
		select {
		case <-l.wake:
		case <-l.dead:
			return
		}
		for {
			// What is not written yet when the connection is gone reached nobody, whoever notices first: this or the reader.
			if conn := l.control.link.conn.Context(); conn.Err() != nil {
				l.fail(context.Cause(conn))
				return
			}
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

// writeNowMost is how long a chunk may be that its caller writes: longer ones are worth a goroutine that may wait for flow control.
const writeNowMost = 8 << 10

// triedMost bounds what is written without the writer until the writer has its turn, in bytes, which waits until all before it is in packets. QUIC
// takes what the broker's windows allow, however large they are, and keeps it until the broker acknowledges what was sent. The client's
// budgets do not bound that by themselves: a broker may answer what it cannot have got. One of several hundred small requests is the writer's.
const triedMost = 64 << 10

// writeNow writes what is queued without the writer, which spares a lone request two changes of goroutines. It reports false if that is
// the writer's to do: because it is at it, because it would have to wait, or because callers of publishes gather what follows. The lock
// is held, so that no answer overtakes it.
func (l *lane) writeNow() bool {
	if !l.writable() {
		return false
	}
	c := l.out.newest()
	if l.control.stream.TryWriteAll(c.bytes) != nil {
		return false // if the stream is broken, the writer finds out
	}
	l.tried += len(c.bytes)
	l.await(l.out.next())
	l.client.chunks.put(c)
	return true
}

// writable reports whether what is queued may be written without the writer, if the stream takes it. The lock is held.
func (l *lane) writable() bool {
	if l.kind != cacheLane || l.writing || l.out.chunks.len() != 1 {
		return false
	}
	n := len(l.out.newest().bytes)
	return n <= writeNowMost && l.tried+n <= triedMost
}

// await counts the requests of a chunk among those that wait for an answer. The lock is held.
func (l *lane) await(c *chunk) {
	if l.pending.len() == 0 {
		l.timer.Reset(l.client.opts.AckTimeout)
	}
	l.client.stats.framesOut.Add(uint64(len(c.requests)))
	l.client.stats.bytesOut.Add(uint64(len(c.bytes)))
	now := l.client.now()
	for _, r := range c.requests {
		r.sentAt = now
		l.pending.push(r) // before the write of the writer: its answer may come before Write returns
	}
}

// nextChunk moves the requests of the next write to those that await an answer. last says that the lane is closing and
// nothing is left to write.
func (l *lane) nextChunk() (c *chunk, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writing { // it has returned from a write
		l.tried = 0
	}
	c = l.out.next()
	if l.writing = c != nil; !l.writing {
		return nil, l.closing
	}
	l.await(c)
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
