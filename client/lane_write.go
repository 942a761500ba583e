package client

import "time"

// write is the goroutine that puts requests on the stream, in the order of submit.
func (l *lane) write() {
	var buffer []byte
	for {
		select {
		case <-l.wake:
		case <-l.dead:
			return
		}
		for {
			chunk, silent, last := l.nextChunk(buffer[:0])
			if chunk == nil {
				if last {
					l.endWriting()
					return
				}
				break
			}
			if _, err := l.control.stream.Write(chunk); err != nil {
				l.fail(err)
				return
			}
			for _, r := range silent {
				if l.settle(r) {
					r.end(reply{}, nil)
				}
			}
			if cap(chunk) <= 2*writeChunk {
				buffer = chunk
			}
		}
	}
}

// nextChunk moves requests that make one write from the queue to those that await an answer, and joins their frames in
// buffer; a large frame goes alone and is not copied. silent are those among them that get no answer. last says that the
// lane is closing and nothing is left to write.
func (l *lane) nextChunk(buffer []byte) (chunk []byte, silent []*request, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := l.pending.len() == 0
	for l.queue.len() > 0 {
		r := l.queue.at(0)
		if chunk != nil && len(chunk)+len(r.frame) > writeChunk {
			break
		}
		l.queue.remove(0)
		r.sentAt = time.Now()
		l.pending.push(r) // before the write: its answer may come before Write returns
		if r.silent {
			silent = append(silent, r)
		}
		frame := r.frame
		r.frame = nil // whoever keeps the request for its outcome does not keep its bytes
		if len(frame) >= writeChunk {
			chunk = frame
			break
		}
		if chunk == nil {
			chunk = buffer
		}
		chunk = append(chunk, frame...)
	}
	if chunk != nil && idle {
		l.timer.Reset(l.client.opts.AckTimeout)
	}
	return chunk, silent, l.closing && l.queue.len() == 0
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
