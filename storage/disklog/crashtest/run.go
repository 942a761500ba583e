package crashtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// campaign is one run.
type campaign struct {
	o      Options
	rng    *rand.Rand // chooses the history
	crash  *rand.Rand // chooses what power cuts take
	disk   *vfs.Mem
	lazy   *lazy      // in front of it
	fault  *vfs.Fault // in front of that
	broken bool       // only a restart helps
	exec   *diskpool.Manual
	store  *disklog.Store
	log    *disklog.Log
	model  model
	seq    uint64
	waits  map[uint64]wait
	next   uint64 // the first seq that is not acknowledged
	seen   map[uint64]bool
	ops    int
	step   int
	what   string
	result Result
	failed error
}

// Run drives a log through a history. An error says what the disk would have lost, at which step and operation of which seed.
func Run(o Options) (Result, error) {
	c := &campaign{
		o: o, rng: rand.New(rand.NewPCG(o.Seed, 1)), crash: rand.New(rand.NewPCG(o.Seed, 2)), disk: vfs.NewMem(),
		exec: diskpool.NewManual(time.Unix(1_800_000_000, 0)), waits: map[uint64]wait{}, seen: o.Seen, next: 1,
	}
	c.exec.Choose(c.rng.IntN)
	if c.seen == nil {
		c.seen = map[uint64]bool{}
	}
	c.result.Kinds = map[string]int{}
	c.lazy = &lazy{FS: c.disk, d: o.Defect}
	c.fault = vfs.NewFault(c.lazy, nil)
	c.disk.OnOp(c.look)
	c.what = "create"
	c.open()
	for c.step = 1; c.step <= o.Steps && c.failed == nil; c.step++ {
		c.act()
	}
	if c.failed == nil {
		c.what = "close"
		c.close()
	}
	c.result.DirSyncs = c.lazy.dirs
	return c.result, c.failed
}

func (c *campaign) fail(err error) {
	if c.failed == nil && err != nil {
		c.failed = fmt.Errorf("seed %d, step %d (%s), operation %d: %w", c.o.Seed, c.step, c.what, c.ops, err)
	}
}

// look is called at each operation of the disk.
func (c *campaign) look(op vfs.Op) {
	c.ops++
	if c.failed != nil || c.o.Stride > 1 && c.ops%c.o.Stride != 0 {
		return
	}
	c.result.Operations++
	c.try(c.disk.Clone(), "a kill", op)
	c.try(c.disk.CrashHard(), "the worst power cut", op)
	for range c.o.Cuts {
		c.try(c.disk.Crash(c.crash.IntN), "a power cut", op)
	}
}

func (c *campaign) try(disk *vfs.Mem, how string, op vfs.Op) {
	c.result.Images++
	kept := id.Offset(0)
	if c.model.kept != nil {
		kept = *c.model.kept
	}
	key := disk.Hash() ^ uint64(kept)<<35 ^ uint64(c.model.acked)<<20 ^ uint64(c.model.ackedGen)<<50
	if c.seen[key] || c.failed != nil {
		return
	}
	c.seen[key] = true
	c.result.Distinct++
	c.result.Kinds[c.what+"/"+op.Call.String()]++
	m := c.model
	if c.o.Fsync != disklog.OnCommit && how != "a kill" {
		m.acked = min(m.acked, m.base) // nothing was promised
		m.ackedGen = c.model.ackedGen
	}
	truncated, err := verify(disk, &m, c.o.Fsync)
	if truncated {
		c.result.Truncated++
	}
	if err != nil {
		c.fail(fmt.Errorf("%s at %s %s (phase %d, offset %d, length %d): %w", how, op.Call, op.Name, op.Phase, op.Off, op.Len, err))
	}
}

func (c *campaign) open() {
	s, err := disklog.OpenStore(c.fault, storeOptions(c.exec, c.o.Fsync))
	if err != nil {
		c.fail(err)
		return
	}
	spec := spec
	spec.Log = c.model.log
	l, err := s.Open(spec, c, nil)
	if err != nil {
		c.fail(err)
		return
	}
	c.store, c.log, c.model.log = s, l, l.ID()
}

// close stops the process in good order. Only a log that failed may say that it could not be closed well.
func (c *campaign) close() {
	if c.log == nil {
		return
	}
	closed := fmt.Errorf("the log was not closed")
	c.log.Close(func(err error) { closed = err })
	c.exec.Run()
	if closed != nil && !c.o.Faults {
		c.fail(closed)
	}
	c.broken = c.broken || closed != nil
	c.result.Rolls += c.store.Counters().Rolls.Load()
	c.fail(c.store.Close())
}
