package durable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/storage/disklog"
	"github.com/felixd/felixd/storage/vfs"
)

// anyRule is a fault of a disk, of those that one may have.
func anyRule(rnd *rand.Rand) vfs.Rule {
	calls := []vfs.Call{vfs.CallWrite, vfs.CallWrite, vfs.CallSync, vfs.CallSyncDir, vfs.CallCreate, vfs.CallTruncate, vfs.CallRename, vfs.CallOpen, vfs.CallRead}
	errs := []error{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EMFILE, syscall.EROFS, syscall.ESTALE}
	r := vfs.Rule{Calls: calls[rnd.IntN(len(calls)):][:1], From: 1 + rnd.IntN(20), Times: 1 + rnd.IntN(3)}
	switch rnd.IntN(4) {
	case 0:
		r.Delay = time.Duration(rnd.IntN(20)) * time.Millisecond
	default:
		r.Err, r.Short, r.Late = errs[rnd.IntN(len(errs))], rnd.IntN(3) == 0, rnd.IntN(5) == 0
		// Half of a mark is what a disk does not leave of one sector.
		r.Match = func(name string) bool { return !(r.Short && strings.HasSuffix(name, "durable.mark")) }
	}
	return r
}

// Publishers go on while the calls of the disk fail and hang at random, and while the broker is stopped, killed and cut off from power: what
// was acknowledged is there at its offset, what was refused is not, and nothing is there twice.
//
// field case DUR-08 (one broker), OPS-01 (one broker); matrix E1, E3, E9, E10, E11, E17
func TestRandomFaultsNeverLoseWhatWasAcknowledged(t *testing.T) {
	const perSite = 6
	for left := testkit.Size("fault_lives"); left > 0; left -= perSite {
		seed := uint64(time.Now().UnixNano())
		t.Run(fmt.Sprint(seed), func(t *testing.T) { faultyLives(t, seed, min(left, perSite)) })
	}
}

// faultyLives is one log through so many lives of its broker.
func faultyLives(t *testing.T, seed uint64, lives int) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	s := newSite(t)
	s.store = func(o *disklog.Options) { o.SegmentBytes, o.IdleAfter = 16<<10, 200*time.Millisecond }
	mem, hits := vfs.NewMem(), int64(0)
	l := newLedger()
	for life := range lives {
		b := s.start(mem)
		l.publish(fmt.Sprint("l", life), "orders", s.connect(impatient), s.connect(impatient), s.connect(impatient))
		for range 3 + rnd.IntN(6) {
			rule := b.fault.Add(anyRule(rnd))
			testkit.After(time.Duration(rnd.IntN(40)) * time.Millisecond)
			hits += rule.Hits()
			rule.Remove()
		}
		switch rnd.IntN(4) {
		case 0:
			l.end()
			b.stop()
		case 1:
			mem = b.powerCut((*vfs.Mem).Clone) // as a kill
		default:
			mem = b.powerCut(leaves(rnd.Uint64()))
		}
		l.end()
		b = s.start(mem)
		l.check(t, read(t, s.connect(), "orders", 0, 0))
		if t.Failed() {
			t.Fatalf("life %d", life)
		}
		mem = b.powerCut((*vfs.Mem).Clone)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d acknowledged, %d unknown, %d refused, %d calls failed", len(l.told), len(l.unknown), len(l.refused), hits)
	if lives > 3 && (hits == 0 || len(l.told) == 0 || len(l.unknown)+len(l.refused) == 0) {
		t.Error("it proves little")
	}
}
