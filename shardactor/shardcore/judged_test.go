package shardcore

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/felixd/felixd/internal/effort"
)

// Whatever judged writes ask for, and whatever becomes of the two logs, every one comes to what a look through the whole of its log says it
// must, once what it rests on is safe and readable, and not before.
func TestJudgedWritesEndAsTheirLogSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, err := newOffice()
		ok := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		ok(err)
		pick := func(n int, what string) int { return rapid.IntRange(0, n).Draw(t, what) }
		log := func() Log { return officeLogs[pick(1, "log")] }
		t.Repeat(map[string]func(*rapid.T){
			"ask":  func(*rapid.T) { o.ask(log(), byte(pick(3, "op")), byte(pick(2, "key")), pick(3, "early") == 0) },
			"take": func(*rapid.T) { ok(o.take()) },
			"complete": func(*rapid.T) {
				ok(o.take())
				ok(o.complete(log(), pick(len(o.appends), "appends"), pick(1, "as one") == 1))
			},
			"fail": func(*rapid.T) {
				if n := len(o.appends); n > 0 && pick(1, "one in two") == 0 {
					ok(o.failOne(pick(n-1, "which"), pick(1, "full") == 1))
				}
			},
			"stall": func(*rapid.T) {
				o.step(DiskStalled{})
				o.holds = o.core.Role() == "waiting_for_disk"
			},
			"back": func(*rapid.T) {
				if o.core.Role() == "waiting_for_disk" {
					o.holds = false
					o.letGo()
				}
				o.step(DiskBack{})
			},
			"poison": func(*rapid.T) {
				if pick(5, "one in six") == 0 {
					ok(o.poison())
				}
			},
			"reopen": func(*rapid.T) {
				if o.refuses == "" && pick(5, "one in six") > 0 {
					return
				}
				ok(o.take())
				ok(o.open(func(most int) int { return pick(most, "survived") }))
				for range pick(2, "held") {
					o.ask(log(), byte(pick(3, "op")), byte(pick(2, "key")), false)
				}
				ok(o.lead())
			},
		})
		how := pick(3, "end")
		ok(o.finish(how&1 != 0, how&2 != 0))
	})
}

// Four writes of one key (five in a full run), each of every kind, and after each what is on its way is safe, fails from the first append on, from the last
// one on, or stays: all ways to arrange that.
func TestEverySmallWorldJudgesAsItsLogSays(t *testing.T) {
	worlds := 0
	var plan []int
	for more := true; more; worlds++ {
		var used []choice
		choose := func(of int) int {
			taken := 0
			if len(used) < len(plan) {
				taken = plan[len(used)]
			}
			used = append(used, choice{taken, of})
			return taken
		}
		if err := playErrands(choose); err != nil {
			t.Fatalf("plan %v: %v", used, err)
		}
		plan, more = nextPlan(used)
	}
	t.Logf("%d worlds", worlds)
	if worlds < 8_000 {
		t.Errorf("only %d worlds", worlds)
	}
}

func playErrands(choose func(of int) int) error {
	o, err := newOffice()
	writes := 4
	if effort.Full() {
		writes = 5
	}
	for range writes {
		if err != nil {
			return err
		}
		o.ask(LogCounters, byte(choose(4)), 0, false)
		if err = o.take(); err != nil || len(o.appends) == 0 {
			continue
		}
		last := len(o.appends) - 1
		switch choose(3 + min(last, 1)) {
		case 1:
			err = o.complete(LogCounters, len(o.appends), true)
		case 2:
			err = o.failOne(last, false)
		case 3:
			err = o.failOne(0, true)
		}
	}
	if err != nil {
		return err
	}
	return o.finish(false, false)
}
