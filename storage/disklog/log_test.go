package disklog

import (
	"context"
	"strings"
	"testing"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/storage/vfs"
	"github.com/felixd/felixd/wire/id"
)

func TestWhatWasAppendedIsReadBackAfterARestart(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, fs, nil)
	l, n := r.open(testSpec)
	if !l.Recovery().Created || l.ID().IsZero() {
		t.Fatal("a new log says nothing of it")
	}
	var want []*batch.Batch
	next := id.Offset(0)
	for i := range 60 {
		b := batchAt(next, 1+i%4, 10+i*3)
		if i%7 == 0 {
			b.Publisher = strings.Repeat("p", i+1)
		}
		if i%5 == 0 {
			b.ProducerID, b.Sequence = 9, uint64(i)
		}
		want = append(want, b)
		l.Append(uint64(i+1), []*batch.Batch{b})
		next = b.End()
		if i%3 == 0 {
			r.exec.Run()
		}
	}
	r.exec.Run()
	if p, _ := n.get(); p != 60 {
		t.Fatalf("persisted %d", p)
	}
	if base, durable, tail := l.Bounds(); base != 0 || durable != next || tail != next {
		t.Fatal(base, durable, tail)
	}
	same(t, all(t, l), want)
	if r.store.Counters().Rolls.Load() < 2 {
		t.Fatal("no segment was begun")
	}
	known := l.ID()
	r.close(l)
	if fs.OpenFiles() != 0 {
		t.Fatalf("%d files are open", fs.OpenFiles())
	}

	r = newRig(t, fs, nil)
	spec := testSpec
	spec.Log = known
	l, _ = r.open(spec)
	same(t, all(t, l), want)
	for from := id.Offset(0); from < next; from++ {
		page, err := l.Read(context.Background(), from, next, 1, 1, nil)
		if err != nil || len(page) != 1 || page[0].Base > from || page[0].End() <= from {
			t.Fatalf("read %d: %v, %v", from, page, err)
		}
	}
	b := batchAt(next, 2, 5)
	l.Append(1, []*batch.Batch{b})
	r.exec.Run()
	same(t, all(t, l), append(want, b))
	r.close(l)
}
