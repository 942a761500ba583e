package disklog
import ("testing";"time";"github.com/felixd/felixd/storage/batch";"github.com/felixd/felixd/wire/id";"os")
func TestTmpLone(t *testing.T) {
	for _, inflight := range []uint64{1, 8, 64} {
	for _, size := range []int{100, 4096} {
	s := realStore(t, func(o *Options){ o.SegmentBytes = 256<<20 })
	wt := newWaiter()
	l, err := s.Open(testSpec, wt, nil); if err != nil { t.Fatal(err) }
	start := time.Now(); next := id.Offset(0); seq := uint64(0)
	for time.Since(start) < 700*time.Millisecond {
		b := batchAt(next, 1, size); next = b.End(); seq++
		l.Append(seq, []*batch.Batch{b}); if seq >= inflight { wt.wait(t, seq-inflight+1) }
	}
	el := time.Since(start)
	t.Logf("inflight %d size %d: %d appends, %.1f us each, %d syncs %.1f us each", inflight, size, seq, float64(el.Microseconds())/float64(seq), s.Counters().Syncs.Load(), float64(el.Microseconds())/float64(s.Counters().Syncs.Load()))
	closeLog(t, l)
	}}
	f, _ := os.Create(t.TempDir()+"/x"); start := time.Now(); n := 0; b := make([]byte, 200)
	for time.Since(start) < 500*time.Millisecond { f.WriteAt(b, int64(n*200)); f.Sync(); n++ }
	t.Logf("raw write+fsync %.1f us", float64(time.Since(start).Microseconds())/float64(n))
}
