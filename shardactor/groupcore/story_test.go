package groupcore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire/id"
)

// story is a group to which everything happens that can: every request, writes that fail or come late, trims, crashes, seeks and removals. It
// knows which acks were answered, since nothing can have brought those records back.
type story struct {
	s       *shell
	r       *rand.Rand
	acked   map[id.Offset]bool
	pending map[uint64]func(ok bool) // what follows from an answer
	conn    Conn
	log     []string
}

func (f *story) note(s string, a ...any) { f.log = append(f.log, fmt.Sprintf(s, a...)) }

func (f *story) judge() error {
	for tok, fn := range f.pending {
		g := f.s.got[tok]
		if g.times > 1 {
			return fmt.Errorf("answered %d times", g.times)
		}
		if g.times == 1 {
			if fn != nil && g.answer != nil {
				fn(g.answer.Refusal == nil)
			}
			if g.deliver != nil {
				for _, h := range g.deliver.Records {
					if f.acked[h.Offset] {
						return fmt.Errorf("%d settled and delivered again", h.Offset)
					}
					if h.Attempts > f.s.opts.MaxAttempts || h.Attempts == 0 {
						return fmt.Errorf("attempts %d", h.Attempts)
					}
				}
			}
			delete(f.pending, tok)
		}
	}
	return nil
}

func (f *story) ask(fn func(ok bool)) Ask {
	a := f.s.ask()
	f.pending[a.Token] = fn
	return a
}

func (f *story) off() id.Offset {
	lo := f.s.base
	if lo > 2 {
		lo -= 2
	}
	return lo + id.Offset(f.r.IntN(int(f.s.end-lo)+2))
}

func (f *story) act() {
	s := f.s
	switch n := f.r.IntN(100); {
	case n < 22:
		f.note("poll")
		a := f.ask(nil)
		m := ""
		if f.r.IntN(2) == 0 {
			m = "m"
		}
		s.step(&Poll{Ask: a, Conn: f.conn - Conn(f.r.IntN(2)), Member: m, Reclaim: f.r.IntN(4) == 0, Max: uint32(1 + f.r.IntN(5)), Wait: time.Duration(f.r.IntN(3)) * time.Second})
	case n < 37:
		o := f.off()
		f.note("ack %d", o)
		s.step(&Ack{Ask: f.ask(func(ok bool) {
			if ok {
				f.acked[o] = true
			}
		}), Offset: o})
	case n < 44:
		o := f.off()
		f.note("nack %d", o)
		s.step(Nack{Ask: f.ask(nil), Conn: f.conn, Offset: o, HasDelay: f.r.IntN(2) == 0, Delay: time.Duration(f.r.IntN(3)) * time.Second})
	case n < 50:
		o := f.off()
		f.note("giveup %d", o)
		s.step(GiveUp{Ask: f.ask(nil), Offset: o})
	case n < 55:
		o := f.off()
		f.note("redrive %d", o)
		delete(f.acked, o)
		s.step(Redrive{Ask: f.ask(func(ok bool) { delete(f.acked, o) }), Offset: o})
	case n < 59:
		o := f.off()
		f.note("discard %d", o)
		s.step(Discard{Ask: f.ask(nil), Offset: o})
	case n < 61:
		to := f.off()
		f.note("seek %d", to)
		clear(f.acked)
		for t := range f.pending {
			f.pending[t] = nil
		}
		s.step(Seek{Ask: f.ask(func(bool) { clear(f.acked) }), Start: at(to)})
	case n < 62:
		f.note("remove")
		clear(f.acked)
		for t := range f.pending {
			f.pending[t] = nil
		}
		s.step(Remove{Ask: f.ask(func(bool) { clear(f.acked) })})
	case n < 72:
		for i := range s.writes {
			if s.writes[i] != nil && f.r.IntN(2) == 0 {
				ok := f.r.IntN(8) > 0
				f.note("write %d %v", i, ok)
				if !ok && f.r.IntN(2) == 0 {
					w := *s.writes[i]
					s.fold(&w) // it was written all the same
				}
				s.complete(Log(i), ok)
				s.take()
			}
		}
	case n < 84:
		if len(s.fetches) > 0 {
			f.note("read")
			s.readOne(f.r.IntN(len(s.fetches)))
			s.take()
		}
	case n < 89:
		d := time.Duration(f.r.IntN(4000)) * time.Millisecond
		f.note("pass %v", d)
		s.wait(d)
	case n < 93:
		f.note("publish")
		s.publish(1 + f.r.IntN(3))
		if f.r.IntN(4) == 0 {
			s.holes[s.end-1] = true
		}
	case n < 95:
		if s.base < s.end {
			s.base += id.Offset(f.r.IntN(int(s.end-s.base)+1)) / 2
			f.note("trim %d", s.base)
			s.step(Trimmed{Base: s.base})
		}
	case n < 97:
		f.note("gone %d", f.conn)
		s.step(Gone{Conn: f.conn - Conn(f.r.IntN(2))})
		f.conn++
	default:
		keep := [logCount]bool{f.r.IntN(2) == 0, f.r.IntN(2) == 0}
		f.note("crash %v", keep)
		clear(f.pending)
		s.crash(keep)
		f.conn++
	}
}

