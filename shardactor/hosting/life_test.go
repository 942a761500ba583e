package hosting

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// host performs what a Life asks for, on a place with files, and knows what must never happen.
type host struct {
	t       *rapid.T
	l       Life
	durable bool
	up      bool // an incarnation runs
	open    bool // its files, or those of one before it, are not closed
	job     Then // Close or Aside that is under way
	closed  int
	aside   bool
	free    bool
	ups     int
	alone   time.Time // quarantined until then
}

func (h *host) do(then Then) {
	switch then {
	case Nothing:
	case Start:
		if h.up || h.open || h.job != Nothing || h.l.Removed() || h.aside || h.free {
			h.t.Fatalf("brought up: %+v", h)
		}
		h.up, h.open = true, h.durable
		h.ups++
		h.l.Started(h.durable)
	case Stop:
		if !h.up {
			h.t.Fatal("stopped, and it does not run")
		}
	case Close:
		if h.up || !h.open || h.job != Nothing {
			h.t.Fatalf("closed: %+v", h)
		}
		h.job = Close
	case Aside:
		if h.up || h.open || h.job != Nothing || !h.l.Removed() || h.aside {
			h.t.Fatalf("set aside: %+v", h)
		}
		h.job = Aside
	case Free:
		if h.up || h.open || h.job != Nothing || !h.l.Removed() || h.free {
			h.t.Fatalf("let go: %+v", h)
		}
		h.free = true
	}
}

// Whatever fails, is removed, or takes its time: files have one user at a time, are closed once for each incarnation, and end where they
// belong.
func TestFilesHaveOneUserAndEndWhereTheyBelong(t *testing.T) {
	removals := 0
	rapid.Check(t, func(t *rapid.T) {
		h := &host{t: t, durable: rapid.Bool().Draw(t, "durable")}
		now, aside, draining := time.UnixMilli(0), false, false
		h.do(h.l.Again())
		end := func(panicked bool) {
			h.up = false
			then, failed := h.l.Terminated(panicked, draining)
			if failed != (panicked && !draining && !h.l.Removed()) {
				t.Fatalf("panicked %v, draining %v: failed %v", panicked, draining, failed)
			}
			h.do(then)
			if failed {
				then, at, quarantined := h.l.Failed(now)
				if quarantined != at.After(now) || quarantined && then != Nothing {
					t.Fatalf("quarantined %v until %v, it is %v", quarantined, at, now)
				}
				if h.alone = (time.Time{}); quarantined {
					h.alone = at
				}
				h.do(then)
			}
		}
		job := func() {
			done := h.job
			if h.job = Nothing; done == Close {
				h.open = false
				h.closed++
			} else {
				h.aside = true
			}
			h.do(h.l.FilesEnded(done == Aside, draining))
		}
		remove := func() {
			aside = rapid.Bool().Draw(t, "aside")
			then, quarantined := h.l.Remove(aside)
			if quarantined != !h.alone.IsZero() {
				t.Fatalf("quarantined %v, until %v", quarantined, h.alone)
			}
			h.alone = time.Time{}
			h.do(then)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2:
				if h.up {
					end(!h.l.Removed() && rapid.IntRange(0, 9).Draw(t, "panics") > 0)
				}
			case 3, 4, 5:
				if h.job != Nothing {
					job()
				}
			case 6:
				now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "seconds")) * time.Second)
			case 7:
				if draining {
					break
				}
				then, due := h.l.Retry(now)
				if due != (!h.alone.IsZero() && !now.Before(h.alone)) {
					t.Fatalf("due %v at %v, left alone until %v", due, now, h.alone)
				}
				if due {
					h.alone = time.Time{}
				}
				h.do(then)
			case 8:
				if !h.l.Removed() && rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
					remove()
				} else if h.l.Removed() && !h.free && !h.aside && h.job != Aside && (h.up || h.job == Close) {
					aside = true
					h.l.Unwanted()
				}
			case 9:
				draining = draining || rapid.IntRange(0, 9).Draw(t, "drain") == 0
			}
			if h.l.Running() != h.up {
				t.Fatalf("running %v, it is %v", h.l.Running(), h.up)
			}
		}
		if !h.l.Removed() {
			remove()
		}
		for h.up || h.job != Nothing {
			if h.up {
				end(false)
			} else {
				job()
			}
		}
		want := 0
		if h.durable {
			want = h.ups
		}
		if h.closed != want || h.aside != (aside && h.durable) || h.free != h.durable {
			t.Fatalf("of %d incarnations the files were closed %d times; aside %v, want %v; let go %v", h.ups, h.closed, h.aside, aside, h.free)
		}
		removals++
	})
	if removals == 0 {
		t.Error("nothing was removed")
	}
}
