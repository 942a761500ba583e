package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// letter is a message of the stress tests: the seq-th accepted one of a sender.
type letter struct{ sender, seq int }

// postbox is the naive twin: a mutex and slices, told of everything that happens to the real one.
type postbox struct {
	mu        sync.Mutex
	accepted  [][]letter // by sender, in order
	stepped   [][]letter
	unstepped [][]letter
}

func newPostbox(senders int) *postbox {
	return &postbox{accepted: make([][]letter, senders), stepped: make([][]letter, senders), unstepped: make([][]letter, senders)}
}

func (p *postbox) note(list [][]letter, l letter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list[l.sender] = append(list[l.sender], l)
}

// check requires that what was stepped, and then what was given back, is what was accepted: none lost, twice, or out of order.
func (p *postbox) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.accepted {
		got := append(append([]letter(nil), p.stepped[s]...), p.unstepped[s]...)
		if len(got) != len(p.accepted[s]) {
			t.Fatalf("sender %d: %d accepted, %d stepped, %d given back", s, len(p.accepted[s]), len(p.stepped[s]), len(p.unstepped[s]))
		}
		for i, l := range got {
			if l != p.accepted[s][i] {
				t.Fatalf("sender %d: %v at place %d, accepted was %v", s, l, i, p.accepted[s][i])
			}
		}
	}
}

// bombard sends from several goroutines until the ref refuses for good, or count messages were accepted; it returns the refusals for room.
func bombard(t *testing.T, ref Ref[letter], p *postbox, senders, count int) (full int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for s := range senders {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(s)))
			refused := 0
			for seq := 0; seq < count; {
				l := letter{s, seq}
				err := ref.TrySend(l, r.IntN(50))
				switch {
				case err == nil:
					p.note(p.accepted, l)
					seq++
				case errors.Is(err, ErrFull):
					refused++
					runtime.Gosched()
				case errors.Is(err, ErrStopped):
					seq = count
				default:
					t.Error(err)
				}
				if r.IntN(8) == 0 {
					ref.Signal(Cell{Sender: uint64(s), Value: seq})
				}
			}
			mu.Lock()
			full += refused
			mu.Unlock()
		})
	}
	wg.Wait()
	return full
}

// field case ACT-07
func TestNothingIsLostRepeatedOrReorderedAtAnyMailboxSize(t *testing.T) {
	for _, size := range []int{1, 2, 3, 63, 64, 65, 1023, 1024, 1025} {
		for _, tenant := range []string{"", "t"} {
			t.Run(fmt.Sprintf("%d%s", size, tenant), func(t *testing.T) {
				const senders = 8
				count := 100 + 2*size
				s := newSystem(t, Options{})
				p := newPostbox(senders)
				bounds := Bounds{DataItems: size, DataBytes: 1 << 12}
				ref := spawn(t, s, Spec[letter]{Name: "box", Kind: "box", Tenant: tenant, Bounds: bounds, OnUnstepped: func(letter) { t.Error("given back") },
					New: start(func(turn *Turn) {
						if n, held := int(turn.w.b.items.Load()), int(turn.w.b.bytes.Load()); n > size || held > 1<<12 {
							t.Errorf("%d messages, %d bytes queued, bound is %d and 4096", n, held, size)
						}
						for _, m := range turn.Messages() {
							p.note(p.stepped, m.(letter))
						}
					})})
				bombard(t, ref, p, senders, count)
				quiet(t, s, ref)
				p.check(t)
			})
		}
	}
}

// quiet waits until nobody runs the actor: it has stepped all it had accepted, or is held back.
func quiet[M any](t *testing.T, s *System, ref Ref[M]) {
	t.Helper()
	for b := ref.b; ; {
		b.mu.Lock()
		rests := !b.scheduled
		b.mu.Unlock()
		if rests {
			return
		}
		done := make(chan struct{})
		s.pool.Schedule(func() { close(done) }) // give way through the same pool
		wait(t, done, "pool")
	}
}

func TestAStopUnderFireStepsOrGivesBackEachAcceptedMessage(t *testing.T) {
	const senders = 6
	for round := range 24 {
		s := newSystem(t, Options{})
		p := newPostbox(senders)
		turns := 0
		ref := spawn(t, s, Spec[letter]{
			Name: "box", Kind: "box", Bounds: Bounds{DataItems: 200, DataBytes: 1 << 14}, Tenant: []string{"", "t"}[round%2],
			OnUnstepped: func(l letter) { p.note(p.unstepped, l) },
			New: start(func(turn *Turn) {
				for _, m := range turn.Messages() {
					p.note(p.stepped, m.(letter))
				}
				if turns++; turns == 20+round {
					if round%3 == 0 {
						panic("end")
					}
					turn.Stop()
				}
			})})
		end := s.Watch(ref)
		bombard(t, ref, p, senders, 1<<30)
		got := wait(t, end, "end")
		if (got.Reason == Panicked) != (round%3 == 0) {
			t.Fatalf("%+v", got)
		}
		p.check(t)
		shutdown(t, s)
	}
}
