package disklog

import (
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// runWrite is the write job: it writes the appends at the head of the queue that fit into the segment.
func (l *Log) runWrite() {
	l.mu.Lock()
	ops := l.take()
	l.mu.Unlock()
	if len(ops) > 0 {
		l.write(ops)
		l.deliver()
	}
	clear(ops)
	l.mu.Lock()
	l.spare = ops[:0]
	l.writing = false
	t := l.next()
	l.mu.Unlock()
	l.continueWith(t)
}

// take takes from the queue what one write puts into the segment. mu is held.
func (l *Log) take() []op {
	n, bytes := 0, l.last().bytes
	for n < len(l.queue) && l.queue[n].kind == opAppend && (l.failed != nil || l.fits(bytes, l.queue[n].size)) {
		bytes += l.queue[n].size
		n++
	}
	ops := l.queue[:n:n]
	rest := l.queue[n:]
	l.queue = append(l.spare[:0], rest...)
	clear(rest)
	l.spare = nil
	return ops
}

// write puts appends at the end of the segment, and takes back what it could not write whole.
func (l *Log) write(ops []op) {
	a, err := l.wake()
	if err != nil {
		l.refuse(ops[0].seq, err)
		return
	}
	l.mu.Lock()
	from := *l.last()
	failed := l.failed
	l.mu.Unlock()
	if failed != nil {
		l.refuse(ops[0].seq, failed)
		return
	}
	if err := l.mayTell(ops); err != nil {
		l.refuse(ops[0].seq, err)
		return
	}
	e := l.store.encoder(a.file, l.spec.salt, &from)
	done, err := e.all(ops)
	l.store.release(e)
	l.publish(a, ops[:done])
	if err == nil {
		return
	}
	l.mu.Lock()
	end := l.last().bytes
	l.mu.Unlock()
	l.cutBack(a, end)
	l.refuse(ops[done].seq, err)
}

// cutBack removes what a failed write has left behind the last good byte, durably: whole batches may be among it, and one that was refused
// must not come back after a power cut, in the place of what is written there next.
func (l *Log) cutBack(a *active, end int64) {
	a.reserved.Store(0)
	if err := a.file.Truncate(end); err != nil {
		l.stuck(err)
		return
	}
	l.orPoison(a.file.Sync())
}

// publish makes written appends part of the log. From here on they can be read.
func (l *Log) publish(a *active, ops []op) {
	if len(ops) == 0 {
		return
	}
	c := l.store.opts.Counters
	l.mu.Lock()
	last := l.last()
	before := last.bytes
	for i := range ops {
		for _, b := range ops[i].batches {
			a.note(last, b, l.store.opts.IndexSpacing)
		}
		l.written += uint64(ops[i].size)
		if !l.poisoned {
			l.pending = append(l.pending, completion{seq: ops[i].seq, need: l.written})
		}
	}
	grown := last.bytes - before
	l.size.Add(grown)
	last.sum = ops[len(ops)-1].sum
	l.tail.Store(uint64(last.end))
	l.touched = true
	l.dirty()
	l.mu.Unlock()
	c.Appends.Add(uint64(len(ops)))
	c.AppendedBytes.Add(uint64(grown))
	c.UnsyncedBytes.Add(grown)
}

// note enters one batch, that was written at the end of segment m.
func (a *active) note(m *segmentMeta, b *batch.Batch, spacing int) {
	h := segment.BatchHeader{Base: b.Base, Count: b.Count, AppendMicros: b.AppendMicros}
	a.index.Note(m.bytes, &h, int64(spacing))
	m.note(&h)
	m.bytes += segment.BatchHeaderSize + int64(len(b.Publisher)+len(b.Body))
}

// note counts one batch in.
func (m *segmentMeta) note(h *segment.BatchHeader) {
	if m.batches == 0 {
		m.least, m.greatest = h.AppendMicros, h.AppendMicros
	}
	m.least, m.greatest = min(m.least, h.AppendMicros), max(m.greatest, h.AppendMicros)
	m.batches++
	m.end = h.End()
}

// dirty has what was written synced when the mode says so. mu is held.
func (l *Log) dirty() {
	o, mode := &l.store.opts, l.spec.fsync
	switch {
	case mode == OnCommit:
		l.wantSync = true
	case mode == Periodic && int64(l.written-l.synced) >= o.UnsyncedBytes/2:
		l.wantSync = true
	case mode == Periodic && !l.timed:
		l.timed = true
		l.timer = o.Exec.After(o.FsyncInterval, l.tick)
	}
}

// tick is the end of an interval of Periodic. There is a timer only while something is unsynced.
func (l *Log) tick() {
	l.mu.Lock()
	l.timed = false
	l.wantSync = l.wantSync || l.written > l.synced
	l.startAndUnlock()
}

// refuse answers an append that could not be written, and drops those behind it: their offsets are not theirs any more.
func (l *Log) refuse(seq uint64, err error) {
	l.countRefusal(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.poisoned {
		return
	}
	l.pending = append(l.pending, completion{seq: seq, need: l.written, err: err})
	l.void()
}

func (l *Log) countRefusal(err error) {
	c := l.store.opts.Counters
	c.WriteFailures.Add(1)
	if vfs.IsNoSpace(err) {
		c.Full.Add(1)
	}
}

// void drops the appends that are queued. mu is held.
func (l *Log) void() {
	l.nextBase, l.voiding = l.last().end, true
	kept := l.queue[:0]
	for _, o := range l.queue {
		switch o.kind {
		case opAppend:
			continue
		case opTruncate:
			l.nextBase = min(l.nextBase, o.offset)
		case opReset:
			l.nextBase = o.offset
		}
		kept = append(kept, o)
	}
	clear(l.queue[len(kept):])
	l.queue = kept
}
