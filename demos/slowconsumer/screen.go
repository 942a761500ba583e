package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// screen shows the table of one policy: live on a terminal, a line for each phase elsewhere.
type screen struct {
	out      io.Writer
	animated bool
	printed  int       // rows on the terminal that the next frame overwrites
	last     time.Time // when the last frame was drawn
}

// frame is how often a live table is drawn.
const frame = 200 * time.Millisecond

func newScreen(out io.Writer, p policy, terminal bool) *screen {
	fmt.Fprintf(out, "\n%s\n", title(p))
	fmt.Fprintln(out, header())
	return &screen{out: out, animated: terminal}
}

func title(p policy) string {
	if p == dropNew {
		return "drop_new: a subscriber whose window is full loses what arrives; nobody waits for it"
	}
	return "block: an acknowledgement waits until every subscriber has room; nobody loses anything"
}

func header() string {
	return fmt.Sprintf("%-17s %11s %14s %10s %14s %8s %10s", "phase", "published/s", "slow one/s", "lost", "slowest other", "lost", "held")
}

func (x row) String() string {
	return fmt.Sprintf("%-17s %11.0f %14.0f %10d %14.0f %8d %10s", x.phase, x.published, x.slow, x.slowLost, x.others, x.otherLost, mebibytes(x.held))
}

// live draws the finished rows and the one in progress, at most every frame.
func (s *screen) live(rows []row, now row) {
	if !s.animated || time.Since(s.last) < frame {
		return
	}
	s.last = time.Now()
	s.draw(append(rows[:len(rows):len(rows)], now))
}

// done draws a finished phase.
func (s *screen) done(rows []row) {
	if !s.animated {
		fmt.Fprintln(s.out, rows[len(rows)-1])
		return
	}
	s.draw(rows)
}

// draw overwrites the rows of the last frame: up so many lines, then each line anew up to its end.
func (s *screen) draw(rows []row) {
	var b strings.Builder
	if s.printed > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.printed)
	}
	for _, x := range rows {
		fmt.Fprintf(&b, "\r%s\x1b[K\n", x)
	}
	s.printed = len(rows)
	fmt.Fprint(s.out, b.String())
}

// verdict is what came out of a policy; the numbers are exit codes.
type verdict int

const (
	holds   verdict = 0
	broken  verdict = 1
	unclear verdict = 3 // nothing was broken, and the machine was too busy to compare rates
)

// verdict prints what came out.
func (s *screen) verdict(r report) verdict {
	problems := r.broken()
	for _, what := range problems {
		fmt.Fprintf(s.out, "BROKEN  %s\n", what)
	}
	why := r.unclear()
	switch {
	case len(problems) > 0:
		return broken
	case why != "":
		fmt.Fprintf(s.out, "UNCLEAR %s\n", why)
		return unclear
	}
	fmt.Fprintf(s.out, "holds   %s\n", r.summary())
	return holds
}
