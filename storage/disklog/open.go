package disklog

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// Open opens a log, and makes it if it may be new. It reads and repairs what a crash left, so it takes its time: call it in a job of kind
// Work. progress, if not nil, is told how many bytes were read and how many will be.
//
// What it refuses, it leaves as it is: *CorruptionError for damage that may have cost an acknowledged record, *segment.VersionError for a format
// it does not know, *MissingError for a log that must be there and is not, *PoisonedError after a failed sync in this process, *BusyError
// and ErrClosing for a log that is open. Other errors are those of the file system.
func (s *Store) Open(spec Spec, n Notify, progress func(done, total int64)) (*Log, error) {
	dir, shard := spec.Dir(), spec.shardName()
	if err := s.reserve(dir, shard); err != nil {
		return nil, err
	}
	o := opening{store: s, spec: &spec, dir: dir, progress: progress}
	start := s.opts.Exec.Now()
	l, err := o.run(n)
	s.settleOpen(dir, l)
	if err != nil {
		var full *PoisonedError
		if vfs.IsNoSpace(err) && !errors.As(err, &full) {
			s.opts.Counters.Full.Add(1)
		}
		return nil, fmt.Errorf("open log of %s: %w", shard, err)
	}
	l.recovery.Duration = s.opts.Exec.Now().Sub(start)
	s.opts.Counters.TruncatedBytes.Add(uint64(l.recovery.TruncatedBytes))
	return l, nil
}

// opening is one call of Open.
type opening struct {
	store    *Store
	spec     *Spec
	dir      string
	progress func(done, total int64)
	created  bool
	listed   []vfs.Entry // what the plan was made of
}

func (o *opening) run(n Notify) (*Log, error) {
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	if p.Meta == nil {
		if err := o.create(); err != nil {
			return nil, err
		}
		o.created = true
		if p, err = o.plan(); err != nil {
			return nil, err
		}
		if p.Meta == nil {
			panic("disklog: a log is not there although it was just made")
		}
	}
	if err := o.apply(p); err != nil {
		return nil, err
	}
	return o.log(p, n), nil
}

// plan reads the directory and decides what is to be done.
func (o *opening) plan() (*segment.Plan, error) {
	s := o.store
	listed, err := s.fs.ReadDir(o.dir)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return nil, err
	}
	o.listed = listed
	entries := make([]segment.Entry, len(listed))
	for i, e := range listed {
		entries[i] = segment.Entry{Name: e.Name, Size: e.Size, Regular: e.Kind == vfs.Regular}
	}
	return segment.NewPlan(&segment.PlanInput{
		Shard: o.dir, Entries: entries,
		Open: func(name string) (segment.Reader, error) { return s.fs.Open(join(o.dir, name), false) },
		Log:  o.spec.Log, MustExist: o.spec.MustExist, NameHash: o.spec.nameHash(), Incarnation: o.spec.Incarnation, Kind: o.spec.Kind,
		Base: o.spec.Base, Verify: s.opts.Verify, Spacing: int64(s.opts.IndexSpacing), Progress: o.progress,
	})
}

// create makes the directory and says in it whose it is. A crash leaves nothing, or a log without records.
func (o *opening) create() error {
	s := o.store
	if err := s.fs.Mkdir(o.dir); err != nil && !errors.Is(err, iofs.ErrExist) {
		return err
	}
	if err := o.sync(s.fs.SyncDir(path.Dir(o.dir))); err != nil {
		return err
	}
	m := segment.Meta{
		Log: id.LogID(s.opts.Rand()), Incarnation: o.spec.Incarnation, Generation: o.spec.Generation, NameHash: o.spec.nameHash(), Kind: o.spec.Kind,
		CreatedMicros: uint64(s.opts.Exec.Now().UnixMicro()),
	}
	return o.small(segment.MetaName, segment.AppendMeta(nil, &m))
}

// small writes a small file durably.
func (o *opening) small(name string, content []byte) error {
	bySync, err := writeSmall(o.store.fs, o.dir, name, content)
	if bySync {
		return o.sync(err)
	}
	return err
}

// sync passes the error of a sync on. The directory is not opened again in this process after one.
func (o *opening) sync(err error) error {
	if err == nil {
		return nil
	}
	p := &PoisonedError{Shard: o.spec.shardName(), Err: err}
	o.store.opts.Counters.SyncFailures.Add(1)
	o.store.poison(o.dir, p)
	return p
}
