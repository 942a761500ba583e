package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixd/felixd/internal/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(effort.Settled(m)) }

// patience is how long a test waits for an event that must come.
const patience = 60 * time.Second

// actFunc makes an Actor of a function.
type actFunc func(t *Turn)

func (f actFunc) Receive(t *Turn) { f(t) }

func start(f func(t *Turn)) func() Actor { return func() Actor { return actFunc(f) } }

// newSystem returns a system that is shut down, and leaves no goroutine, when the test ends.
func newSystem(t testing.TB, opts Options) *System {
	t.Helper()
	s := NewSystem(opts)
	t.Cleanup(func() { shutdown(t, s) })
	return s
}

func shutdown(t testing.TB, s *System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// wait receives from ch or fails.
func wait[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case v := <-ch:
		return v
	case <-timeout.C:
		t.Fatalf("%s did not come within %v", what, patience)
		panic("unreachable")
	}
}

// spawn is Spawn that must succeed.
func spawn[M any](t testing.TB, parent Spawner, s Spec[M]) Ref[M] {
	t.Helper()
	r, err := Spawn(parent, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func roomy() Bounds { return Bounds{DataItems: 1 << 16, DataBytes: 1 << 30, ControlItems: 1 << 12} }

// handDriven is a Scheduler that runs nothing by itself.
type handDriven struct {
	mu   sync.Mutex
	list []func()
}

func (h *handDriven) Schedule(run func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, run)
}

// one runs the oldest function; false when there is none.
func (h *handDriven) one() bool {
	h.mu.Lock()
	if len(h.list) == 0 {
		h.mu.Unlock()
		return false
	}
	f := h.list[0]
	h.list = h.list[1:]
	h.mu.Unlock()
	f()
	return true
}

func (h *handDriven) all() {
	for h.one() {
	}
}

// newHandDriven returns a system that the test drives from one goroutine, and its virtual clock.
func newHandDriven(t testing.TB, opts Options) (*System, *handDriven, *ManualClock) {
	h, clock := &handDriven{}, NewManualClock(time.Unix(1_700_000_000, 0))
	opts.Scheduler, opts.Clock = h, clock
	s := NewSystem(opts)
	t.Cleanup(func() {
		s.StopAll()
		h.all()
		shutdown(t, s)
	})
	return s, h, clock
}

// recorder is an EventSink that remembers.
type recorder struct {
	mu   sync.Mutex
	list []Event
}

func (r *recorder) Emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

func (r *recorder) named(name string) (found []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.list {
		if e.EventName() == name {
			found = append(found, e)
		}
	}
	return found
}

// request is a message with one answer; it counts all it gets.
type request struct {
	n                           int
	done                        atomic.Bool
	answered, unstepped, unknow atomic.Int32
}

func (r *request) Settled() bool { return r.done.Load() }

func (r *request) answer() {
	r.answered.Add(1)
	r.done.Store(true)
}

func (r *request) answers() int32 { return r.answered.Load() + r.unstepped.Load() + r.unknow.Load() }
