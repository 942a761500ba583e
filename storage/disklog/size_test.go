package disklog

import (
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

// sizeOnDisk adds up the files of a log's segments.
func sizeOnDisk(t *testing.T, l *Log) (n int64) {
	t.Helper()
	list, err := l.store.fs.ReadDir(l.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name, ".log") {
			n += e.Size
		}
	}
	return n
}

// queue is fill without doing anything. It begins where the last one ended.
func (r *rig) queue(l *Log, n, size int) (list []*batch.Batch) {
	l.mu.Lock()
	next := l.nextBase
	l.mu.Unlock()
	for range n {
		b := batchAt(next, 1, size)
		list = append(list, b)
		l.Append(uint64(next)+1, []*batch.Batch{b})
		next = b.End()
	}
	return list
}

func TestTheSizeOfALogIsThatOfItsSegmentsWhateverHappensToThem(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem(), nil)
	spec := testSpec
	spec.Compress = true
	r := newRig(t, fault, nil)
	l, n := r.open(spec)
	rng := rand.New(rand.NewPCG(9, 9))
	check := func(what string) {
		t.Helper()
		if have, want := l.Size(), sizeOnDisk(t, l); have != want {
			t.Fatalf("after %s it is %d, on disk %d", what, have, want)
		}
	}
	check("its making")
	seq := uint64(1 << 20)
	cut := func(f func(seq uint64)) {
		seq++
		f(seq)
		r.exec.Run()
	}
	happened := map[string]int{}
	for range 400 {
		base, _, tail := l.Bounds()
		what := []string{"appends", "appends", "appends", "a roll", "retention", "retention up to an offset", "compression", "a cut", "a reset", "a reopen",
			"rest", "a write that fails"}[rng.IntN(12)]
		before := l.Size()
		switch what {
		case "appends":
			r.fill(l, 1+rng.IntN(20), rng.IntN(900))
		case "a roll":
			cut(l.Seal)
		case "retention":
			l.SetRetention(Retention{Bytes: 6000})
			l.Retain(0, tail, 1<<20)
		case "retention up to an offset":
			l.RetainTo(base+id.Offset(rng.IntN(30)), tail, 1<<20)
		case "compression":
			if _, err := l.CompressSealed(context.Background(), 1<<30); err != nil {
				t.Fatal(err)
			}
		case "a cut":
			cut(func(seq uint64) { l.TruncateTo(seq, max(base, tail-min(tail, id.Offset(rng.IntN(20))))) })
		case "a reset":
			if rng.IntN(4) > 0 {
				continue
			}
			cut(func(seq uint64) { l.ResetTo(seq, tail+3) })
		case "a reopen":
			r.close(l)
			r = newRig(t, fault, nil)
			l, n = r.open(spec)
		case "rest":
			r.exec.Advance(2 * r.store.opts.IdleAfter)
			r.exec.Run()
			r.exec.Advance(2 * r.store.opts.IdleAfter)
			r.exec.Run()
		case "a write that fails":
			fault.Add(vfs.Rule{Calls: []vfs.Call{vfs.CallWrite}, Name: "*.log", Times: 1, Short: true, Err: syscall.ENOSPC})
			r.fill(l, 3, 500)
			fault.Set(nil)
		}
		if l.Size() != before {
			happened[what]++
		}
		check(what)
	}
	if len(n.poisoned) > 0 {
		t.Fatal(n.poisoned)
	}
	for _, what := range []string{"appends", "a roll", "retention", "retention up to an offset", "compression", "a cut", "a reset"} {
		if happened[what] == 0 {
			t.Errorf("%s never changed it: %v", what, happened)
		}
	}
}

func TestRetentionUpToAnOffsetRemovesWholeSegmentsBelowItAndTheFloor(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	l, _ := r.open(testSpec)
	list := r.fill(l, 60, 500)
	segs := l.segments()
	for _, c := range []struct {
		offset, floor id.Offset
		budget        int64
		gone          int
		more          bool
	}{
		{0, 60, 1 << 30, 0, false},
		{segs[0].end - 1, 60, 1 << 30, 0, false},
		{segs[0].end, segs[0].end - 1, 1 << 30, 0, false},
		{60, segs[3].base + 1, 1, 1, true}, // one goes whatever the budget is
		{segs[2].end, 60, 1, 1, true},
		{segs[2].end, 60, 1, 1, false},
		{segs[5].end, segs[4].end, 1 << 30, 2, false},
		{60, 60, 1 << 30, len(segs) - 6, false}, // but not the one that is written to
		{1 << 50, 1 << 50, 1 << 30, 0, false},
	} {
		first := l.segments()
		removed, more, err := l.RetainTo(c.offset, c.floor, c.budget)
		if err != nil || removed.Segments != c.gone || more != c.more {
			t.Fatalf("%+v: %+v, %v, %v", c, removed, more, err)
		}
		base, _, _ := l.Bounds()
		if want := first[c.gone].base; base != want || removed.Records != uint64(base-first[0].base) || l.mark.now.Oldest != first[c.gone].id && c.gone > 0 {
			t.Fatalf("%+v: the log begins at %d, want %d; %+v", c, base, want, removed)
		}
		same(t, all(t, l), list[base:])
	}
	l.Close(func(error) {})
	r.exec.Run()
	if removed, more, err := l.RetainTo(60, 60, 1<<30); removed.Segments != 0 || more || err != nil {
		t.Fatal("of a closed log:", removed, more, err)
	}
}

func TestALogThatMustExistIsNotMade(t *testing.T) {
	r := newRig(t, vfs.NewMem(), nil)
	spec := testSpec
	spec.MustExist = true
	if _, err := r.store.Open(spec, &told{}, nil); !is[*MissingError](err) {
		t.Fatal(err)
	}
	if _, err := r.fs.Stat(spec.Dir()); err == nil {
		t.Fatal("something was made")
	}
	l, _ := r.open(testSpec)
	list := r.fill(l, 5, 10)
	was := l.ID()
	l.Close(func(error) {})
	r.exec.Run()
	if l, _ = r.open(spec); l.ID() != was {
		t.Fatal("another log")
	}
	same(t, all(t, l), list)
	l.Close(func(error) {})
	r.exec.Run()
	l.SetAside(func(error) {})
	r.exec.Run()
	if _, err := r.store.Open(spec, &told{}, nil); !is[*MissingError](err) {
		t.Fatal("after it was set aside:", err)
	}
}
