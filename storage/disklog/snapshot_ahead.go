package disklog

import (
	"errors"
	"io"
	iofs "io/fs"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// snapshotAsOf is what a snapshot is as of; not good if that cannot be told. Of one that was streamed only the two ends are read, of another one
// its snapshotMax bytes at the most, and of what is neither the first four.
func snapshotAsOf(fs vfs.FS, name string, salt segment.Salt) (asOf id.Offset, good bool, err error) {
	f, err := fs.Open(name, false)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, false, err
	}
	var head [4]byte
	if n, err := f.ReadAt(head[:], 0); n < len(head) {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return 0, false, err
	}
	switch {
	case segment.IsStream(head[:]):
		var t segment.StreamTrailer
		t, err = segment.ReadStreamTrailer(f, size, salt)
		asOf = t.AsOf
	case segment.IsSnapshot(head[:]) && size <= snapshotMax:
		b := make([]byte, size)
		if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
			return 0, false, err
		}
		asOf, _, err = segment.DecodeSnapshot(b, salt)
	default:
		return 0, false, nil
	}
	if refused(err) {
		return 0, false, nil
	}
	return asOf, err == nil, err
}

// refused reports whether an error says that a file was read, and is none of ours.
func refused(err error) bool {
	var damaged *segment.CorruptionError
	var version *segment.VersionError
	return errors.As(err, &damaged) || errors.As(err, &version)
}

// dropAhead removes the snapshots, when a log is opened, that tell of records past its end: what is appended next is not what they mean.
func (o *opening) dropAhead(listed []vfs.Entry, salt segment.Salt, tail id.Offset) error {
	fs := o.store.fs
	dropped := false
	for _, e := range listed {
		if !isSnapshot(e.Name) {
			continue
		}
		asOf, good, err := snapshotAsOf(fs, join(o.dir, e.Name), salt)
		if errors.Is(err, iofs.ErrNotExist) || err == nil && good && asOf <= tail {
			continue
		} else if err != nil {
			return err
		}
		if err := fs.Remove(join(o.dir, e.Name)); err != nil {
			return err
		}
		o.store.opts.Counters.SnapshotsIgnored.Add(1)
		dropped = true
	}
	if !dropped {
		return nil
	}
	return o.sync(fs.SyncDir(o.dir))
}
