package disklog

import (
	"math"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// tellAhead is how many offsets a log reserves whose offsets are given once: as many are passed over after a process that did not end in order,
// and so often a small file is made durable before an append goes on. That is a quarter of a second of the clock in microseconds, where
// the logs of caches begin: one that is made after them begins behind them.
const tellAhead = 1 << 18

// mode is when appends of the log are made durable.
func (s *Spec) mode(store FsyncMode) FsyncMode {
	if s.AlwaysSync {
		return OnCommit
	}
	return store
}

// passOver has the log go on behind all that anybody may have been told of. What is kept of that is durable before the batch that has those
// offsets, so that a crash in between only passes over some more.
func (o *opening) passOver(p *segment.Plan) error {
	newest := &p.Segments[len(p.Segments)-1]
	base := p.Segments[0].Base
	now, end := p.Replica, newest.End
	lost, next := segment.PassOver(now.Lost, base, end)
	if o.spec.mode(o.store.opts.Fsync) != OnCommit {
		lost = segment.Reserve(lost, next, next.Add(tellAhead))
	}
	if p.Replica.Lost = lost; !p.Replica.Equal(&now) {
		if err := o.small(segment.ReplicaName, segment.AppendReplica(nil, segment.SaltOf(p.Meta.Log), &p.Replica)); err != nil {
			return err
		}
	}
	if next == end {
		return nil
	}
	return o.fill(p, newest, next)
}

// fill appends batches that nobody reads, up to an offset, and syncs them.
func (o *opening) fill(p *segment.Plan, newest *segment.Found, next id.Offset) error {
	s := o.store
	f, err := s.fs.Open(join(o.dir, newest.Name), true)
	if err != nil {
		return err
	}
	defer f.Close()
	b := batch.Batch{Kind: batch.GenerationStart, Generation: p.Replica.Generation, AppendMicros: uint64(s.opts.Exec.Now().UnixMicro()), Base: newest.End}
	for ; b.Base < next; b.Base = b.End() {
		b.Count = uint32(min(next.Since(b.Base), math.MaxUint32))
		h := segment.Describe(&b, segment.Sum(nil))
		content := segment.AppendBatchHeader(nil, segment.SaltOf(p.Meta.Log), &h)
		if _, err := f.WriteAt(content, newest.DataEnd); err != nil {
			return err
		}
		if p.Create == nil {
			entries := len(p.Index.Entries)
			p.Index.Note(newest.DataEnd, &h, int64(s.opts.IndexSpacing))
			newest.Rebuild = newest.Rebuild || len(p.Index.Entries) > entries
		}
		if newest.Batches == 0 {
			newest.MinMicros, newest.MaxMicros = h.AppendMicros, h.AppendMicros
		}
		newest.MinMicros, newest.MaxMicros = min(newest.MinMicros, h.AppendMicros), max(newest.MaxMicros, h.AppendMicros)
		newest.Batches, newest.End = newest.Batches+1, h.End()
		newest.DataEnd, newest.Size = newest.DataEnd+h.Size(), newest.Size+h.Size()
		newest.FileSum = segment.Extend(newest.FileSum, content)
	}
	return o.sync(f.Sync())
}

// reserved is the end of the offsets that may be told of in a log that goes on at from.
func reserved(lost []segment.LostEnd, from id.Offset) id.Offset {
	if n := len(lost); n > 0 && lost[n-1].End == from {
		return lost[n-1].Cursors
	}
	return from
}

// mayTell makes it durable that what is about to be written may be told of, if it is told before it is on the device. A write job calls it, or
// what has the log for itself.
func (l *Log) mayTell(ops []op) error {
	if !l.spec.once || l.spec.fsync == OnCommit {
		return nil
	}
	l.mu.Lock()
	from, told, lost := l.from, l.told, l.kept.Lost
	l.mu.Unlock()
	last := ops[len(ops)-1].batches
	end := last[len(last)-1].End()
	if end <= told {
		return nil
	}
	told = end.Add(tellAhead)
	lost = segment.Reserve(lost, from, told)
	if err := l.save(replicaChange{lost: &lost}); err != nil {
		return err
	}
	l.mu.Lock()
	l.told = told
	l.mu.Unlock()
	return nil
}

// leave is the rest before the end. If all is durable, nothing that was told of can be lost, and the log is to go on where it ends; that this
// cannot be noted costs it some offsets.
func (l *Log) leave() error {
	err := l.rest()
	if err != nil || !l.spec.once {
		return err
	}
	l.mu.Lock()
	from, lost := l.from, l.kept.Lost
	l.mu.Unlock()
	lost = segment.Unreserve(lost, from)
	l.save(replicaChange{lost: &lost})
	return nil
}

// PassedOver reports whether a reader that was told of all offsets below o was told of some that the log has lost, so that it is not to go on there;
// next is behind those. Only of a log whose offsets are given once.
func (l *Log) PassedOver(o id.Offset) (next id.Offset, yes bool) {
	if !l.spec.once {
		return o, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return segment.PassedOver(l.kept.Lost, l.from, o)
}
