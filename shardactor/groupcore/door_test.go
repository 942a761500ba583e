package groupcore

import (
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"pgregory.net/rapid"
)

// doorTwin is a door as plainly as it can be told: every request there was, and what has to have become of it.
type doorTwin struct {
	opts    DoorOptions
	now     time.Duration
	stage   string // "shut", "opening", "open", "failed" or "over"
	again   time.Duration
	pause   time.Duration
	pending []*doorRequest
	groups  map[string]*doorGroup // that run
}

type doorGroup struct {
	given   uint64
	leaving bool
}

func (w *doorTwin) leaves(group string) bool {
	return w.groups[group] != nil && w.groups[group].leaving
}

// waiting are the requests that wait for a group or, with "", for the logs.
func (w *doorTwin) waiting(group string) (list []*doorRequest) {
	for _, x := range w.pending {
		if g := x.visit.Group; g == group || group == "" && !w.leaves(g) {
			list = append(list, x)
		}
	}
	return list
}

type doorRequest struct {
	n        int
	visit    Visit
	until    time.Duration
	answered string
}

// A door answers every request once, by its moment at the latest and in the order they came, holds no more than its bounds, and asks for the
// logs to be opened exactly when somebody asks first and when the pause after a failure that may pass is over. It lets go of a group that rests
// unless that was given something since, and lets nothing in to it until it is over.
func TestADoorDoesWhatItsNaiveTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := DoorOptions{MaxWaiting: 4, MaxBytes: 100, Patience: 2 * time.Second, MaxWait: 6 * time.Second, Retry: time.Second, MaxRetry: 3 * time.Second}
		d, w := NewDoor(opts), &doorTwin{opts: opts, stage: "shut", pause: opts.Retry, groups: map[string]*doorGroup{}}
		if rapid.Bool().Draw(t, "open from the start") {
			d.Began()
			d.Opened(0)
			d.Up("g")
			w.stage, w.groups["g"] = "open", &doorGroup{}
		}
		all := 0
		answer := func(list []Visit, how string, want []*doorRequest) {
			if len(list) != len(want) {
				t.Fatalf("%d are %s, want %d", len(list), how, len(want))
			}
			for i, v := range list {
				x := v.Request.(*doorRequest)
				if x != want[i] || x.answered != "" {
					t.Fatalf("request %d is %s, was %q, want %d", x.n, how, x.answered, want[i].n)
				}
				left := max(0, min(x.visit.Wait, x.until-w.now))
				if how == "let in" && x.visit.Poll && v.Wait != left {
					t.Fatalf("request %d has %v left, want %v", x.n, v.Wait, left)
				}
				x.answered = how
			}
			w.pending = slices.DeleteFunc(w.pending, func(x *doorRequest) bool { return x.answered != "" })
		}
		is := func(f *wire.Refusal, code wire.Code) {
			if f == nil || f.Code != code || f.Retry != wire.RetryAfter && f.Retry != wire.RetryRetry || f.Retry == wire.RetryAfter && f.RetryAfterMS == 0 {
				t.Fatalf("refused with %+v, want %s", f, code)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			group := rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group")
			switch op := rapid.SampledFrom([]string{"visit", "visit", "visit", "visit", "pass", "pass", "opened", "failed", "failed", "lasting", "gone", "up", "up", "given", "rests", "rests", "over"}).Draw(t, "op"); op {
			case "visit":
				x := &doorRequest{n: all}
				all++
				x.visit = Visit{
					Request: x, Bytes: rapid.IntRange(10, 60).Draw(t, "bytes"), Group: group, Poll: rapid.Bool().Draw(t, "poll"),
					Conn: Conn(rapid.Uint64Range(1, 2).Draw(t, "conn")), Wait: time.Duration(rapid.IntRange(0, 8).Draw(t, "wait")) * time.Second,
				}
				bytes := x.visit.Bytes
				for _, y := range w.pending {
					bytes += y.visit.Bytes
				}
				a := d.Visit(w.now, x.visit)
				switch {
				case w.stage == "open" && !w.leaves(group):
					if !a.In || a.Open || a.Refusal != nil {
						t.Fatalf("%+v at an open door", a)
					}
				case w.stage == "failed" || w.stage == "over":
					is(a.Refusal, wire.CodeStorage)
				case len(w.pending) == opts.MaxWaiting || bytes > opts.MaxBytes && len(w.pending) > 0:
					is(a.Refusal, wire.CodeOverloaded)
				default:
					if a.In || a.Refusal != nil || a.Open != (w.stage == "shut") {
						t.Fatalf("%+v, it is %s", a, w.stage)
					}
					x.until = w.now + opts.Patience
					if x.visit.Poll && x.visit.Wait > 0 {
						x.until = w.now + min(x.visit.Wait, opts.MaxWait)
					}
					if w.pending = append(w.pending, x); w.stage == "shut" {
						w.stage = "opening"
					}
				}
			case "pass":
				w.now += time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond
				at, armed := d.Deadline()
				due := slices.DeleteFunc(slices.Clone(w.pending), func(x *doorRequest) bool { return x.until > w.now })
				reopens := w.stage == "failed" && w.again <= w.now
				if (len(due) > 0 || reopens) && (!armed || at > w.now) {
					t.Fatalf("no Wake is asked for at %v: %v, %v", w.now, at, armed)
				}
				over, f, open := d.Wake(w.now)
				if len(over) > 0 {
					is(&f, wire.CodeShardUnavailable)
				}
				answer(over, "refused", due)
				if open != reopens {
					t.Fatalf("opens again: %v, want %v", open, reopens)
				}
				if reopens {
					w.stage = "opening"
				}
			case "opened":
				if w.stage == "opening" {
					answer(d.Opened(w.now), "let in", w.waiting(""))
					w.stage, w.pause = "open", opts.Retry
				}
			case "failed", "lasting":
				if w.stage == "shut" {
					continue
				}
				list, f := d.Failed(w.now, "EIO", op == "lasting")
				is(&f, wire.CodeStorage)
				answer(list, "refused", slices.Clone(w.pending))
				switch {
				case op == "lasting" || w.stage == "over":
					w.stage = "over"
				case w.stage != "failed":
					w.stage, w.again = "failed", w.now+w.pause
					w.pause = min(2*w.pause, opts.MaxRetry)
				}
			case "gone":
				gone := slices.DeleteFunc(w.waiting(group), func(x *doorRequest) bool { return !x.visit.Poll || x.visit.Conn != 1 })
				answer(d.Gone(group, 1), "gone", gone)
				answer(d.Gone("another", 2), "gone", nil)
			case "up":
				if w.stage == "open" && w.groups[group] == nil {
					d.Up(group)
					w.groups[group] = &doorGroup{}
				}
			case "given":
				if g := w.groups[group]; w.stage == "open" && g != nil && !g.leaving {
					d.Given(group)
					g.given++
				}
			case "rests":
				late := rapid.Uint64Range(0, 1).Draw(t, "given since")
				g := w.groups[group]
				let := g != nil && !g.leaving && late == 0
				if d.Rests(group, d.GivenTo(group)-late) != let {
					t.Fatalf("let go of: %v, want %v", !let, let)
				}
				if let {
					g.leaving = true
				}
			case "over":
				g := w.groups[group]
				if g == nil {
					continue
				}
				var want []*doorRequest
				if g.leaving && w.stage == "open" {
					want = w.waiting(group)
				}
				delete(w.groups, group)
				answer(d.Over(w.now, group), "let in", want)
			}
			staying := 0
			for name, g := range w.groups {
				if !g.leaving {
					staying++
				}
				if d.GivenTo(name) != g.given {
					t.Fatalf("%q was given %d, not %d", name, g.given, d.GivenTo(name))
				}
			}
			if d.Staying() != staying {
				t.Fatalf("%d groups stay, not %d", staying, d.Staying())
			}
			if err := d.check(); err != nil {
				t.Fatal(err)
			}
		}
		answer(d.Close(), "refused", slices.Clone(w.pending))
		if _, armed := d.Deadline(); armed && w.stage != "failed" {
			t.Fatal("a Wake is asked for at a door in front of which nobody waits")
		}
	})
}
