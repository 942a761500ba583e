package segment

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/felixd/felixd/storage/vfs"
)

// moment is a disk at one moment of a writer's life, and what had been promised then.
type moment struct {
	disk           *vfs.Mem
	acked, written []promised
	op             vfs.Op
}

// TestNoCrashLosesAnAcknowledgedRecordOrMakesALogRefuse stops a writer before, in the middle of, and after everything it does to its
// disk: by a kill, by a power cut that takes all it may, and by others that take some of it.
//
// A2-A6, A15-A17, A19, B1-B3, B5, B10, M3, M6, M10; promise B of the package.
func TestNoCrashLosesAnAcknowledgedRecordOrMakesALogRefuse(t *testing.T) {
	for seed := range rounds(12, 200) {
		disk := vfs.NewMem()
		w := newWriter(t, disk, seed)
		chance := rand.New(rand.NewPCG(seed, 2))
		created := false
		disk.OnOp(func(op vfs.Op) {
			acked := slices.Clone(w.acked)
			images := []*vfs.Mem{disk.Clone(), disk.CrashHard(), disk.Crash(chance.IntN), disk.Crash(chance.IntN)}
			for i, image := range images {
				survives(t, w, moment{image, acked, w.ever, op}, created, seed, i, chance)
			}
		})
		w.create(5)
		created = true
		for range 25 {
			w.step()
		}
		disk.OnOp(nil)
	}
}

// survives opens what a crash left, and once more after a crash of the opening.
func survives(t *testing.T, w *writer, m moment, created bool, seed uint64, image int, chance *rand.Rand) {
	t.Helper()
	in := w.input(m.disk)
	in.Verify = Verify(chance.IntN(3))
	if !created {
		in.Log = [16]byte{} // nobody was told its id
	}
	p, err := NewPlan(in)
	if err != nil {
		t.Fatalf("seed %d, image %d, at %+v: the log refuses: %v; its files are %+v, its mark %+v", seed, image, m.op, err, in.Entries, p.Mark)
	}
	if p.Meta == nil {
		if created {
			t.Fatalf("seed %d, image %d, at %+v: the log is gone", seed, image, m.op)
		}
		return
	}
	if chance.IntN(4) == 0 { // the power fails again while the plan is carried out
		n := chance.IntN(8)
		var again *vfs.Mem
		opened := m.disk.Clone()
		opened.OnOp(func(vfs.Op) {
			if n--; n == 0 {
				again = opened.Crash(chance.IntN)
			}
		})
		w.apply(opened, p)
		if again != nil {
			survives(t, w, moment{again, m.acked, m.written, m.op}, created, seed, image, chance)
		}
	}
	w.apply(m.disk, p)
	if why := w.lost(m.disk, p, m.acked, m.written); why != "" {
		t.Fatalf("seed %d, image %d, at %+v: %s", seed, image, m.op, why)
	}
	again, err := NewPlan(w.input(m.disk))
	if err != nil || again.Cut != nil || len(again.Delete) > 0 || again.Create != nil || again.Next != p.Next || again.Base != p.Base || again.TruncatedBytes != 0 {
		t.Fatalf("seed %d, image %d, at %+v: a second opening decides %+v, %v", seed, image, m.op, again, err) // O4
	}
}
