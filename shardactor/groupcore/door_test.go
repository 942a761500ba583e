package groupcore

import (
	"fmt"
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
}

type doorRequest struct {
	n        int
	visit    Visit
	until    time.Duration
	answered string
}

// A door answers every request once, by its moment at the latest and in the order they came, holds no more than its bounds, and asks for the
// logs to be opened exactly when somebody asks first and when the pause after a failure that may pass is over.
func TestADoorDoesWhatItsNaiveTwinDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := DoorOptions{MaxWaiting: 4, MaxBytes: 100, Patience: 2 * time.Second, MaxWait: 6 * time.Second, Retry: time.Second, MaxRetry: 3 * time.Second}
		d, w := NewDoor(opts), &doorTwin{opts: opts, stage: "shut", pause: opts.Retry}
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
			switch op := rapid.SampledFrom([]string{"visit", "visit", "visit", "visit", "pass", "pass", "opened", "failed", "failed", "lasting", "gone"}).Draw(t, "op"); op {
			case "visit":
				x := &doorRequest{n: all}
				all++
				x.visit = Visit{
					Request: x, Bytes: rapid.IntRange(10, 60).Draw(t, "bytes"), Group: "g", Poll: rapid.Bool().Draw(t, "poll"),
					Conn: Conn(rapid.Uint64Range(1, 2).Draw(t, "conn")), Wait: time.Duration(rapid.IntRange(0, 8).Draw(t, "wait")) * time.Second,
				}
				bytes := x.visit.Bytes
				for _, y := range w.pending {
					bytes += y.visit.Bytes
				}
				a := d.Visit(w.now, x.visit)
				switch {
				case w.stage == "open":
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
					w.stage, w.pending = "opening", append(w.pending, x)
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
					answer(d.Opened(w.now), "let in", slices.Clone(w.pending))
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
				gone := slices.DeleteFunc(slices.Clone(w.pending), func(x *doorRequest) bool { return !x.visit.Poll || x.visit.Conn != 1 })
				answer(d.Gone("g", 1), "gone", gone)
				answer(d.Gone("another", 2), "gone", nil)
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

// Notes beyond the end that a log had are believed by no incarnation of their group before the group has written them anew, and by each after
// that; and as long as some stand that is known.
func TestLostNotesAreNeverBelievedBeforeTheyAreWrittenAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Lost
		beyond := map[string]bool{}
		if _, ok := l.Wanted(); ok || l.Standing() {
			t.Fatal("wanted before the end is known")
		}
		l.Begins(7)
		l.Begins(9) // the log goes on
		end, ok := l.Wanted()
		if !ok || end != 7 {
			t.Fatalf("%d, %v", end, ok)
		}
		var names []string
		for i := range rapid.IntRange(0, 4).Draw(t, "lost") {
			names = append(names, fmt.Sprint(i))
			beyond[names[i]] = true
		}
		room := rapid.IntRange(0, 5).Draw(t, "room")
		if now := l.Found(names, room); len(now) != min(room, len(names)) {
			t.Fatalf("%d of %d are brought up, there is room for %d", len(now), len(names), room)
		}
		up := map[string]bool{} // brought up since with the end
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "group"))
			if rapid.Bool().Draw(t, "durable") {
				if l.Durable(name); up[name] {
					delete(beyond, name)
				}
			} else {
				end, cut := l.BringUp(name)
				if cut != beyond[name] || cut && end != 7 {
					t.Fatalf("group %s is brought up with %d, %v; its notes stand: %v", name, end, cut, beyond[name])
				}
				up[name] = up[name] || cut
			}
			if l.Standing() != (len(beyond) > 0) {
				t.Fatalf("standing: %v, want %d", l.Standing(), len(beyond))
			}
			if err := l.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
