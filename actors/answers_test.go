package actors

import (
	"fmt"
	"testing"
)

// site is where an injected panic strikes.
type site struct {
	name    string
	during  string // what PanicInfo must say
	at      Lifecycle
	index   int // message that panics, -1 for none
	onStep  bool
	onKnown bool
}

var sites = []site{
	{name: "none", index: -1},
	{name: "started", during: "started", at: Started, index: -1},
	{name: "first message", during: "turn", index: 0},
	{name: "middle message", during: "turn", index: 31},
	{name: "last message", during: "turn", index: 63},
	{name: "stopping", during: "stopping", at: Stopping, index: -1},
	{name: "stopped", during: "stopped", at: Stopped, index: -1},
	{name: "unstepped callback", during: "unstepped", index: -1, onStep: true},
	{name: "unanswered callback", during: "unanswered", index: -1, onKnown: true},
}

// victim answers every third request at once, holds the others, and panics where told. When it stops in order it answers every
// second of what it holds.
type victim struct {
	site site
	gate <-chan struct{} // Started returns when the batch is complete
	held []*request
}

func (v *victim) Receive(t *Turn) {
	if t.Lifecycle() == v.site.at && v.site.at != None {
		if v.site.at == Started {
			<-v.gate
		}
		panic("injected in " + v.site.name)
	}
	switch t.Lifecycle() {
	case Started:
		<-v.gate
	case Stopping:
		for i, r := range v.held {
			if i%2 == 0 {
				r.answer()
			}
		}
	}
	for _, m := range t.Messages() {
		r := m.(*request)
		if r.n == v.site.index {
			panic("injected in " + v.site.name)
		}
		if r.n%3 == 0 {
			r.answer()
		} else {
			v.held = append(v.held, r)
		}
	}
	if len(t.Messages()) > 0 && v.site.index < 0 {
		t.Stop()
	}
}

// decision 24: every accepted request is answered exactly once, wherever the actor fails.
func TestEveryAcceptedRequestGetsOneAnswerWhereverTheActorPanics(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 200
	}
	for _, s := range sites {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, site: s, rounds: make(chan round, 1)}
			sys := newSystem(t, Options{})
			parent := spawn(t, sys, Spec[struct{}]{Name: "parent", Kind: "parent", New: start(r.parent)})
			for i := range rounds {
				r.check(wait(t, r.rounds, fmt.Sprintf("round %d", i)), i)
				r.next <- i < rounds-1
			}
			parent.Stop()
			if r.ended != rounds {
				t.Fatalf("%d ends of %d children", r.ended, rounds)
			}
		})
	}
}

// rig is the parent of the victims: it spawns the next one in the very turn that tells the end of the last.
type rig struct {
	t        *testing.T
	site     site
	rounds   chan round
	next     chan bool
	requests []*request
	ref      Ref[*request]
	ended    int
}

type round struct {
	term     Terminated
	requests []*request
	refused  bool // the dead ref refused
}

func (r *rig) parent(t *Turn) {
	if t.Lifecycle() == Started {
		r.next = make(chan bool, 1)
		r.spawn(t)
	}
	for _, end := range t.ChildTerminated() {
		r.ended++
		r.rounds <- round{end, r.requests, r.ref.TrySend(&request{}, 1) == ErrStopped && !r.ref.Alive()}
		if <-r.next {
			r.spawn(t)
		}
	}
}

// spawn starts a victim and fills its mailbox: 64 requests for its first turn, and more behind.
func (r *rig) spawn(t *Turn) {
	gate := make(chan struct{})
	defer close(gate)
	ref, err := Spawn(t, Spec[*request]{
		Name: "victim", Kind: "victim", Bounds: roomy(),
		New: func() Actor { return &victim{site: r.site, gate: gate} },
		OnUnstepped: func(q *request) {
			q.unstepped.Add(1)
			if r.site.onStep && q.n%12 == 0 {
				panic("injected in callback")
			}
		},
		OnUnanswered: func(q *request) {
			q.unknow.Add(1)
			if r.site.onKnown && q.n%12 == 8 {
				panic("injected in callback")
			}
		},
	})
	if err != nil {
		r.t.Errorf("spawn: %v", err)
		return
	}
	r.ref, r.requests = ref, nil
	for i := range 100 {
		q := &request{n: i}
		if err := ref.TrySend(q, 1<<10); err != nil {
			r.t.Errorf("send: %v", err)
			return
		}
		r.requests = append(r.requests, q)
	}
}

func (r *rig) check(got round, n int) {
	r.t.Helper()
	if got.term.Name != "victim" || got.term.Path != "parent/victim" || !got.refused {
		r.t.Fatalf("round %d: end %+v, dead ref refused: %v", n, got.term, got.refused)
	}
	if want := r.site.during; want == "" && got.term.Reason != Orderly || want != "" && (got.term.Reason != Panicked || got.term.Panic.During != want) {
		r.t.Fatalf("round %d: reason %v, panic %+v, want during %q", n, got.term.Reason, got.term.Panic, want)
	}
	for _, q := range got.requests {
		if q.answers() != 1 {
			r.t.Fatalf("round %d: request %d was answered %d, unstepped %d, unknown %d times", n, q.n, q.answered.Load(), q.unstepped.Load(), q.unknow.Load())
		}
	}
}
