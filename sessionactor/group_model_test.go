package sessionactor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// groupModel is what a group is to one consumer who does one thing after the other.
type groupModel struct {
	tail, next id.Offset
	number     map[id.Offset]uint32 // deliveries
	failures   map[id.Offset]int
	state      map[id.Offset]groupState
	touched    map[id.Offset]bool // handed out in this round: the consumer can't know of it yet
}

type groupState uint8

const (
	modelFresh groupState = iota
	modelHeld
	modelOwed
	modelDelayed
	modelDone
	modelDead
)

// in lists the offsets of a state, lowest first.
func (m *groupModel) in(s groupState) (list []id.Offset) {
	for o := range m.next {
		if m.state[o] == s {
			list = append(list, o)
		}
	}
	return list
}

func (m *groupModel) hand(o id.Offset) wire.GroupRecord {
	m.number[o]++
	m.state[o], m.touched[o] = modelHeld, true
	return wire.GroupRecord{Offset: o, Attempts: min(m.number[o], 5), Payload: fmt.Append(nil, o)}
}

// poll hands out what is owed, each alone, and else what is new.
func (m *groupModel) poll(most int) (list []wire.GroupRecord) {
	if owed := m.in(modelOwed); len(owed) > 0 {
		return append(list, m.hand(owed[0]))
	}
	for len(list) < most && m.next < m.tail {
		m.next++
		list = append(list, m.hand(m.next-1))
	}
	return list
}

// nack says whether the delivery stood.
func (m *groupModel) nack(o id.Offset, attempts uint32) bool {
	if m.state[o] != modelHeld || min(m.number[o], 5) != attempts {
		return false
	}
	switch m.failures[o]++; m.failures[o] {
	case 1:
		m.state[o] = modelOwed
	case 5:
		m.state[o] = modelDead
	default:
		m.state[o] = modelDelayed
	}
	return true
}

// asked is a request of the model's round and how it must be answered.
type askedOf struct {
	m       wire.Message
	records []wire.GroupRecord
	refused bool
}

func (m *groupModel) request(r *rand.Rand, requestID uint64) (a askedOf) {
	target := groupOf(requestID)
	var known []id.Offset // that the consumer has heard of
	for o := range m.next {
		if !m.touched[o] && m.state[o] != modelFresh {
			known = append(known, o)
		}
	}
	held := slices.DeleteFunc(slices.Clone(known), func(o id.Offset) bool { return m.state[o] != modelHeld })
	from := held
	if r.IntN(8) == 0 { // a late one
		from = known
	}
	kind := r.IntN(5)
	if kind < 2 || len(from) == 0 {
		most := 1 + r.IntN(4)
		return askedOf{m: &wire.GroupPoll{GroupTarget: target, MaxRecords: uint32(most)}, records: m.poll(most)}
	}
	o := from[r.IntN(len(from))]
	if kind < 4 {
		m.state[o] = modelDone // a dead letter too: whoever was late is done with it
		return askedOf{m: &wire.GroupAck{GroupTarget: target, Offset: o}}
	}
	attempts := min(m.number[o], 5)
	return askedOf{m: &wire.GroupNack{GroupTarget: target, Offset: o, Attempts: attempts}, refused: !m.nack(o, attempts)}
}

// check compares an answer with the model's.
func (a *askedOf) check(t *testing.T, step int, f frame) {
	t.Helper()
	if got := wire.RequestIDOf(f.message); got.Set && got != wire.RequestIDOf(a.m) { // an error has none
		t.Fatalf("step %d: %+v was answered %s", step, a.m, f.payload)
	}
	switch m := f.message.(type) {
	case *wire.GroupRecords:
		same := slices.EqualFunc(m.Records, a.records, func(x, y wire.GroupRecord) bool {
			return x.Offset == y.Offset && x.Attempts == y.Attempts && string(x.Payload) == string(y.Payload)
		})
		if _, poll := a.m.(*wire.GroupPoll); !poll || !same {
			t.Fatalf("step %d: %+v was answered %s, want %+v", step, a.m, f.payload, a.records)
		}
	case *wire.CacheOK:
		if _, poll := a.m.(*wire.GroupPoll); poll || a.refused {
			t.Fatalf("step %d: %+v was answered %s", step, a.m, f.payload)
		}
	case *wire.ErrorAnswer:
		if !a.refused || m.Refusal().Code != wire.CodeStaleClaim {
			t.Fatalf("step %d: %+v was answered %s", step, a.m, f.payload)
		}
	default:
		t.Fatalf("step %d: %+v was answered %s", step, a.m, f.payload)
	}
}

// Polls, acks and nacks that one stream sends without waiting take effect in their order, and are answered in it.
func TestPipelinedRequestsOfAGroupTakeEffectInOrder(t *testing.T) {
	steps := 10_000
	if effort.Raced && !effort.Full() {
		steps /= 5
	}
	clock := manual()
	x := newSiteDisk().stored(t, setting{clock: clock})
	l, writer := dial(t, x.connect(), today()), dial(t, x.connect(), today())
	r := rand.New(rand.NewPCG(7, 7))
	m := &groupModel{number: map[id.Offset]uint32{}, failures: map[id.Offset]int{}, state: map[id.Offset]groupState{}, touched: map[id.Offset]bool{}}
	for step := 0; step < steps; {
		if r.IntN(3) == 0 && m.tail-m.next < 50 {
			var payloads []string
			for range 1 + r.IntN(40) {
				payloads = append(payloads, fmt.Sprint(m.tail))
				m.tail++
			}
			writer.publish("orders", payloads...)
		}
		clear(m.touched)
		var round []askedOf
		var sent []byte
		for range 1 + r.IntN(100) {
			a := m.request(r, uint64(step+len(round)))
			round, sent = append(round, a), wire.AppendJSONFrame(sent, a.m)
		}
		l.raw(sent)
		for i := range round {
			round[i].check(t, step, l.next())
			step++
		}
		if r.IntN(4) == 0 { // the longest pause is over
			clock.Advance(5 * time.Second)
			for _, o := range m.in(modelDelayed) {
				m.state[o] = modelOwed
			}
			for _, o := range m.in(modelHeld) { // and no claim
				l.ask(extend(o, min(m.number[o], 5), 30_000))
			}
		}
	}
	i := l.describe()
	if i.InFlight != uint64(len(m.in(modelHeld))) || i.Owed != uint64(len(m.in(modelOwed))+len(m.in(modelDelayed))) || i.DeadLetters != uint64(len(m.in(modelDead))) || i.Tail != m.tail {
		t.Errorf("%+v, want %d in flight, %d and %d owed, %d dead", i, len(m.in(modelHeld)), len(m.in(modelOwed)), len(m.in(modelDelayed)), len(m.in(modelDead)))
	}
}
