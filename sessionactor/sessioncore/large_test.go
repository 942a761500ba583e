package sessioncore

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// largeWorld is a Large with what its rules are held against.
type largeWorld struct {
	t     *rapid.T
	l     *Large
	now   time.Time
	conns []*LargeConn
	held  []*LargePage // in no order
	wait  []*LargePage // as they asked
	again time.Time
}

func (w *largeWorld) sum(c *LargeConn) (n, pages int) {
	for _, p := range w.held {
		if c == nil || p.conn == c {
			n, pages = n+p.bytes, pages+1
		}
	}
	return n, pages
}

// look looks, and checks what it says.
func (w *largeWorld) look() (ended []*LargePage) {
	waited := len(w.wait) > 0
	granted, ended, again := w.l.Look(w.now)
	for _, p := range granted {
		at := slices.Index(w.wait, p)
		if at < 0 || !p.Held() {
			w.t.Fatal("a page is granted that nobody waits for")
		}
		for _, before := range w.wait[:at] {
			if before.conn == p.conn && !slices.Contains(granted, before) {
				w.t.Fatal("one that asked later of the same connection was let in first")
			}
		}
		w.wait = slices.Delete(w.wait, at, at+1)
		w.held = append(w.held, p)
	}
	for _, p := range ended {
		if !waited || !slices.Contains(w.held, p) || w.now.Before(p.until) {
			w.t.Fatal("a stream is ended that had time left, or for nobody")
		}
	}
	if n, pages := w.sum(nil); n != w.l.Used() || n > w.l.limits.Node && pages > 1 {
		w.t.Fatalf("%d bytes in %d pages, %d are counted", n, pages, w.l.Used())
	}
	for _, c := range w.conns {
		if n, pages := w.sum(c); n != c.bytes || n > w.l.limits.Conn && pages > 1 {
			w.t.Fatalf("%d bytes in %d pages of a connection, %d are counted", n, pages, c.bytes)
		}
	}
	if len(w.wait) != w.l.Waiting() || !again.IsZero() && !again.After(w.now) {
		w.t.Fatalf("%d wait, %d are counted; to look again at %v, now %v", len(w.wait), w.l.Waiting(), again, w.now)
	}
	if w.again = again; len(w.wait) > 0 && again.IsZero() && w.l.leaving == 0 {
		w.t.Fatal("somebody waits, and nothing is going to happen")
	}
	return ended
}

func (w *largeWorld) give(p *LargePage) {
	w.l.Give(p)
	w.held = slices.DeleteFunc(w.held, func(x *LargePage) bool { return x == p })
	w.wait = slices.DeleteFunc(w.wait, func(x *LargePage) bool { return x == p })
}

// Whatever asks and lets go when, no scope holds more than its limit but for a page that is alone in it, nobody is ended before its time or for
// nobody, and everybody who asks holds in the end although no client reads.
func TestLargePagesStayWithinTheirLimitsAndEverybodyGetsATurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &largeWorld{t: t, l: NewLarge(LargeLimits{Conn: 1000, Node: 2500}), now: time.Unix(0, 0), conns: []*LargeConn{{}, {}, {}, {}}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				c := w.conns[rapid.IntRange(0, len(w.conns)-1).Draw(t, "connection")]
				w.wait = append(w.wait, w.l.Ask(c, rapid.IntRange(1, 3000).Draw(t, "bytes"), nil))
			case 2:
				if all := slices.Concat(w.held, w.wait); len(all) > 0 {
					w.give(rapid.SampledFrom(all).Draw(t, "page"))
				}
			case 3:
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "milliseconds")) * time.Millisecond)
			}
			w.look()
		}
		last := time.Time{}
		for len(w.wait) > 0 { // from here on nobody reads, and who is ended lets go
			ended := w.look()
			for _, p := range slices.Clone(w.held) {
				if p.ended {
					w.give(p)
				}
			}
			if len(ended) == 0 && !w.again.IsZero() && w.l.leaving == 0 {
				if !w.again.After(last) {
					t.Fatal("time stands still")
				}
				w.now, last = w.again, w.again
			}
		}
		for _, p := range slices.Clone(w.held) {
			w.give(p)
		}
		if w.look(); w.l.used != 0 || w.l.leaving != 0 || len(w.l.conns) != 0 {
			t.Fatalf("%d bytes are left, %d of them leaving, in %d connections", w.l.used, w.l.leaving, len(w.l.conns))
		}
	})
}

func TestAConnectionOverItsShareHoldsUpNoOther(t *testing.T) {
	l, a, b := NewLarge(LargeLimits{Conn: 100, Node: 1000}), &LargeConn{}, &LargeConn{}
	now := time.Unix(0, 0)
	for range 5 {
		l.Ask(a, 60, nil)
	}
	one := l.Ask(b, 60, nil)
	if granted, ended, again := l.Look(now); len(granted) != 2 || !one.Held() || ended != nil || !again.Equal(granted[0].until) {
		t.Errorf("granted %d, ended %d, again at %v", len(granted), len(ended), again)
	}
}

// Who holds most pays, the one that has had it longest, and no more than is needed.
func TestWhoHoldsMostPaysAndNoMoreThanIsNeeded(t *testing.T) {
	l, hog, small, next := NewLarge(LargeLimits{Conn: 900, Node: 1000}), &LargeConn{}, &LargeConn{}, &LargeConn{}
	now := time.Unix(0, 0)
	first := l.Ask(small, 100, nil)
	pages := []*LargePage{l.Ask(hog, 300, nil), l.Ask(hog, 300, nil), l.Ask(hog, 300, nil)}
	l.Look(now)
	wait := l.Ask(next, 200, nil)
	if granted, ended, again := l.Look(now); granted != nil || ended != nil || !again.Equal(first.until) {
		t.Fatalf("granted %d, ended %d, again at %v", len(granted), len(ended), again)
	}
	now = pages[2].until
	if granted, ended, _ := l.Look(now); granted != nil || len(ended) != 1 || ended[0] != pages[0] {
		t.Fatalf("granted %d, ended %d", len(granted), len(ended))
	}
	if _, ended, _ := l.Look(now.Add(time.Hour)); ended != nil {
		t.Errorf("%d more were ended while the first had not let go", len(ended))
	}
	l.Give(pages[0])
	if l.Look(now); !wait.Held() {
		t.Error("there is room, and it is not let in")
	}
}
