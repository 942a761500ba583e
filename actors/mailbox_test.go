package actors

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
)

// blocked returns an actor that sits in its Started turn until release is called: its mailbox only fills.
func blocked(t testing.TB, s *System, b Bounds, f func(*Turn)) (ref Ref[*request], release func()) {
	gate, in := make(chan struct{}), make(chan struct{})
	ref = spawn(t, s, Spec[*request]{Name: "blocked", Kind: "blocked", Bounds: b, New: start(func(turn *Turn) {
		if turn.Lifecycle() == Started {
			close(in)
			<-gate
			return
		}
		if turn.Lifecycle() == None {
			f(turn)
		}
	})})
	wait(t, in, "Started")
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return ref, release
}

func TestFullMailboxRefusesAndKeepsMemoryFlat(t *testing.T) {
	events := &recorder{}
	clock := NewManualClock(time.Unix(0, 0))
	s := newSystem(t, Options{Events: events, Clock: clock})
	ref, release := blocked(t, s, Bounds{DataItems: 100, DataBytes: 1 << 20}, func(*Turn) {})
	defer release()
	m := &request{}
	for i := range 100 {
		if err := ref.TrySend(m, 10); err != nil {
			t.Fatalf("message %d of 100: %v", i, err)
		}
	}
	before := heapAlloc()
	for range 100_000 {
		var full *FullError
		if err := ref.TrySend(m, 10); !errors.As(err, &full) || !errors.Is(err, ErrFull) {
			t.Fatalf("full lane said %v", err)
		} else if full.Items != 100 || full.Bytes != 1000 || full.LimitItems != 100 || full.LimitBytes != 1<<20 || full.Path != "blocked" {
			t.Fatalf("%+v", full)
		}
	}
	if grown := heapAlloc() - before; grown > 64<<10 {
		t.Errorf("100,000 refusals left %d bytes", grown)
	}
	clock.Advance(fullEventEvery)
	_ = ref.TrySend(m, 10)
	got := events.named("mailbox_full")
	if len(got) != 2 || got[0].(MailboxFull).Refused != 1 || got[1].(MailboxFull).Refused != 100_000 {
		t.Errorf("events %+v: want the first refusal, and one with the 100,000 since", got)
	}
}

func heapAlloc() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestByteBoundRefusesAndAnEmptyLaneTakesAnOversizedMessage(t *testing.T) {
	s := newSystem(t, Options{})
	ref, release := blocked(t, s, Bounds{DataItems: 10, DataBytes: 100}, func(*Turn) {})
	defer release()
	if err := ref.TrySend(&request{}, 1000); err != nil {
		t.Fatalf("oversized into an empty lane: %v", err)
	}
	if err := ref.TrySend(&request{}, 0); !errors.Is(err, ErrFull) {
		t.Fatalf("behind an oversized message: %v", err)
	}
	s2 := newSystem(t, Options{})
	ref2, release2 := blocked(t, s2, Bounds{DataItems: 10, DataBytes: 100}, func(*Turn) {})
	defer release2()
	for _, c := range []struct {
		bytes int
		taken bool
	}{{60, true}, {41, false}, {40, true}, {0, true}, {1, false}} {
		if err := ref2.TrySend(&request{}, c.bytes); (err == nil) != c.taken {
			t.Errorf("%d bytes: %v", c.bytes, err)
		}
	}
}

