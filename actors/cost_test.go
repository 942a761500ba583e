package actors

import (
	"fmt"
	"github.com/felixd/felixd/internal/effort"
	"runtime"
	"testing"
	"unsafe"
)

func TestSendingAndSteppingAllocateNothingInSteadyState(t *testing.T) {
	if effort.Raced {
		t.Log("sync.Pool drops items at random under the race detector; only the plain build counts allocations")
		return
	}
	for _, tenant := range []string{"", "t"} {
		s := newSystem(t, Options{})
		done := make(chan struct{}, 1)
		want := 0
		ref := spawn(t, s, Spec[*request]{Name: "a", Kind: "a", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
			for _, m := range turn.Messages() {
				if m.(*request).n == want {
					done <- struct{}{}
				}
			}
		})})
		settledAlready := &request{n: 1}
		settledAlready.answer()
		last := &request{n: 2}
		last.answer()
		want = 2
		round := func() {
			for range 100 {
				_ = ref.TrySend(settledAlready, 256)
			}
			ref.Signal(Cell{Sender: 1})
			_ = ref.TrySend(last, 256)
			<-done
		}
		for range 100 {
			round()
		}
		if n := testing.AllocsPerRun(500, round); n != 0 {
			t.Errorf("tenant %q: %v allocations per 101 messages", tenant, n)
		}
		one := func() {
			_ = ref.TrySend(last, 256)
			<-done
		}
		if n := testing.AllocsPerRun(2000, one); n != 0 {
			t.Errorf("tenant %q: %v allocations per message", tenant, n)
		}
	}
}

func TestArmingTheTimerAllocatesNothing(t *testing.T) {
	s, h, clock := newHandDriven(t, Options{})
	ref := spawn(t, s, Spec[any]{Name: "a", Kind: "a", New: start(func(*Turn) {})})
	h.all()
	w := &ref.b.w
	at := clock.Now()
	w.arm(at)
	if n := testing.AllocsPerRun(100, func() { at = at.Add(-1); w.arm(at) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The own part of an idle actor: mailbox and wrapper are one struct, and after a burst its queues hold nothing.
func TestAnIdleMailboxHoldsAtMostOneKiB(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	ref := spawn(t, s, Spec[*request]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(*Turn) {})})
	h.all()
	for i := range 50_000 {
		m := &request{}
		m.answer()
		_ = ref.TrySend(m, 1)
		if i < 1000 {
			_ = ref.Complete(&request{})
			ref.Signal(Cell{Sender: uint64(i % 500)})
		}
	}
	h.all()
	b := ref.b
	for name, q := range map[string]queue{"in": b.in, "out": b.out, "control": b.control, "ledger": b.w.ledger.q} {
		if q != (queue{}) {
			t.Errorf("%s holds memory: %+v", name, q)
		}
	}
	own := int(unsafe.Sizeof(*b)) + cap(b.cells)*int(unsafe.Sizeof(Cell{})) + cap(b.notices)*int(unsafe.Sizeof(Terminated{})) + cap(b.sysq)*16
	if own > 1<<10 || b.cellIndex != nil || b.w.turn != nil {
		t.Errorf("an idle mailbox owns %d bytes (index %v, turn %v)", own, b.cellIndex != nil, b.w.turn != nil)
	}
	t.Logf("mailbox and wrapper: %d bytes", own)
}

// field case ACT-08
func TestIdleActorsCostNoGoroutineAndLittleHeap(t *testing.T) {
	const n = 10_000
	s := newSystem(t, Options{})
	goroutines, heap := runtime.NumGoroutine(), heapAlloc()
	refs := make([]Ref[*request], n)
	started := make(chan struct{}, n)
	for i := range refs {
		refs[i] = spawn(t, s, Spec[*request]{Name: fmt.Sprint(i), Kind: "idle", Bounds: roomy(), New: start(func(turn *Turn) {
			if len(turn.Messages()) > 0 {
				started <- struct{}{}
			}
		})})
		m := &request{}
		m.answer()
		_ = refs[i].TrySend(m, 1)
	}
	for range n {
		wait(t, started, "turn")
	}
	if grown := runtime.NumGoroutine() - goroutines; grown > workersMax {
		t.Errorf("%d goroutines for %d idle actors", grown, n)
	}
	for _, ref := range refs {
		ref.b.mu.Lock()
		if !ref.b.scheduled && ref.b.w.turn != nil {
			t.Error("an idle actor keeps a Turn")
		}
		ref.b.mu.Unlock()
	}
	per := (heapAlloc() - heap) / n
	if per > 3<<10 {
		t.Errorf("%d bytes of heap per idle actor", per)
	}
	t.Logf("%d bytes of heap per idle actor, protoactor's part included", per)
	runtime.KeepAlive(refs)
}

func BenchmarkWakePingPong(b *testing.B) {
	for _, tenant := range []string{"", "t"} {
		b.Run("tenant="+tenant, func(b *testing.B) {
			s := newSystem(b, Options{})
			done := make(chan struct{}, 1)
			ref := spawn(b, s, Spec[*request]{Name: "a", Kind: "a", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
				if len(turn.Messages()) > 0 {
					done <- struct{}{}
				}
			})})
			m := &request{}
			m.answer()
			b.ReportAllocs()
			for b.Loop() {
				_ = ref.TrySend(m, 256)
				<-done
			}
		})
	}
}

// BenchmarkThroughput sends 64 messages and waits: expected near 60 ns a message, bound by the mailbox lock.
func BenchmarkThroughput(b *testing.B) {
	for _, tenant := range []string{"", "t"} {
		b.Run("tenant="+tenant, func(b *testing.B) {
			s := newSystem(b, Options{})
			done := make(chan struct{}, 1)
			seen := 0
			ref := spawn(b, s, Spec[*request]{Name: "a", Kind: "a", Tenant: tenant, Bounds: roomy(), New: start(func(turn *Turn) {
				if seen += len(turn.Messages()); seen == 64 {
					seen = 0
					done <- struct{}{}
				}
			})})
			m := &request{}
			m.answer()
			b.ReportAllocs()
			for b.Loop() {
				for range 64 {
					_ = ref.TrySend(m, 256)
				}
				<-done
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/msg")
		})
	}
}

func BenchmarkSpawnAndStop(b *testing.B) {
	s := newSystem(b, Options{})
	spec := Spec[any]{Name: "a", Kind: "a", New: start(func(*Turn) {})}
	b.ReportAllocs()
	for b.Loop() {
		ref := spawn(b, s, spec)
		end := s.Watch(ref)
		ref.Stop()
		<-end
	}
}
