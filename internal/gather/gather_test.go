package gather

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestWhoeverComesFirstSeesToThoseThatCameBefore(t *testing.T) {
	var g Of[string]
	if !g.Join("a") || g.Join("b") {
		t.Error("not the first one, or not it alone, flushes")
	}
	var flushed []string
	n := g.Flush(func(x string) {
		if flushed = append(flushed, x); x == "a" && !g.Join("c") {
			t.Error("nobody flushes for one that comes while the others are flushed")
		}
	})
	if n != 2 || !slices.Equal(flushed, []string{"a", "b"}) {
		t.Errorf("%d are flushed: %q, want the two that came before", n, flushed)
	}
	if n := g.Flush(func(x string) { flushed = append(flushed, x) }); n != 1 || flushed[2] != "c" {
		t.Errorf("%d are flushed, %q at last, want the one that came later", n, flushed)
	}
	if n := g.Flush(func(string) { t.Error("nobody was there") }); n != 0 {
		t.Errorf("%d are flushed of none", n)
	}
}

func TestEveryoneWhoComesIsSeenToOnce(t *testing.T) {
	const callers, each = 8, 200
	var g Of[*atomic.Int32]
	var all [callers][each]atomic.Int32
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			for j := range all[i] {
				g.Do(&all[i][j], func(x *atomic.Int32) { x.Add(1) })
			}
		})
	}
	work.Wait()
	for i := range all {
		for j := range all[i] {
			if n := all[i][j].Load(); n != 1 {
				t.Fatalf("one was seen to %d times", n)
			}
		}
	}
}

func TestGatheringAllocatesNothing(t *testing.T) {
	var g Of[*int]
	x := new(int)
	g.Do(x, func(*int) {})
	if n := testing.AllocsPerRun(100, func() { g.Do(x, func(*int) {}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
