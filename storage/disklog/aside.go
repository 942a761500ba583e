package disklog

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/storage/vfs"
)

// SetAside moves the files of a closed log out of the way, to be deleted for good by SweepDeleted: the stream or cache was deleted. done is
// called from a job of the executor. A log that is open again is a *BusyError.
func (l *Log) SetAside(done func(error)) {
	l.store.opts.Exec.Go(diskpool.Job{
		Device: l.store.device, Kind: diskpool.Work, Owner: &l.owners, Run: func() { done(l.setAside()) }, Stalled: l.notify.Stalled, Back: l.notify.Back,
	})
}

func (l *Log) setAside() error {
	s := l.store
	dir := l.spec.dir
	s.mu.Lock()
	if _, open := s.logs[dir]; open {
		s.mu.Unlock()
		return &BusyError{Shard: l.spec.shard}
	}
	s.logs[dir] = nil // nobody opens it meanwhile
	s.mu.Unlock()
	err := s.moveAside(dir)
	s.mu.Lock()
	delete(s.logs, dir)
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("set aside log of %s: %w", l.spec.shard, err)
	}
	return nil
}

// moveAside renames a log's directory. The new name begins with the time, in microseconds, and says of what kind the log was.
func (s *Store) moveAside(dir string) error {
	name := fmt.Sprintf("%020d-%s", s.opts.Exec.Now().UnixMicro(), strings.ReplaceAll(dir, "/", "-"))
	if err := s.fs.Rename(dir, join(segment.DeletedName, name)); err != nil {
		return err
	}
	// The new name first: in between a crash may leave both, never none.
	return errors.Join(s.fs.SyncDir(segment.DeletedName), s.fs.SyncDir(path.Dir(dir)))
}

// SweepDeleted removes what was set aside longer than keep ago. It waits for the disk: call it in a job of kind Work. A crash leaves the rest
// for the next call.
func (s *Store) SweepDeleted(now time.Time, keep time.Duration) error {
	entries, err := s.fs.ReadDir(segment.DeletedName)
	if err != nil {
		return fmt.Errorf("sweep deleted logs: %w", err)
	}
	var failed error
	for _, e := range entries {
		digits, _, ok := strings.Cut(e.Name, "-")
		micros, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || e.Kind != vfs.Directory || now.Sub(time.UnixMicro(micros)) < keep {
			continue
		}
		failed = errors.Join(failed, s.removeTree(join(segment.DeletedName, e.Name)))
	}
	if failed != nil {
		return fmt.Errorf("sweep deleted logs: %w", failed)
	}
	return nil
}

// removeTree removes a log's directory: files, and no directories below it, for a log has none.
func (s *Store) removeTree(dir string) error {
	entries, err := s.fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.fs.Remove(join(dir, e.Name)); err != nil && !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
	}
	if err := s.fs.Remove(dir); err != nil {
		return err
	}
	return s.fs.SyncDir(segment.DeletedName)
}
