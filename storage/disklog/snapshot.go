package disklog

import (
	"errors"
	iofs "io/fs"
	"strings"

	"github.com/felixd/felixd/storage/segment"
	"github.com/felixd/felixd/wire/id"
)

// snapshotMax bounds a snapshot file. The largest is the producers of a shard: 4096 with 64 batches each, at 32 bytes.
const snapshotMax = 64 << 20

// SaveSnapshot keeps derived state, in place of what was kept under that name before. asOf says that it follows from everything before that
// offset, which lies within the log, durable or not: opening drops a snapshot of records that a power cut took. It waits for the disk: call it
// in a job of kind Work. What is larger than
// 64 MiB is for SaveSnapshotFrom.
func (l *Log) SaveSnapshot(name string, asOf id.Offset, body []byte) error {
	if err := l.reserveSnapshot(name); err != nil {
		return err
	}
	defer l.releaseSnapshot(name)
	l.maint.Lock()
	defer l.maint.Unlock()
	l.mu.Lock()
	failed := l.failed
	if failed == nil && l.closed {
		failed = &ClosedError{Shard: l.spec.shard}
	}
	l.mu.Unlock()
	if failed != nil {
		return failed
	}
	if base, _, tail := l.Bounds(); asOf < base || asOf > tail {
		return outside(name, asOf, base, tail)
	}
	content := segment.AppendSnapshot(nil, l.spec.salt, asOf, body)
	bySync, err := writeSmall(l.store.fs, l.spec.dir, segment.SnapshotName(name), content)
	if bySync {
		l.poison(err)
	}
	return err
}

// Snapshot returns what was kept under a name; false if there is none that can be used: it is damaged, or of an offset outside of the
// log. Those are counted, and whatever they hold is to be derived anew. It waits for the disk.
func (l *Log) Snapshot(name string) (asOf id.Offset, body []byte, ok bool) {
	b, err := readSmall(l.store.fs, l.path(segment.SnapshotName(name)), snapshotMax)
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, nil, false
	}
	if err == nil {
		asOf, body, err = segment.DecodeSnapshot(b, l.spec.salt)
	}
	base, _, tail := l.Bounds()
	if err != nil || asOf < base || asOf > tail {
		l.store.opts.Counters.SnapshotsIgnored.Add(1)
		return 0, nil, false
	}
	return asOf, body, true
}

// dropSnapshots removes all snapshots durably, before a cut: they tell of records that others will take the place of.
func (l *Log) dropSnapshots() error {
	entries, err := l.store.fs.ReadDir(l.spec.dir)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.drops++
	l.mu.Unlock()
	found := false
	for _, e := range entries {
		if isSnapshot(e.Name) {
			found = true
			if err := l.store.fs.Remove(l.path(e.Name)); err != nil {
				return err
			}
		}
	}
	if !found {
		return nil
	}
	return l.orPoison(l.store.fs.SyncDir(l.spec.dir))
}

func isSnapshot(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(name, segment.TempSuffix), segment.SnapshotName(""))
}
