package diskpool

import (
	"slices"
	"testing"
	"time"
)

func TestManualRunsInOrderAndOnlyWhenStepped(t *testing.T) {
	m := NewManual(start)
	var got []string
	say := func(s string) func() { return func() { got = append(got, s) } }
	m.Go(Job{Kind: Write, Owner: 1, Run: func() {
		got = append(got, "w1")
		m.Go(Job{Kind: Write, Owner: 1, Run: say("w1 again")})
	}})
	m.Go(Job{Kind: Sync, Owner: 1, Run: say("s1")})
	m.Go(Job{Kind: Write, Owner: 2, Run: say("w2")})
	if len(got) != 0 || len(m.Waiting()) != 3 {
		t.Fatal(got)
	}
	if !m.Step() || len(got) != 1 {
		t.Fatal(got)
	}
	if n := m.Run(); n != 3 || m.Step() || m.Ran() != 4 {
		t.Fatal(n, got)
	}
	if want := []string{"w1", "s1", "w2", "w1 again"}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

func TestManualChoosesAmongFirstsOfEachDeviceAndKind(t *testing.T) {
	m := NewManual(start)
	var got []string
	add := func(name string, device uint64, k Kind) {
		m.Go(Job{Device: device, Kind: k, Owner: name, Run: func() { got = append(got, name) }})
	}
	add("w1a", 1, Write)
	add("w1b", 1, Write)
	add("s1", 1, Sync)
	add("w2", 2, Write)
	var offered []int
	m.Choose(func(n int) int { offered = append(offered, n); return n - 1 })
	m.Run()
	if want := []string{"w2", "s1", "w1a", "w1b"}; !slices.Equal(got, want) || !slices.Equal(offered, []int{3, 2}) {
		t.Fatalf("%v, offered %v", got, offered)
	}
}

func TestManualHoldsStallsAndLetsGo(t *testing.T) {
	m := NewManual(start)
	var got []string
	say := func(s string) func() { return func() { got = append(got, s) } }
	m.Hold(func(j Job) bool { return j.Kind == Sync })
	m.Go(Job{Kind: Sync, Run: say("sync"), Stalled: say("stalled"), Back: say("back")})
	m.Go(Job{Kind: Sync, Run: say("bare")})
	m.Go(Job{Kind: Write, Run: say("write")})
	stop := m.After(time.Second, say("never"))
	m.After(6*time.Second, say("timer"))
	if at, ok := m.NextTimer(); !ok || !at.Equal(start.Add(time.Second)) {
		t.Fatal(at, ok)
	}
	if !stop() || stop() || m.Timers() != 1 {
		t.Fatal(m.Timers())
	}
	m.Run()
	m.Advance(StallAfter - 1)
	m.Advance(2)
	m.Advance(time.Hour)
	m.Hold(nil)
	m.Run()
	if want := []string{"write", "stalled", "timer", "sync", "back", "bare"}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if _, ok := m.NextTimer(); ok || !m.Now().Equal(start.Add(time.Hour+StallAfter+1)) {
		t.Fatal(m.Now())
	}
}

func TestManualRefusesWhatBreaksItsRules(t *testing.T) {
	for name, f := range map[string]func(m *Manual){
		"nested step":   func(m *Manual) { m.Go(Job{Kind: Write, Run: func() { m.Step() }}); m.Step() },
		"two that wait": func(m *Manual) { j := Job{Kind: Work, Owner: 1, Run: func() {}}; m.Go(j); m.Go(j) },
		"time back":     func(m *Manual) { m.Advance(-1) },
		"without end": func(m *Manual) {
			var j Job
			j = Job{Kind: Work, Owner: 1, Run: func() { m.Go(j) }}
			m.Go(j)
			m.Run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(NewManual(start))
		})
	}
}

func TestTimersFireInOrderAtTheirInstant(t *testing.T) {
	c := &timers{now: start}
	var got []time.Duration
	note := func() { got = append(got, c.Now().Sub(start)) }
	c.AfterFunc(3, note)
	c.AfterFunc(1, func() { note(); c.AfterFunc(1, note); c.AfterFunc(-5, note) })
	c.AfterFunc(3, note)
	c.pass(10)
	if want := []time.Duration{1, 1, 2, 3, 3}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}
