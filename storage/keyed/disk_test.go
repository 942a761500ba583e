package keyed

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/diskpool"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// cacheOnDisk is a log in files, what is folded from it, and all that clients did.
type cacheOnDisk struct {
	t    testing.TB
	exec *diskpool.Manual
	log  *disklog.Log
	told hearing
	fold *Fold
	done *[]clientOp
	seq  uint64
}

type hearing struct {
	persisted uint64
	failed    error
}

func (h *hearing) Persisted(seq uint64)            { h.persisted = seq }
func (h *hearing) WriteFailed(_ uint64, err error) { h.failed = err }
func (h *hearing) SealFailed(_ uint64, err error)  { h.failed = err }
func (h *hearing) Poisoned(err error)              { h.failed = err }
func (h *hearing) Stalled()                        {}
func (h *hearing) Back()                           {}

const snapshotName = "keys"

// openDisk opens the log and folds it, from its snapshot if that is good.
func openDisk(t testing.TB, fs vfs.FS, log id.LogID, mode disklog.FsyncMode, done *[]clientOp) (c *cacheOnDisk, fromSnapshot bool) {
	t.Helper()
	c = &cacheOnDisk{t: t, exec: diskpool.NewManual(time.Unix(1_800_000_000, 0)), done: done}
	store, err := disklog.OpenStore(fs, disklog.Options{Exec: c.exec, SegmentBytes: 4096, IndexSpacing: 512, ReadBytes: 4096, Fsync: mode,
		Rand: func() [16]byte { return [16]byte{15: 1} }})
	if err != nil {
		t.Fatal(err)
	}
	spec := disklog.Spec{Kind: disklog.Cache, Tenant: "acme", Namespace: "default", Name: "users", Incarnation: 3, Log: log}
	if c.log, err = store.Open(spec, &c.told, nil); err != nil {
		t.Fatal(err)
	}
	base, _, tail := c.log.Bounds()
	if _, body, ok := c.log.Snapshot(snapshotName); ok {
		c.fold, _ = Load(bytes.NewReader(body), Options{Budget: NewBudget(1 << 30), InlineMax: 40}, decodeChange, Source{Base: base, Tail: tail, Batch: c.read})
		fromSnapshot = c.fold != nil
	}
	if c.fold == nil {
		c.fold = NewFold(newTestIndex(40), decodeChange, base)
	}
	for c.fold.Next() < tail {
		b, err := c.read(c.fold.Next())
		if err != nil {
			t.Fatal(err)
		}
		apply(t, c.fold, b)
	}
	return c, fromSnapshot
}

