package shardcore

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire/id"
)

// Whatever producers send, and whatever becomes of the log, every write comes to what a look through the whole log says it must.
//
// field case REP-11; matrix J4, J5, J9
func TestNumberedWritesEndAsTheLogSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Bool().Draw(t, "blocking"))
		ok := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		pick := func(n int, what string) int { return rapid.IntRange(0, n).Draw(t, what) }
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				producer := uint64(pick(5, "producer"))
				_, next, _ := w.find(producer, 0)
				sequence := next + uint64(pick(2, "past")) - uint64(min(int(next), pick(7, "back")*pick(1, "again")))
				var expected *id.Offset
				if pick(3, "conditional") == 0 {
					at := w.tail() - min(w.tail(), id.Offset(pick(1, "below the tail")))
					expected = &at
				}
				w.write(producer, sequence, []byte{byte(sequence), byte(pick(9, "content") / 9)}, expected, pick(2, "early") == 0)
			},
			"next": func(*rapid.T) {
				producer := uint64(1 + pick(4, "producer"))
				_, next, _ := w.find(producer, 0)
				w.write(producer, next, []byte{byte(next), 0}, nil, false)
			},
			"take":     func(*rapid.T) { ok(w.take()) },
			"complete": func(*rapid.T) { ok(w.take()); ok(w.complete(pick(len(w.appends), "appends"), pick(1, "as one") == 1)) },
			"fail": func(*rapid.T) {
				ok(w.take())
				if n := len(w.appends); n > 0 && pick(2, "one in three") == 0 {
					ok(w.failOne(pick(n-1, "which"), pick(1, "full") == 1))
				}
			},
			"poison": func(*rapid.T) {
				if pick(5, "one in six") == 0 {
					ok(w.take())
					ok(w.poison())
				}
			},
			"reopen": func(*rapid.T) {
				if w.poisoned || pick(5, "one in six") == 0 {
					ok(w.take())
					ok(w.reopen(pick(len(w.flying), "survived"), pick(1, "snapshot") == 1))
				}
			},
			"room": func(*rapid.T) { ok(w.room(id.Offset(pick(int(w.tail())+2, "released")))) },
			"trim": func(*rapid.T) {
				if n := len(w.stored); n > 0 && pick(3, "one in four") == 0 {
					w.trim(w.stored[pick(n-1, "base")].base)
				}
			},
			"": func(*rapid.T) { ok(w.checkMemory()) },
		})
		ok(w.take())
		w.step(Drain{})
		w.released = forAll
		ok(w.take())
		ok(w.complete(len(w.appends), false))
		if !w.drained || len(w.asked) > 0 {
			t.Fatalf("drained %v, %d writes without an answer", w.drained, len(w.asked))
		}
	})
}

// Two producers send three batches each, in every order of their own, each batch perhaps twice, and every append may fail: all ways to
// arrange that (at a landing, worlds in which the first producer begins and either all batches or none are sent twice). A batch that was acknowledged is in the log once, at the offset that was told; and in the end, sending again what was
// not acknowledged brings everything there, in order.
//
// Field case REP-10.
//
// matrix J2
func TestEverySmallWorldStoresEachNumberedBatchOnce(t *testing.T) {
	worlds := 0
	var plan []int
	for more := true; more; worlds++ {
		used := playSmall(t, plan)
		plan, more = nextPlan(used)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d worlds", worlds)
	if worlds < 10_000 {
		t.Errorf("only %d worlds", worlds)
	}
}

// choice is one decision of a small world: taken of of.
type choice struct{ taken, of int }

// nextPlan is the plan that differs from what was chosen in the last decision that has another way.
func nextPlan(used []choice) (plan []int, more bool) {
	for i := len(used) - 1; i >= 0; i-- {
		if used[i].taken+1 < used[i].of {
			for _, c := range used[:i] {
				plan = append(plan, c.taken)
			}
			return append(plan, used[i].taken+1), true
		}
	}
	return nil, false
}

func playSmall(t *testing.T, plan []int) (used []choice) {
	choose := func(of int) int {
		taken := 0
		if len(used) < len(plan) {
			taken = plan[len(used)]
		}
		used = append(used, choice{taken, of})
		return taken
	}
	w := newWorld(false)
	ok := func(err error) {
		if err != nil {
			t.Fatalf("plan %v: %v", used, err)
		}
	}
	send := func(producer, sequence uint64) {
		w.write(producer, sequence, []byte(fmt.Sprint(producer, sequence)), nil, false)
	}
	next := [3]uint64{}
	full := effort.Full()
	twice := !full && choose(2) == 1
	for next[1] < 3 || next[2] < 3 {
		// Who sends, and whether the one before is sent again with it.
		producer := uint64(1)
		begin := next[1]+next[2] == 0
		if next[1] == 3 || next[2] < 3 && (full || !begin) && choose(2) == 1 {
			producer = 2
		}
		if n := next[producer]; n > 0 && (twice || full && choose(2) == 1) {
			send(producer, n-1)
		}
		send(producer, next[producer])
		next[producer]++
		// What becomes of the appends on their way.
		ok(w.take())
		switch choose(3) {
		case 1:
			ok(w.complete(len(w.appends), true))
		case 2:
			if len(w.appends) > 0 {
				ok(w.failOne(0, false))
			}
		}
	}
	ok(w.complete(len(w.appends), false))
	for sequence := range uint64(3) { // producers send again what they have no offset for; here: everything
		send(1, sequence)
		send(2, sequence)
	}
	ok(w.take())
	ok(w.complete(len(w.appends), false))
	ok(w.checkMemory())
	want := [3]uint64{}
	for _, e := range w.stored {
		if e.sequence != want[e.producer] {
			t.Fatalf("plan %v: producer %d has %d in the log where %d belongs", used, e.producer, e.sequence, want[e.producer])
		}
		want[e.producer]++
	}
	if want[1] != 3 || want[2] != 3 || len(w.asked) > 0 {
		t.Fatalf("plan %v: %v batches are in the log, %d writes have no answer", used, want, len(w.asked))
	}
	return used
}