func TestAnActorWithoutDataLaneRefusesAll(t *testing.T) {
	s := newSystem(t, Options{})
	ref := spawn(t, s, Spec[*request]{Name: "a", Kind: "a", New: start(func(*Turn) {})})
	if err := ref.TrySend(&request{}, 0); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

func TestSelfSendToAFullMailboxIsRefusedAndDoesNotBlock(t *testing.T) {
	s := newSystem(t, Options{})
	got := make(chan error, 1)
	var ref Ref[*request]
	ref, release := blocked(t, s, Bounds{DataItems: 1, DataBytes: 10}, func(turn *Turn) {
		if len(turn.Messages()) == 0 || turn.Messages()[0].(*request).n != 1 {
			return
		}
		self := RefOf[*request](turn)
		_ = self.TrySend(&request{n: 2}, 10)
		got <- self.TrySend(&request{n: 3}, 10)
	})
	if err := ref.TrySend(&request{n: 1}, 10); err != nil {
		t.Fatal(err)
	}
	release()
	if err := wait(t, got, "answer"); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

func TestMoreCompletionsThanReservedPanicInTheSender(t *testing.T) {
	s := newSystem(t, Options{})
	ref, release := blocked(t, s, Bounds{ControlItems: 2}, func(*Turn) {})
	defer release()
	for range 2 {
		if err := ref.Complete(&request{}); err != nil {
			t.Fatal(err)
		}
	}
	mustPanic(t, "third completion", func() { _ = ref.Complete(&request{}) })
	if !ref.Alive() {
		t.Error("the receiver was hit")
	}
}

func TestMoreCellsThanBoundPanicInTheSender(t *testing.T) {
	s := newSystem(t, Options{})
	ref, release := blocked(t, s, Bounds{Cells: 40}, func(*Turn) {})
	defer release()
	for i := range 200 {
		ref.Signal(Cell{Sender: uint64(i % 40), Value: i})
	}
	mustPanic(t, "cell 41", func() { ref.Signal(Cell{Sender: 40}) })
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

func TestNewestSignalWinsAndOldOnesAreNeverSeen(t *testing.T) {
	s := newSystem(t, Options{})
	got := make(chan []Cell, 1)
	ref, release := blocked(t, s, Bounds{}, func(turn *Turn) { got <- append([]Cell(nil), turn.Cells()...) })
	for v := range 1000 {
		ref.Signal(Cell{Sender: 1, Kind: 1, Value: v})
		ref.Signal(Cell{Sender: 1, Kind: 2, Value: -v})
	}
	release()
	cells := wait(t, got, "cells")
	if len(cells) != 2 || cells[0] != (Cell{1, 1, 999}) || cells[1] != (Cell{1, 2, -999}) {
		t.Fatalf("%v", cells)
	}
}

func TestControlComesFirstAndLeavesDataItsShare(t *testing.T) {
	s := newSystem(t, Options{})
	turns := make(chan []int, 10)
	ref, release := blocked(t, s, Bounds{DataItems: 100, DataBytes: 1 << 20, ControlItems: 200}, func(turn *Turn) {
		control, data := 0, 0
		for _, m := range turn.Messages() {
			if m.(*request).n == 1 {
				control++
				if data > 0 {
					t.Error("control behind data")
				}
			} else {
				data++
			}
		}
		turns <- []int{control, data}
	})
	for range 100 {
		_ = ref.Complete(&request{n: 1})
		_ = ref.TrySend(&request{n: 2}, 1)
	}
	release()
	for i, want := range [][]int{{48, 16}, {48, 16}, {4, 60}, {0, 8}} {
		if got := wait(t, turns, "turn"); got[0] != want[0] || got[1] != want[1] {
			t.Errorf("turn %d had %v control and data messages, want %v", i, got, want)
		}
	}
}

func TestATurnEndsAt64MessagesOr64KiB(t *testing.T) {
	s := newSystem(t, Options{})
	turns := make(chan int, 20)
	ref, release := blocked(t, s, roomy(), func(turn *Turn) { turns <- len(turn.Messages()) })
	for _, size := range []int{100 << 10, 30 << 10, 34 << 10, 1} {
		_ = ref.TrySend(&request{}, size)
	}
	for range 130 {
		_ = ref.TrySend(&request{}, 0)
	}
	release()
	for i, want := range []int{1, 2, 64, 64, 3} {
		if got := wait(t, turns, "turn"); got != want {
			t.Errorf("turn %d: %d messages, want %d", i, got, want)
		}
	}
}

func TestZeroRefRefusesEverything(t *testing.T) {
	var r Ref[*request]
	if err := r.TrySend(&request{}, 1); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	if err := r.Complete(&request{}); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	r.Signal(Cell{})
	r.Stop()
	if r.Alive() || r.Path() != "" || r.ID() != 0 || r != (Ref[*request]{}) {
		t.Error("zero ref is something")
	}
}

func TestNilMessagesAndNegativeSizesPanicInTheSender(t *testing.T) {
	s := newSystem(t, Options{})
	ref := spawn(t, s, Spec[any]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(*Turn) {})})
	mustPanic(t, "nil message", func() { _ = ref.TrySend(nil, 0) })
	mustPanic(t, "nil completion", func() { _ = ref.Complete(nil) })
	mustPanic(t, "negative size", func() { _ = ref.TrySend(1, -1) })
	mustPanic(t, "message through protoactor", func() { ref.b.PostUserMessage(1) })
}

func TestTurnsStayFullWhenTheRestOfATurnMeetsNewMessages(t *testing.T) {
	s, h, _ := newHandDriven(t, Options{})
	var turns []int
	ref := spawn(t, s, Spec[int]{Name: "a", Kind: "a", Bounds: roomy(), New: start(func(turn *Turn) {
		if turn.Lifecycle() == None {
			turns = append(turns, len(turn.Messages()))
		}
	})})
	h.one() // Started
	for i := range 170 {
		if i == 70 {
			h.one() // leaves 6
		}
		_ = ref.TrySend(i, 0)
	}
	h.all()
	if len(turns) != 3 || turns[0] != 64 || turns[1] != 64 || turns[2] != 42 {
		t.Errorf("170 messages came in turns of %v", turns)
	}
}