func (c *cacheOnDisk) read(at id.Offset) (*batch.Batch, error) {
	_, _, tail := c.log.Bounds()
	list, err := c.log.Read(context.Background(), at, tail, 1, 1, nil)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// value is a cold one.
func (c *cacheOnDisk) value(key []byte, at id.Offset) []byte {
	c.t.Helper()
	b, err := c.read(at)
	if err != nil {
		c.t.Fatal(err)
	}
	payload, err := RecordAt(b, at)
	if err != nil {
		c.t.Fatal(err)
	}
	change, err := decodeChange(payload, at, nil)
	if err != nil || !bytes.Equal(change.Key, key) {
		c.t.Fatalf("offset %s holds %q, not %q: %v", at, change.Key, key, err)
	}
	return change.Value
}

// append appends a batch, waits for it as its mode says, and folds it.
func (c *cacheOnDisk) append(b *batch.Batch) {
	c.t.Helper()
	c.seq++
	c.log.Append(c.seq, []*batch.Batch{b})
	c.exec.Run()
	if c.told.persisted != c.seq || c.told.failed != nil {
		c.t.Fatalf("append: %+v", c.told)
	}
	apply(c.t, c.fold, b)
}

func (c *cacheOnDisk) write(change Change) {
	*c.done = append(*c.done, clientOp{c.fold.Next(), change})
	c.append(batchOf(c.fold.Next(), change))
}

// perform does what a compaction asks for, as a shard does.
func (c *cacheOnDisk) perform(e Effect) Input {
	switch e := e.(type) {
	case SealLog:
		c.seq++
		c.log.Seal(c.seq)
		c.exec.Run()
		return Sealed{Cut: c.fold.Next()}
	case ReadValues:
		var list [][]byte
		for _, p := range e.Places {
			list = append(list, bytes.Clone(c.value(p.Key, p.Offset)))
		}
		return Values{List: list}
	case AppendMoved:
		b := &batch.Batch{Base: e.Base, Count: e.Count, Kind: batch.Records, Generation: 1, Body: e.Body}
		b.Summarize()
		c.append(b)
		return Moved{}
	case FlushLog:
		c.log.Sync()
		c.exec.Run()
		if _, durable, _ := c.log.Bounds(); durable < e.Through {
			c.t.Fatalf("flushed to %s of %s", durable, e.Through)
		}
		return Flushed{}
	case RetainFrom:
		c.log.SetRetention(disklog.Retention{Bytes: 1})
		if _, _, err := c.log.Retain(0, e.Offset, 1<<40); err != nil {
			c.t.Fatal(err)
		}
		return Retained{}
	case Pause, Finished:
	}
	return Resume{}
}

// requireTruth compares what is folded with all that clients did up to there.
func (c *cacheOnDisk) requireTruth(what string) {
	c.t.Helper()
	w := world{done: *c.done}
	want, have := w.truth(c.fold.Next()), map[string]Entry{}
	for key, e := range entriesOf(c.fold.Index()) {
		if e.Cold {
			e.Value = c.value(e.Key, e.Offset)
		}
		e.Offset, e.LogBytes, e.Cold = 0, 0, false
		have[key] = e
	}
	if !maps.EqualFunc(have, want, same) {
		c.t.Fatalf("%s: as of %s there are %d entries, want %d, or others", what, c.fold.Next(), len(have), len(want))
	}
}

// CAC-10, G6, G7: the power is cut before, in and after every operation on files of a compaction and of the snapshot after it, in the
// strictest and in the laxest mode; what is opened then is complete.
func TestAPowerCutAtAnyOperationOfACompactionOpensComplete(t *testing.T) {
	keys, stride := 60, 5
	switch {
	case effort.Full():
		keys, stride = 200, 1
	case effort.Raced:
		keys, stride = 60, 15 // it is one goroutine
	}
	for _, mode := range []disklog.FsyncMode{disklog.OnCommit, disklog.None} {
		t.Run(mode.String(), func(t *testing.T) {
			disk, done := vfs.NewMem(), new([]clientOp)
			c, _ := openDisk(t, disk, id.LogID{}, mode, done)
			rng := rand.New(rand.NewPCG(5, uint64(mode)))
			for i := range keys * 8 {
				change := put(fmt.Sprint("key-", i*7919%keys), string(bytes.Repeat([]byte{byte(i)}, i%80)))
				change.ExpiresAtMillis = uint64(i % 5 * 1000)
				if i%11 == 0 {
					change = Change{Kind: Delete, Key: change.Key}
				}
				c.write(change)
			}
			c.log.Sync() // what a compaction may not lose is what was durable before it
			c.exec.Run()
			durable := c.fold.Next()

			ops, cuts, snapshots := 0, 0, 0
			trimmed := id.Offset(0)
			disk.OnOp(func(vfs.Op) {
				if ops++; ops%stride != 0 {
					return
				}
				cuts++
				for _, image := range []*vfs.Mem{disk.Clone(), disk.CrashHard(), disk.Crash(rng.IntN)} {
					back, fromSnapshot := openDisk(t, image, c.log.ID(), mode, done)
					if back.fold.Next() < durable {
						t.Fatalf("cut %d: the log ends at %s, and %s was durable", cuts, back.fold.Next(), durable)
					}
					back.requireTruth(fmt.Sprint("cut ", cuts))
					if fromSnapshot {
						snapshots++
					}
				}
			})
			for range 2 {
				compaction := NewCompaction(c.fold.Index(), CompactionOptions{Encode: encodeMoved, Records: 16})
				var result Result
				for e := compaction.Next(nil, turnOf(c.fold)); ; {
					if end, ok := e.(Finished); ok {
						result = end.Result
						break
					}
					answer := c.perform(e)
					if _, ok := e.(AppendMoved); ok { // clients go on
						c.write(put(fmt.Sprint("key-", rng.IntN(keys)), "meanwhile"))
						c.write(Change{Kind: Delete, Key: fmt.Append(nil, "key-", rng.IntN(keys))})
					}
					e = compaction.Next(answer, turnOf(c.fold))
				}
				base, _, _ := c.log.Bounds()
				if result.Err != nil || result.Left != 0 || base != result.Cut {
					t.Fatalf("%+v, and the log begins at %s", result, base)
				}
				trimmed = base
				s := NewSnapshot(c.fold)
				var body []byte
				for more := true; more; {
					body, more = s.Next(body)
				}
				if err := c.log.SaveSnapshot(snapshotName, s.Until(), body); err != nil {
					t.Fatal(err)
				}
			}
			disk.OnOp(nil)
			c.requireTruth("in the end")
			t.Logf("%d cuts at %d operations, %d opened from a snapshot; the log begins at %s", cuts, ops, snapshots, trimmed)
			if cuts < 200/stride || snapshots == 0 {
				t.Error("it proves little")
			}
		})
	}
}
