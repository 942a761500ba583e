package disklog

import (
	"fmt"
	"io"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// streamSyncBytes is how much of a snapshot is written between two syncs of its file: so much the sync at its end, and those of the log beside it,
// may have to wait for at once.
const streamSyncBytes = 32 << 20

// SaveSnapshotFrom keeps derived state of any size, in place of what was kept under that name before, whichever way. write writes it and returns
// the offset that it is as of: it follows from everything before that. It is called once, with nothing of the log held, so that the log goes on
// beside it; what it writes goes through a buffer of one chunk, and errors of w are returned even if write passes over them.
//
// The snapshot takes its name only when the log is durable up to that offset, so that it never tells of records that a power cut takes. What
// is missing is synced here, on the caller's goroutine, beside the writes of the log; a sync or a cut that is under way is waited for, which
// ends with the disk's answer and needs no other job: so it may be called in a job of kind Work of any executor, and is to be. It must not be
// called from a Notify.
//
// Until then the old snapshot stays, and after an error it does: that of write; an offset outside of the log; *SnapshotBusyError;
// *SnapshotStaleError, after a cut or a reset since the call; *ClosedError once a close was asked for; *PoisonedError and *StuckError; and those of
// the file system. Only where the sync of the new name failed, which ends the log, the next start may find either.
func (l *Log) SaveSnapshotFrom(name string, write func(w io.Writer) (asOf id.Offset, err error)) error {
	if err := l.reserveSnapshot(name); err != nil {
		return err
	}
	defer l.releaseSnapshot(name)
	s := &saving{log: l, name: name}
	if err := s.begin(); err != nil {
		return err
	}
	asOf, err := s.fill(write)
	if err == nil {
		err = s.settle(asOf)
	}
	if err = s.end(asOf, err); err != nil {
		s.abandon()
	}
	return err
}

// reserveSnapshot makes the caller the only one that saves under a name: two would write into one file.
func (l *Log) reserveSnapshot(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.saving[name] {
		return &SnapshotBusyError{Shard: l.spec.shard, Name: name}
	}
	if l.saving == nil {
		l.saving = map[string]bool{}
	}
	l.saving[name] = true
	return nil
}

func (l *Log) releaseSnapshot(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.saving, name); len(l.saving) == 0 {
		l.saving = nil
	}
}

// keeps is why no snapshot can be kept; nil if one can. A log that is being closed takes none: its directory may be another's right after.
func (l *Log) keeps() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil && l.closing {
		return &ClosedError{Shard: l.spec.shard}
	}
	return l.failed
}

// saving is one streamed snapshot that is being written, to a temporary file.
type saving struct {
	log    *Log
	name   string
	drops  uint64 // of the log, when it began
	file   vfs.File
	at     int64 // bytes written
	synced int64 // of them
}

func (s *saving) temp() string { return s.log.path(segment.SnapshotName(s.name) + segment.TempSuffix) }

func (s *saving) begin() error {
	l := s.log
	l.maint.Lock()
	defer l.maint.Unlock()
	if err := l.keeps(); err != nil {
		return err
	}
	l.mu.Lock()
	s.drops = l.drops
	l.mu.Unlock()
	var err error
	s.file, err = createAnew(l.store.fs, s.temp())
	return err
}

// fill has the snapshot written, and synced.
func (s *saving) fill(write func(io.Writer) (id.Offset, error)) (id.Offset, error) {
	w := segment.NewStreamWriter(s, s.log.spec.salt)
	asOf, err := write(w)
	if err != nil {
		return 0, err
	}
	if err := w.Finish(asOf); err != nil {
		return 0, err
	}
	return asOf, s.log.orPoison(s.file.Sync())
}

// Write appends to the file. It gives up when the log is closed or has failed.
func (s *saving) Write(p []byte) (int, error) {
	if err := s.log.keeps(); err != nil {
		return 0, err
	}
	if _, err := s.file.WriteAt(p, s.at); err != nil {
		return 0, err
	}
	if s.at += int64(len(p)); s.at-s.synced < streamSyncBytes {
		return len(p), nil
	}
	s.synced = s.at
	return len(p), s.log.orPoison(s.file.Sync())
}

// end gives the snapshot its name, if nothing went wrong so far.
func (s *saving) end(asOf id.Offset, failed error) error {
	l := s.log
	if err := s.file.Close(); failed == nil {
		failed = err
	}
	if failed != nil {
		return failed
	}
	l.maint.Lock()
	defer l.maint.Unlock()
	if err := l.keeps(); err != nil {
		return err
	}
	base, durable, _ := l.Bounds()
	switch {
	case s.stale():
		return &SnapshotStaleError{Shard: l.spec.shard, Name: s.name}
	case asOf < base:
		return outside(s.name, asOf, base, durable)
	case asOf > durable: // durable goes back with a cut alone, and that was looked for
		panic("disklog: a snapshot is ahead of a log that was synced for it")
	}
	if err := l.store.fs.Rename(s.temp(), l.path(segment.SnapshotName(s.name))); err != nil {
		return err
	}
	return l.orPoison(l.store.fs.SyncDir(l.spec.dir))
}

// abandon removes what was written. Of a log that is closed the next start does: the file may be another's by now.
func (s *saving) abandon() {
	l := s.log
	l.maint.Lock()
	defer l.maint.Unlock()
	l.mu.Lock()
	closing := l.closing
	l.mu.Unlock()
	if !closing {
		l.store.fs.Remove(s.temp()) // opening removes it otherwise
	}
}

// stale reports whether the log was cut since the snapshot was begun.
func (s *saving) stale() bool {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.drops != s.drops
}

// settle makes the log durable up to where the snapshot is as of.
func (s *saving) settle(asOf id.Offset) error {
	l := s.log
	base, durable, tail := l.Bounds()
	if asOf <= durable && asOf >= base {
		return nil
	}
	if asOf >= base && asOf <= tail {
		l.syncNow()
	}
	_, durable, _ = l.Bounds()
	switch err := l.keeps(); {
	case err != nil:
		return err
	case s.stale():
		return &SnapshotStaleError{Shard: l.spec.shard, Name: s.name}
	case asOf < base || asOf > durable:
		return outside(s.name, asOf, base, tail)
	}
	return nil
}

func outside(name string, asOf, base, tail id.Offset) error {
	return fmt.Errorf("save snapshot %s: offset %d is not within the log, %d to %d", name, asOf, base, tail)
}
