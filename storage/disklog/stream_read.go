package disklog

import (
	"errors"
	"io"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// OpenSnapshot opens what SaveSnapshotFrom kept under a name; false if there is none that can be used: its ends are damaged, or it is of an
// offset outside of the log. Those are counted, and whatever they hold is to be derived anew.
//
// r is read once, from the beginning, with one chunk of memory; the caller closes it. No byte comes out of it that was not checked, but that all
// of them are there is known only at io.EOF: what was made of it before is to be thrown away after any other error, which is a *CorruptionError
// for damage and is counted as well. A snapshot that takes its place meanwhile, or a cut, leaves r as it is. Opening and reading wait for the
// disk: do both in a job of kind Work.
func (l *Log) OpenSnapshot(name string) (asOf id.Offset, r io.ReadCloser, ok bool) {
	file := segment.SnapshotName(name)
	f, err := l.store.fs.Open(l.path(file), false)
	if isNotExist(err) {
		return 0, nil, false
	}
	var size int64
	var t segment.StreamTrailer
	if err == nil {
		size, err = f.Size()
	}
	if err == nil {
		t, err = segment.ReadStreamTrailer(f, size, l.spec.salt)
	}
	if base, _, tail := l.Bounds(); err != nil || t.AsOf < base || t.AsOf > tail {
		if f != nil {
			f.Close()
		}
		l.store.opts.Counters.SnapshotsIgnored.Add(1)
		return 0, nil, false
	}
	return t.AsOf, &snapshotReader{log: l, name: file, file: f, body: segment.NewStreamReader(f, size, l.spec.salt, &t)}, true
}

// snapshotReader reads a streamed snapshot. It is used by one goroutine.
type snapshotReader struct {
	log    *Log
	name   string // of the file
	file   vfs.File
	body   *segment.StreamReader
	failed bool
}

// Read implements io.Reader.
func (r *snapshotReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err == nil || err == io.EOF || r.failed {
		return n, err
	}
	r.failed = true
	r.log.store.opts.Counters.SnapshotsIgnored.Add(1)
	var damaged *CorruptionError
	if errors.As(err, &damaged) {
		damaged.Shard, damaged.File = r.log.spec.dir, r.name
	}
	return n, err
}

// Close gives the file back.
func (r *snapshotReader) Close() error { return r.file.Close() }
