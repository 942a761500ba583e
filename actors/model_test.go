package actors

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type modelMsg struct{ n, bytes int }

// boxModel is the naive twin of a mailbox: slices and nothing else.
type boxModel struct {
	bounds   Bounds
	data     []*modelMsg
	control  []*modelMsg
	cells    []Cell
	stopped  bool
	stepped  []*modelMsg // data and control, in the order the actor must see them
	unseen   []*modelMsg // data given back at the stop
	lost     []*modelMsg // control given back
	seen     []Cell
	sequence int
}

func (m *boxModel) held() (n int) {
	for _, d := range m.data {
		n += d.bytes
	}
	return n
}

// turn is one turn as the package doc describes it.
func (m *boxModel) turn(items, bytes int) {
	c := min(len(m.control), items)
	if len(m.data) > 0 {
		c = min(c, items-min(16, items/2))
	}
	m.stepped = append(m.stepped, m.control[:c]...)
	m.control = m.control[c:]
	for taken, n := 0, 0; n < items-c && len(m.data) > 0 && (n == 0 || taken+m.data[0].bytes <= bytes); n++ {
		taken += m.data[0].bytes
		m.stepped = append(m.stepped, m.data[0])
		m.data = m.data[1:]
	}
	m.seen = append(m.seen, m.cells...)
	m.cells = nil
}

// boxMachine runs the real mailbox beside the model.
type boxMachine struct {
	model   boxModel
	h       *handDriven
	ref     Ref[*modelMsg]
	started bool
	stopRan bool
	limits  [2]int
	stepped []*modelMsg
	unseen  []*modelMsg
	lost    []*modelMsg
	seen    []Cell
}

func (x *boxMachine) TurnLimit() (int, int) { return x.limits[0], x.limits[1] }

func (x *boxMachine) Schedule(run func()) { x.h.Schedule(run) }

func (x *boxMachine) receive(t *Turn) {
	for _, m := range t.Messages() {
		x.stepped = append(x.stepped, m.(*modelMsg))
	}
	x.seen = append(x.seen, t.Cells()...)
}

func (x *boxMachine) send(t *rapid.T) {
	m := &modelMsg{x.model.sequence, rapid.IntRange(0, 120).Draw(t, "bytes")}
	x.model.sequence++
	err := x.ref.TrySend(m, m.bytes)
	full := len(x.model.data) >= x.model.bounds.DataItems || (len(x.model.data) > 0 && x.model.held()+m.bytes > x.model.bounds.DataBytes)
	switch {
	case x.model.stopped:
		if !errors.Is(err, ErrStopped) {
			t.Fatalf("send after stop: %v", err)
		}
	case full:
		var fe *FullError
		if !errors.As(err, &fe) || fe.Items != len(x.model.data) || fe.Bytes != x.model.held() {
			t.Fatalf("send to a full lane of %d messages, %d bytes: %v", len(x.model.data), x.model.held(), err)
		}
	case err != nil:
		t.Fatalf("send with room: %v", err)
	default:
		x.model.data = append(x.model.data, m)
	}
}

func (x *boxMachine) complete(t *rapid.T) {
	if !x.model.stopped && len(x.model.control) == x.model.bounds.ControlItems {
		t.Skip("no room reserved")
	}
	m := &modelMsg{n: x.model.sequence}
	x.model.sequence++
	err := x.ref.Complete(m)
	if x.model.stopped != errors.Is(err, ErrStopped) || !x.model.stopped && err != nil {
		t.Fatalf("complete: %v (stopped %v)", err, x.model.stopped)
	}
	if err == nil {
		x.model.control = append(x.model.control, m)
	}
}

func (x *boxMachine) signal(t *rapid.T) {
	c := Cell{Sender: rapid.Uint64Range(0, 30).Draw(t, "sender"), Kind: CellKind(rapid.IntRange(0, 2).Draw(t, "kind")), Value: x.model.sequence}
	x.model.sequence++
	x.ref.Signal(c)
	if x.model.stopped {
		return
	}
	i := slices.IndexFunc(x.model.cells, func(o Cell) bool { return o.Sender == c.Sender && o.Kind == c.Kind })
	if i < 0 {
		x.model.cells = append(x.model.cells, c)
	} else {
		x.model.cells[i] = c
	}
}

// step lets the scheduler run one dispatch: the Started turn first, then turns, then the stop.
func (x *boxMachine) step(t *rapid.T) {
	x.limits = [2]int{rapid.IntRange(1, 70).Draw(t, "items"), rapid.IntRange(0, 300).Draw(t, "turn bytes")}
	if !x.h.one() {
		if len(x.model.data)+len(x.model.control)+len(x.model.cells) > 0 {
			t.Fatalf("there is work and nothing is scheduled")
		}
		return
	}
	switch {
	case !x.started:
		x.started = true
	case x.model.stopped && !x.stopRan:
		x.stopRan = true
		x.model.unseen, x.model.data = x.model.data, nil
		x.model.lost, x.model.control = x.model.control, nil
		x.model.cells = nil
	case !x.model.stopped:
		x.model.turn(min(x.limits[0], turnItemsMax), x.limits[1])
	}
}

func (x *boxMachine) check(t *rapid.T) {
	same(t, "stepped", x.stepped, x.model.stepped)
	same(t, "unstepped", x.unseen, x.model.unseen)
	same(t, "undelivered", x.lost, x.model.lost)
	if !slices.Equal(x.seen, x.model.seen) {
		t.Fatalf("cells: got %v, want %v", x.seen, x.model.seen)
	}
	if b := x.ref.b; int(b.items.Load()) != len(x.model.data) || int(b.bytes.Load()) != x.model.held() {
		t.Fatalf("books: %d messages, %d bytes; model %d, %d", b.items.Load(), b.bytes.Load(), len(x.model.data), x.model.held())
	}
}

func same(t *rapid.T, what string, got, want []*modelMsg) {
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %s, want %s", what, numbers(got), numbers(want))
	}
}

func numbers(list []*modelMsg) string {
	var n []int
	for _, m := range list {
		n = append(n, m.n)
	}
	return fmt.Sprint(n)
}

func TestMailboxDoesWhatItsNaiveTwinDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := &boxMachine{h: &handDriven{}}
		x.model.bounds = Bounds{
			DataItems: rapid.SampledFrom([]int{1, 2, 3, 63, 64, 65, 130}).Draw(rt, "items"), DataBytes: rapid.IntRange(1, 4000).Draw(rt, "bytes"),
			ControlItems: rapid.SampledFrom([]int{1, 2, 65, 150}).Draw(rt, "control"),
		}
		x.limits = [2]int{64, 100}
		s := NewSystem(Options{Scheduler: x})
		x.ref = spawn(t, s, Spec[*modelMsg]{
			Name: "box", Kind: "box", Bounds: x.model.bounds, New: start(x.receive),
			OnUnstepped:   func(m *modelMsg) { x.unseen = append(x.unseen, m) },
			OnUndelivered: func(m *modelMsg) { x.lost = append(x.lost, m) },
		})
		rt.Repeat(map[string]func(*rapid.T){
			"send": x.send, "send more": x.send, "complete": x.complete, "signal": x.signal, "step": x.step,
			"": x.check,
			"stop": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					x.ref.Stop()
					x.model.stopped = true
				}
			},
		})
		s.StopAll()
		x.h.all()
	})
}
