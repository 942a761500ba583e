package crashtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
)

// silent hears what a log reports.
type silent struct {
	persisted uint64
	failed    error
}

func (s *silent) Persisted(seq uint64)            { s.persisted = seq }
func (s *silent) WriteFailed(_ uint64, err error) { s.failed = err }
func (s *silent) SealFailed(_ uint64, err error)  { s.failed = err }
func (s *silent) Poisoned(err error)              { s.failed = err }
func (s *silent) Stalled()                        {}
func (s *silent) Back()                           {}

// machine is a store on a disk after a crash.
type machine struct {
	exec  *diskpool.Manual
	store *disklog.Store
	log   *disklog.Log
	told  silent
}

func start(fs vfs.FS, m *model, fsync disklog.FsyncMode) (*machine, error) {
	x := &machine{exec: diskpool.NewManual(time.Unix(1_800_000_000, 0))}
	var err error
	if x.store, err = disklog.OpenStore(fs, storeOptions(x.exec, fsync)); err != nil {
		return nil, err
	}
	spec := spec
	spec.Log = m.log
	if x.log, err = x.store.Open(spec, &x.told, nil); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *machine) stop() error {
	closed := fmt.Errorf("the log was not closed")
	x.log.Close(func(err error) { closed = err })
	x.exec.Run()
	if closed != nil {
		return closed
	}
	return x.store.Close()
}

// spec is the log that is driven.
var spec = disklog.Spec{Kind: disklog.Stream, Tenant: "acme", Namespace: "default", Name: "orders", Incarnation: 1, Compress: true}

// storeOptions makes segments small, so that a short history has many.
func storeOptions(exec diskpool.Executor, fsync disklog.FsyncMode) disklog.Options {
	var ids byte
	return disklog.Options{
		Exec: exec, Fsync: fsync, SegmentBytes: 4096, IndexSpacing: 256, ReadBytes: 2048, Preallocate: true,
		Rand: func() (b [16]byte) { ids++; b[15] = ids; return b },
	}
}

// verify opens a disk after a crash and compares it with the model.
func verify(disk *vfs.Mem, m *model, fsync disklog.FsyncMode) (truncated bool, err error) {
	found := disk.Clone()
	x, err := start(disk, m, fsync)
	if err != nil {
		return false, fmt.Errorf("open: %w", err)
	}
	if err := m.check(x.log); err != nil {
		return false, err
	}
	if n := x.store.Counters().SnapshotsIgnored.Load(); n != 0 {
		return false, fmt.Errorf("%d snapshots were of records that are not there", n)
	}
	if err := m.checkStream(x.log); err != nil {
		return false, err
	}
	truncated = x.log.Recovery().TruncatedBytes > 0
	if truncated {
		if err := reopen(found, m, fsync); err != nil {
			return true, fmt.Errorf("a crash of the recovery: %w", err)
		}
	}
	before := disk.Hash()
	again, err := start(disk.Clone(), m, fsync) // a second start, without the first one's end
	if err != nil {
		return false, fmt.Errorf("open again: %w", err)
	}
	if again.log.Recovery().TruncatedBytes != 0 || again.log.Recovery().Repaired != "" {
		return false, fmt.Errorf("open again: it repairs %q", again.log.Recovery().Repaired)
	}
	if disk.Hash() != before {
		return false, fmt.Errorf("open again: it changed the disk")
	}
	return truncated, extend(disk, x, m, fsync)
}

// extend appends to a recovered log, and opens it once more after the worst power cut.
func extend(disk *vfs.Mem, x *machine, m *model, fsync disklog.FsyncMode) error {
	base, _, tail := x.log.Bounds()
	now := model{base: base, log: x.log.ID(), floor: base, removed: base, ackedGen: x.log.Generation(), generous: x.log.Generation()}
	for _, b := range m.batches {
		if b.Base >= base && b.End() <= tail {
			now.batches = append(now.batches, b)
		}
	}
	if now.end() != tail {
		now = model{base: tail, log: now.log, floor: tail, removed: base, ackedGen: now.ackedGen, generous: now.generous}
	}
	b := now.next(rand.New(rand.NewPCG(1, uint64(tail))), 1000)
	x.log.Append(1, []*batch.Batch{b})
	x.exec.Run()
	if x.told.persisted != 1 || x.told.failed != nil {
		return fmt.Errorf("append after recovery at %d: persisted %d, %v", tail, x.told.persisted, x.told.failed)
	}
	now.batches = append(now.batches, b)
	if fsync == disklog.OnCommit {
		disk = disk.CrashHard()
		now.acked = b.End()
	} else if err := x.stop(); err != nil {
		return fmt.Errorf("stop after recovery: %w", err)
	}
	if fsync != disklog.OnCommit {
		now.acked = b.End()
	}
	y, err := start(disk, &now, fsync)
	if err != nil {
		return fmt.Errorf("open after the append: %w", err)
	}
	if err := now.check(y.log); err != nil {
		return fmt.Errorf("after the append: %w", err)
	}
	return y.stop()
}

// reopen opens a disk that has to be repaired, and opens what a kill and the worst power cut leave at each operation of that.
func reopen(disk *vfs.Mem, m *model, fsync disklog.FsyncMode) (failed error) {
	ops := 0
	disk.OnOp(func(op vfs.Op) {
		ops++
		for how, image := range []*vfs.Mem{disk.Clone(), disk.CrashHard()} {
			if failed != nil {
				return
			}
			promised := *m
			if fsync != disklog.OnCommit && how == 1 {
				promised.acked = m.base
			}
			x, err := start(image, m, fsync)
			if err == nil {
				err = promised.check(x.log)
			}
			if err != nil {
				failed = fmt.Errorf("operation %d (%s %s, image %d): %w", ops, op.Call, op.Name, how, err)
			}
		}
	})
	_, err := start(disk, m, fsync)
	disk.OnOp(nil)
	if failed == nil {
		failed = err
	}
	return failed
}
