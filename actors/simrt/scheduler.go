package simrt

import (
	"fmt"
	"reflect"

	"github.com/felixd/felixd/actors"
)

// Digester is an actor or message that can tell its state in 64 bits: equal states have equal digests.
type Digester interface{ Digest() uint64 }

// Scheduler runs the actors of one node inside a World.
type Scheduler struct {
	world    *World
	node     string
	executor string // who runs when no actor does
	life     *Life  // nil: as long as the world
	// Describe, when not nil, gives the size in bytes and a digest of a message that has no Digest of its own.
	Describe func(m any) (bytes int, digest uint64)
	// Observed, when not nil, is called after each turn was traced.
	Observed func(t *actors.Turn, a actors.Actor, ok bool)
}

var (
	_ actors.Scheduler    = (*Scheduler)(nil)
	_ actors.TurnLimiter  = (*Scheduler)(nil)
	_ actors.TurnObserver = (*Scheduler)(nil)
)

// Scheduler returns the scheduler of a node; node is put before the paths of its actors in a trace.
func (w *World) Scheduler(node string) *Scheduler {
	return &Scheduler{world: w, node: node, executor: node + "executor"}
}

// Schedule implements actors.Scheduler.
func (s *Scheduler) Schedule(run func()) {
	if s.life != nil {
		s.life.Post(Turns, s.executor, run)
		return
	}
	s.world.Post(Turns, s.executor, run)
}

// TurnLimit implements actors.TurnLimiter: small and full turns, as the seed decides.
func (s *Scheduler) TurnLimit() (items, bytes int) {
	r := s.world.rand
	items = 1 + r.IntN(s.world.opts.TurnItems)
	if r.IntN(4) == 0 {
		return items, 1 + r.IntN(turnBytesMax)
	}
	return items, turnBytesMax
}

// BeginTurn implements actors.TurnObserver.
func (s *Scheduler) BeginTurn(t *actors.Turn) { s.world.Name(s.node + t.Self().Path()) }

// EndTurn implements actors.TurnObserver.
func (s *Scheduler) EndTurn(t *actors.Turn, a actors.Actor, ok bool) {
	w := s.world
	w.hash.Add(uint64(t.Lifecycle()), flag(ok), flag(t.Wake()), uint64(len(t.Cells())), uint64(len(t.ChildTerminated())))
	for _, m := range t.Messages() {
		s.message(m)
	}
	if u, is := a.(interface{ Unwrap() actors.Actor }); is {
		a = u.Unwrap()
	}
	if d, is := a.(Digester); is && ok {
		w.hash.Add(d.Digest())
	}
	if w.Tracing() {
		w.Note("%s", describeTurn(t, ok))
	}
	if s.Observed != nil {
		s.Observed(t, a, ok)
	}
}

// message takes one message into the hash: type, size, content.
func (s *Scheduler) message(m any) {
	s.world.hash.Text(reflect.TypeOf(m).String())
	switch d, is := m.(Digester); {
	case is:
		s.world.hash.Add(d.Digest())
	case s.Describe != nil:
		size, digest := s.Describe(m)
		s.world.hash.Add(uint64(size), digest)
	}
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// describeTurn says in words what a turn had in it; messages of one type that follow each other are counted.
func describeTurn(t *actors.Turn, ok bool) string {
	out := ""
	add := func(format string, args ...any) {
		if out != "" {
			out += ", "
		}
		out += fmt.Sprintf(format, args...)
	}
	if l := t.Lifecycle(); l != actors.None {
		add("%s", l)
	}
	list := t.Messages()
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && reflect.TypeOf(list[i+n]) == reflect.TypeOf(list[i]) {
			n++
		}
		if n == 1 {
			add("%T", list[i])
		} else {
			add("%d %T", n, list[i])
		}
		i += n
	}
	for _, c := range t.Cells() {
		add("cell %d of %d", c.Kind, c.Sender)
	}
	for _, x := range t.ChildTerminated() {
		add("%s is gone (%s)", x.Path, x.Reason)
	}
	if t.Wake() {
		add("woken")
	}
	if !ok {
		add("PANICKED")
	}
	return out
}
