package actors

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// troubled fails while it stops, in one of several ways. It has a child, a deadline and requests it has not answered.
type troubled struct {
	t     *testing.T
	mode  int
	gate  <-chan struct{}
	over  *atomic.Bool // set when its end was told
	child *Ref[int]
	up    chan<- struct{}
}

func (a *troubled) Receive(t *Turn) {
	if a.over.Load() {
		a.t.Error("a turn after the end was told")
	}
	switch t.Lifecycle() {
	case Started:
		*a.child = spawn(a.t, t, Spec[int]{Name: "child", Kind: "child", New: start(func(*Turn) {})})
		t.ArmWake(t.Now().Add(time.Minute))
		a.up <- struct{}{}
	case Stopping:
		switch a.mode {
		case 0:
			panic("injected while stopping")
		case 1:
			if err := RefOf[*request](t).TrySend(&request{}, 1); !errors.Is(err, ErrStopped) {
				a.t.Errorf("a message to itself while stopping: %v", err)
			}
		case 2:
			<-a.gate
		}
	}
}

// field case ACT-01: an actor that panics, sends to itself or blocks in its stop handler ends once and stays stopped, with its
// children and its timer; callers hear that it was stopped.
func TestAnActorThatFailsWhileStoppingStaysStopped(t *testing.T) {
	const rounds = 1000
	clock, events := NewManualClock(time.Unix(1_700_000_000, 0)), &recorder{}
	s := newSystem(t, Options{Clock: clock, Events: events})
	for i := range rounds {
		var over atomic.Bool
		var child Ref[int]
		gate, up := make(chan struct{}), make(chan struct{}, 1)
		ref := spawn(t, s, Spec[*request]{
			Name: "troubled", Kind: "troubled", Bounds: roomy(),
			New:          func() Actor { return &troubled{t: t, mode: i % 3, gate: gate, over: &over, child: &child, up: up} },
			OnUnstepped:  func(r *request) { r.unstepped.Add(1) },
			OnUnanswered: func(r *request) { r.unknow.Add(1) },
		})
		wait(t, up, "start")
		var open [10]request
		accepted := 0
		for n := range open {
			if ref.TrySend(&open[n], 1) == nil {
				accepted++
			}
			if n == 5 {
				ref.Stop()
			}
		}
		end := s.Watch(ref)
		close(gate)
		told := wait(t, end, "end")
		over.Store(true)
		if want := map[bool]Reason{true: Panicked, false: Orderly}[i%3 == 0]; told.Reason != want {
			t.Fatalf("round %d ended as %v, want %v", i, told.Reason, want)
		}
		settled := int32(0)
		for n := range open {
			settled += open[n].answers()
		}
		if int(settled) != accepted || child.Alive() || ref.TrySend(&request{}, 1) != ErrStopped {
			t.Fatalf("round %d: %d outcomes of %d requests, child alive %v", i, settled, accepted, child.Alive())
		}
		clock.Advance(2 * time.Minute) // its deadline: nobody is woken
	}
	if n := len(events.named("actor_panicked")); n != (rounds+2)/3 {
		t.Errorf("%d panics were reported, want %d", n, (rounds+2)/3)
	}
}

