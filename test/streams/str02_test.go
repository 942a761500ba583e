package streams

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/internal/testkit"
)

// field case STR-02, the half that needs no disk: much more is published than the process may hold, beside twenty readers that take
// next to nothing. Its memory stays below its limit all the time, and does not rise any more once it is warm.
func TestSTR02_SlowConsumersAndUnreadBacklogsDoNotGrowMemory(t *testing.T) {
	t.Parallel()
	const slow, batch, size = 20, 64, 1 << 10
	ctx, stop := context.WithCancel(patient(t))
	limit, limits := bounded()
	b := start(t, testkit.Setup{MemoryLimit: limit, Limits: &limits})
	var readers sync.WaitGroup
	for i := range slow {
		s := subscribe(t, b.Client(t, narrow), orders, client.SubscribeOptions{})
		if i%2 == 0 {
			continue // never read
		}
		readers.Go(func() {
			if _, err := drip(ctx, s, 50*time.Millisecond); err != nil {
				t.Errorf("a slow reader: %v", err)
			}
		})
	}
	f := newFlow(t, b.Client(t), orders, batch, size, 0)
	total := testkit.Size("slow_reader_mib") << 10 // records
	resident := make([]int64, 0, 40)
	for range cap(resident) {
		f.send(ctx, total/cap(resident))
		resident = append(resident, b.Look().Resident)
	}
	stop()
	readers.Wait()
	half := len(resident) / 2
	early, late := slices.Max(resident[half/2:half]), slices.Max(resident[half:])
	t.Logf("%d MiB published: at most %.1f MiB resident of %d allowed; %.1f MiB in the second quarter, %.1f MiB in the second half",
		f.sent>>10, float64(slices.Max(resident))/mib, limit/mib, float64(early)/mib, float64(late)/mib)
	if top := slices.Max(resident); top > limit*9/10 {
		t.Errorf("%.1f MiB were resident: the limit is %d MiB, and a tenth of it should be left", float64(top)/mib, limit/mib)
	}
	if late-early > limit/16 {
		t.Errorf("memory rises: from %.1f to %.1f MiB", float64(early)/mib, float64(late)/mib)
	}
	if lost := b.Metric(dropped); lost == 0 {
		t.Error("the slow readers lost nothing: they were not slow")
	}
}

// bounded is the memory limit of the process of STR-02, and what its streams and readers may hold of it.
func bounded() (limit int64, l node.Limits) {
	l = node.DefaultLimits()
	if effort.Full() {
		return 512 * mib * slack(), l
	}
	l.RingBytes, l.WindowBytes, l.ReaderBytes = 256<<10, 512<<10, 8*mib
	return 64 * mib * slack(), l
}