// drain works off what there is, and returns what of it was wrong.
func (f *story) drain() error {
	s := f.s
	s.patient = false
	s.wait(time.Second)
	s.settle()
	s.take()
	s.wait(time.Second)
	for range 400 {
		g := s.poll(Poll{Conn: 1000, Max: 3})
		if g.deliver == nil {
			continue
		}
		for _, h := range g.deliver.Records {
			if f.acked[h.Offset] {
				return fmt.Errorf("%d was settled, and is delivered in the drain", h.Offset)
			}
			if x := s.ack(h.Offset); x != nil {
				return fmt.Errorf("an ack in the drain: %v", x)
			}
		}
		if len(g.deliver.Records) > 0 {
			continue
		}
		if f.drained() {
			break
		}
		for _, d := range s.deads() {
			s.do(Discard{Ask: s.ask(), Offset: d})
		}
		s.wait(30 * time.Second)
	}
	if !f.drained() {
		return fmt.Errorf("not drained: %+v", s.core.Info())
	}
	for range 10 { // what is swept away goes with later writes
		s.wait(time.Second)
		s.poll(Poll{Conn: 1000, Max: 3})
	}
	if n := len(s.tables[LogCursors]); n != 1 {
		return fmt.Errorf("%d keys are left in the cursors", n)
	}
	if n := len(s.tables[LogDeadLetters]); n != len(s.deads()) {
		return fmt.Errorf("%d keys are left of %d dead letters", n, len(s.deads()))
	}
	if len(s.core.play.runs) != 0 {
		return fmt.Errorf("%d runs are left", len(s.core.play.runs))
	}
	return nil
}

func (f *story) drained() bool {
	i := f.s.core.Info()
	return i.InFlight+i.Delayed+i.Owed == 0 && i.Cursor == i.Tail
}

// run is a whole story; the error says what was wrong, a panic too.
func (f *story) run() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	for range 150 {
		f.act()
		if err := f.judge(); err != nil {
			return err
		}
	}
	return f.drain()
}

// mission 264
func TestNothingThatWasSettledComesAgainAndNothingIsLeftOfAGroupWhateverHappensToIt(t *testing.T) {
	for seed := range uint64(effort.Size("group_stories")) {
		o := twinOptions()
		o.MaxInFlight, o.MaxDeadLetters = 12, 5
		f := &story{s: newShell(o, 8), r: rand.New(rand.NewPCG(seed, 1)), acked: map[id.Offset]bool{}, pending: map[uint64]func(bool){}, conn: 2}
		f.s.patient = true
		if err := f.run(); err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, f.log[max(0, len(f.log)-60):])
		}
	}
}