// field case ACT-03: the rule for messages that wait when an actor fails. What was stepped in turns before is done, in order; what
// was in the failing turn is unknown; what was still queued is given back untouched. The next incarnation gets none of it.
func TestMessagesWaitingAtAFailureFollowOneRule(t *testing.T) {
	const messages = 1000
	rng := rand.New(rand.NewPCG(5, 8))
	for round := range 101 {
		at := 100
		if round > 0 {
			at = rng.IntN(messages)
		}
		s, h, _ := newHandDriven(t, Options{})
		var handled []int
		ref := spawn(t, s, Spec[*request]{
			Name: "a", Kind: "a", Bounds: roomy(), OnUnstepped: func(r *request) { r.unstepped.Add(1) }, OnUnanswered: func(r *request) { r.unknow.Add(1) },
			New: start(func(turn *Turn) {
				for _, m := range turn.Messages() {
					if r := m.(*request); r.n == at {
						panic("injected")
					}
				}
				for _, m := range turn.Messages() {
					r := m.(*request)
					handled = append(handled, r.n)
					r.answer()
				}
			})})
		h.all()
		all := make([]*request, messages)
		for i := range all {
			all[i] = &request{n: i}
			if err := ref.TrySend(all[i], 1); err != nil {
				t.Fatal(err)
			}
		}
		h.all()
		first := at / turnItemsMax * turnItemsMax // of the failing turn
		for i, r := range all {
			answered, unknown, refused := r.answered.Load(), r.unknow.Load(), r.unstepped.Load()
			want := [3]int32{1, 0, 0}
			if i >= first {
				want = [3]int32{0, 1, 0}
			}
			if i >= first+turnItemsMax {
				want = [3]int32{0, 0, 1}
			}
			if got := [3]int32{answered, unknown, refused}; got != want {
				t.Fatalf("crash at %d: message %d has %v answered, unknown, refused; want %v", at, i, got, want)
			}
		}
		for i, n := range handled {
			if n != i {
				t.Fatalf("crash at %d: message %d was handled in place %d", at, n, i)
			}
		}
		after := len(handled)
		spawn(t, s, Spec[*request]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(turn *Turn) { after += len(turn.Messages()) })})
		h.all()
		if after != len(handled) {
			t.Fatalf("crash at %d: the next incarnation got %d old messages", at, after-len(handled))
		}
	}
}

// field case ACT-04: requests to an actor that is full, stopping, failing and replaced again and again all end, each with one
// outcome, and so does the system.
func TestRequestsToARestartingOrStoppedActorEnd(t *testing.T) {
	const senders, each, incarnations = 8, 1250, 40
	s := NewSystem(Options{})
	var current atomic.Pointer[Ref[*request]]
	spec := func(n int) Spec[*request] {
		seen := 0
		return Spec[*request]{
			Name: "served", Kind: "served", Bounds: Bounds{DataItems: 32, DataBytes: 1 << 10}, Tenant: "t",
			OnUnstepped: func(r *request) { r.unstepped.Add(1) }, OnUnanswered: func(r *request) { r.unknow.Add(1) },
			New: start(func(turn *Turn) {
				for _, m := range turn.Messages() {
					if seen++; seen%100 == 99 && n%2 == 0 {
						panic("injected")
					}
					m.(*request).answer()
				}
			})}
	}
	first := spawn(t, s, spec(0))
	current.Store(&first)
	var sending, replacing sync.WaitGroup
	over := make(chan struct{})
	replacing.Go(func() {
		for n := 1; ; n++ {
			ref := current.Load()
			if n%2 == 0 || n > incarnations {
				ref.Stop()
			}
			select {
			case <-s.Watch(*ref):
			case <-over:
				return
			}
			next := spawn(t, s, spec(n))
			current.Store(&next)
		}
	})
	var accepted, refused atomic.Int64
	requests := make([][]request, senders)
	for i := range senders {
		requests[i] = make([]request, each)
		sending.Go(func() {
			for n := range requests[i] {
				switch err := current.Load().TrySend(&requests[i][n], 16); {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, ErrFull) || errors.Is(err, ErrStopped):
					refused.Add(1)
					requests[i][n].done.Store(true)
				default:
					t.Errorf("a request was refused with %v", err)
				}
			}
		})
	}
	sending.Wait()
	close(over)
	replacing.Wait()
	shutdown(t, s)
	outcomes := int64(0)
	for i := range requests {
		for n := range requests[i] {
			outcomes += int64(requests[i][n].answers())
		}
	}
	if outcomes != accepted.Load() || accepted.Load()+refused.Load() != senders*each || accepted.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d requests accepted, %d refused, %d outcomes", accepted.Load(), refused.Load(), outcomes)
	}
}
