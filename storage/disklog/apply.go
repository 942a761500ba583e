package disklog

import (
	"errors"
	iofs "io/fs"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// apply carries out a plan. Each step is durable before the next one, so that a crash in between leaves what a plan can be made of.
//
// First of all the names become durable that the plan saw: a process that was killed may have made or removed some and not come to syncing
// them, and what they mean is about to be relied on.
func (o *opening) apply(p *segment.Plan) error {
	s := o.store
	if err := o.sync(s.fs.SyncDir(o.dir)); err != nil {
		return err
	}
	if err := o.relyOnMark(p); err != nil {
		return err
	}
	for _, name := range p.Delete {
		if err := s.fs.Remove(join(o.dir, name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		if err := o.sync(s.fs.SyncDir(o.dir)); err != nil {
			return err
		}
	}
	if err := o.settleNewest(p); err != nil {
		return err
	}
	if p.Create != nil {
		p.Create.CreatedMicros = uint64(s.opts.Exec.Now().UnixMicro())
		f, bySync, err := s.makeSegment(o.dir, p.Create)
		if bySync {
			return o.sync(err)
		}
		if err != nil {
			return err
		}
		f.Close()
		p.Segments = append(p.Segments, segment.Found{
			Header: *p.Create, Name: segment.FileName(p.Create.ID), End: p.Create.Base, DataEnd: segment.HeaderSize, Size: segment.HeaderSize,
			FileSum: segment.Sum(segment.AppendHeader(nil, p.Create)),
		})
	}
	newest := &p.Segments[len(p.Segments)-1]
	if err := o.dropAhead(o.listed, segment.SaltOf(p.Meta.Log), newest.End); err != nil {
		return err
	}
	if o.spec.GivenOnce {
		if err := o.passOver(p); err != nil {
			return err
		}
	}
	return o.putMark(p)
}

// relyOnMark makes the mark durable as it was read, if anything is about to be done because of it: to remove what it has given up, while a
// power cut could bring back one that vouches for that, would make a log that looks as if it had lost it.
func (o *opening) relyOnMark(p *segment.Plan) error {
	if p.Mark == nil || len(p.Delete) == 0 && p.Cut == nil && p.Create == nil && p.Mark.Synced > segment.HeaderSize {
		return nil
	}
	f, err := o.store.fs.Open(join(o.dir, segment.MarkName), true)
	if err != nil {
		return err
	}
	defer f.Close()
	return o.sync(f.Sync())
}

// settleNewest cuts the newest segment where the plan says so, and makes what stays of it durable: what is read back from the system's memory
// after a process has died may not have reached the device, and what it has cut off may still be there. What the mark does not vouch for is
// written once more before: if the process before met a sync that failed, the system may hold those bytes as if they were on the
// device, and a sync alone would pass over them.
func (o *opening) settleNewest(p *segment.Plan) error {
	if len(p.Segments) == 0 {
		return nil
	}
	newest := &p.Segments[len(p.Segments)-1]
	f, err := o.store.fs.Open(join(o.dir, newest.Name), true)
	if err != nil {
		return err
	}
	defer f.Close()
	if p.Cut != nil {
		if p.Cut.Segment != newest.ID {
			panic("disklog: the plan cuts a segment that is not the newest")
		}
		if err := f.Truncate(p.Cut.Size); err != nil {
			return err
		}
	}
	from := int64(0)
	if p.Mark != nil && p.Mark.Segment == newest.ID {
		from = p.Mark.Synced
	}
	if err := rewrite(f, from, newest.Size); err != nil {
		return err
	}
	return o.sync(f.Sync())
}

// rewrite writes a part of a file over itself.
func rewrite(f vfs.File, from, to int64) error {
	if from >= to {
		return nil
	}
	b := make([]byte, min(to-from, 256<<10))
	for ; from < to; from += int64(len(b)) {
		b = b[:min(to-from, int64(len(b)))]
		if _, err := f.ReadAt(b, from); err != nil {
			return err
		}
		if _, err := f.WriteAt(b, from); err != nil {
			return err
		}
	}
	return nil
}

// putMark makes the mark say what is there now.
func (o *opening) putMark(p *segment.Plan) error {
	newest := &p.Segments[len(p.Segments)-1]
	m := segment.Mark{Segment: newest.ID, Synced: newest.Size, Oldest: p.Segments[0].ID, Base: newest.Base}
	had := p.Mark
	p.Mark = &m
	if had != nil && *had == m {
		return nil
	}
	content := segment.AppendMark(nil, segment.SaltOf(p.Meta.Log), &m)
	if had == nil {
		return o.small(segment.MarkName, content)
	}
	f, err := o.store.fs.Open(join(o.dir, segment.MarkName), true)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	return o.sync(f.Sync())
}

// log makes the open log out of an applied plan.
func (o *opening) log(p *segment.Plan, n Notify) *Log {
	l := &Log{
		store: o.store, notify: n, kept: p.Replica, retain: o.spec.Retention,
		spec: &place{
			shard: o.spec.shardName(), dir: o.dir, log: p.Meta.Log, salt: segment.SaltOf(p.Meta.Log), nameHash: p.Meta.NameHash,
			compress: o.spec.Compress, fsync: o.spec.mode(o.store.opts.Fsync), once: o.spec.GivenOnce,
		},
		recovery: &RecoveryInfo{TruncatedBytes: p.TruncatedBytes, Repaired: p.Repaired, Segments: len(p.Segments), Created: o.created},
	}
	l.mark.now = *p.Mark
	l.segs = make([]segmentMeta, len(p.Segments))
	for i := range p.Segments {
		f := &p.Segments[i]
		l.segs[i] = segmentMeta{
			id: f.ID, base: f.Base, end: f.End, bytes: f.DataEnd, least: f.MinMicros, greatest: f.MaxMicros, batches: f.Batches,
			sum: f.FileSum, summed: true, sealed: f.Sealed,
		}
	}
	var size int64
	for i := range l.segs {
		size += l.segs[i].fileBytes()
	}
	l.size.Store(size)
	tail := l.last().end
	l.nextBase, l.from, l.told = tail, tail, reserved(p.Replica.Lost, tail)
	l.base.Store(uint64(l.segs[0].base))
	l.durable.Store(uint64(tail))
	l.tail.Store(uint64(tail))
	o.saveIndexes(p, l)
	return l
}

// saveIndexes writes the index of the newest segment if what is there cannot be used. Those of others are made when they are read.
func (o *opening) saveIndexes(p *segment.Plan, l *Log) {
	newest := &p.Segments[len(p.Segments)-1]
	if newest.Rebuild && p.Create == nil && p.Index.ID == newest.ID && newest.End > id.Offset(newest.Base) {
		l.saveIndex(&p.Index)
	}
}
