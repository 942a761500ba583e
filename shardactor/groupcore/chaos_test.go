package groupcore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
	"pgregory.net/rapid"
)

// delivery is one record in somebody's hands, as they remember it.
type delivery struct {
	offset   id.Offset
	attempts uint32
	serial   int
	conn     Conn
	until    time.Duration
}

// chaos is a group whose writes and reads complete late, fail or get lost with the broker, and workers that hold on to what they got for
// longer than they should. It knows nothing of how a group works; it keeps what a group promises.
type chaos struct {
	s      *shell
	conns  [3]Conn // of each worker; worker 0 names no member
	next   Conn
	serial int
	holder map[id.Offset]*delivery // the newest of each record, nil: given back, settled or lost with the broker
	hands  []delivery
	polls  map[uint64]int // who asked
	acks   map[uint64]id.Offset
	nacks  map[uint64]delivery
	// nackedOn is the connection that a nack came on.
	nackedOn map[uint64]Conn
	redriven map[id.Offset]bool // and not delivered since
	acked    map[id.Offset]bool
	seen     map[uint64]bool
}

func newChaos(records int) *chaos {
	o := twinOptions()
	c := &chaos{s: newShell(o, records), holder: map[id.Offset]*delivery{}, polls: map[uint64]int{}, acks: map[uint64]id.Offset{},
		nacks: map[uint64]delivery{}, nackedOn: map[uint64]Conn{}, redriven: map[id.Offset]bool{}, acked: map[id.Offset]bool{}, seen: map[uint64]bool{}}
	c.s.patient = true
	c.reconnect()
	return c
}

func (c *chaos) reconnect() {
	for i := range c.conns {
		c.next++
		c.conns[i] = c.next
	}
}

func (c *chaos) member(i int) string { return [...]string{"", "m", "n"}[i] }

// judge looks at every answer that came since.
func (c *chaos) judge() error {
	for token := uint64(1); token <= c.s.token; token++ {
		g := c.s.got[token]
		if g.times > 1 {
			return fmt.Errorf("request %d is answered %d times", token, g.times)
		}
		if g.times == 0 || c.seen[token] {
			continue
		}
		c.seen[token] = true
		if o, ok := c.acks[token]; ok && g.answer.Refusal == nil {
			c.acked[o] = true
			c.holder[o] = nil
		}
		if d, ok := c.nacks[token]; ok && g.answer.Refusal == nil {
			h := c.holder[d.offset]
			if h == nil || h.serial != d.serial && h.conn != c.nackedOn[token] && slices.Contains(c.conns[:], h.conn) {
				// a worker that mixes up its own deliveries can't be helped, and who is gone does not mind
				return fmt.Errorf("nack of delivery %d of record %d is taken; it stands as %+v", d.serial, d.offset, h)
			}
			c.holder[d.offset] = nil
		}
		if g.deliver != nil {
			if err := c.delivered(token, g.deliver.Records); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *chaos) delivered(token uint64, records []Handed) error {
	worker := c.polls[token]
	for _, h := range records {
		if h.Attempts == 0 || h.Attempts > c.s.opts.MaxAttempts || h.Attempts > 1 && len(records) > 1 {
			return fmt.Errorf("a poll gets %s", told(records))
		}
		if c.acked[h.Offset] {
			return fmt.Errorf("record %d is settled and delivered again", h.Offset)
		}
		if d := c.holder[h.Offset]; d != nil && d.until > c.s.now && !c.redriven[h.Offset] {
			return fmt.Errorf("record %d is handed out at %s, and somebody holds it to %s", h.Offset, c.s.now, d.until)
		}
		c.redriven[h.Offset] = false
		c.serial++
		d := delivery{offset: h.Offset, attempts: h.Attempts, serial: c.serial, conn: c.conns[worker], until: c.s.now + c.s.opts.Visibility}
		c.holder[h.Offset] = &d
		c.hands = append(c.hands, d)
	}
	return nil
}

// workerOf is who a connection belongs to: they are dealt out in turn.
func (c *chaos) workerOf(n Conn) int { return int(n-1) % len(c.conns) }

func (c *chaos) act(t *rapid.T) {
	s := c.s
	switch what := rapid.IntRange(0, 15).Draw(t, "what"); {
	case what < 4:
		i := rapid.IntRange(0, 2).Draw(t, "worker")
		p := Poll{Ask: s.ask(), Conn: c.conns[i], Member: c.member(i), Reclaim: rapid.Bool().Draw(t, "reclaim"), Max: 3}
		p.Wait = time.Duration(rapid.IntRange(0, 3).Draw(t, "wait")) * time.Second
		c.polls[p.Token] = i
		s.step(&p)
		for o, d := range c.holder {
			if p.Reclaim && i > 0 && d != nil && c.workerOf(d.conn) == i && d.conn != p.Conn {
				c.holder[o] = nil // the member said that it does not hold it any more
			}
		}
	case what < 8 && len(c.hands) > 0:
		d := c.hands[rapid.IntRange(max(0, len(c.hands)-6), len(c.hands)-1).Draw(t, "which")]
		c.settleOne(t, d)
	case what == 8 && len(s.fetches) > 0:
		s.readOne(rapid.IntRange(0, len(s.fetches)-1).Draw(t, "fetch"))
		s.take()
	case what < 12:
		log := Log(rapid.IntRange(0, 1).Draw(t, "log"))
		if s.writes[log] != nil {
			s.complete(log, rapid.IntRange(0, 5).Draw(t, "fails") > 0)
			s.take()
		}
	case what == 12:
		if err := c.wait(rapid.IntRange(0, 6).Draw(t, "seconds")); err != nil {
			t.Fatal(err)
		}
	case what == 13 && rapid.Bool().Draw(t, "redrive"):
		if list := s.deads(); len(list) > 0 {
			if a := s.do(Redrive{Ask: s.ask(), Offset: list[0]}); a == nil || a.Refusal == nil {
				c.redriven[list[0]] = true // a reclaim may have ended what the last holder had
			}
		}
	case what == 13:
		i := rapid.IntRange(0, 2).Draw(t, "leaves")
		s.step(Gone{Conn: c.conns[i]})
		c.next += Conn((len(c.conns) + i - int(c.next)%len(c.conns)) % len(c.conns))
		c.next++
		c.conns[i] = c.next
	case what == 14 && rapid.Bool().Draw(t, "crash"):
		s.crash([logCount]bool{rapid.Bool().Draw(t, "cursors survive"), rapid.Bool().Draw(t, "dead letters survive")})
		c.holder = map[id.Offset]*delivery{}
		c.next = (c.next + 2) / 3 * 3
		c.reconnect()
	case what == 15:
		s.unfit[s.end] = rapid.IntRange(0, 3).Draw(t, "unfit") == 0
		s.publish(1)
	}
}

func (c *chaos) settleOne(t *rapid.T, d delivery) {
	s := c.s
	switch rapid.IntRange(0, 5).Draw(t, "settle") {
	case 0, 1, 2:
		a := &Ack{Ask: s.ask(), Offset: d.offset}
		c.acks[a.Token] = d.offset
		s.step(a)
	case 3, 4:
		n := Nack{Ask: s.ask(), Conn: c.conns[c.workerOf(d.conn)], Offset: d.offset, Attempts: d.attempts}
		c.nacks[n.Token], c.nackedOn[n.Token] = d, n.Conn
		s.step(n)
	default:
		if c.holder[d.offset] != nil && c.holder[d.offset].serial == d.serial {
			if a := s.do(GiveUp{Ask: s.ask(), Offset: d.offset}); a == nil || a.Refusal == nil {
				c.holder[d.offset] = nil
			}
		}
	}
}

// wait lets seconds pass and judges after each: all times here are whole seconds.
func (c *chaos) wait(seconds int) error {
	for range seconds {
		if err := c.judge(); err != nil {
			return err
		}
		c.s.wait(time.Second)
	}
	return c.judge()
}

// unknown reports whether an ack of a record had an outcome that nobody was told.
func (c *chaos) unknown(o id.Offset) bool {
	for token := uint64(1); token <= c.s.token; token++ {
		a := c.s.got[token].answer
		if acked, ok := c.acks[token]; ok && acked == o && (a == nil || a.Refusal != nil && a.Refusal.Retry == wire.RetryOutcomeUnknown) {
			return true
		}
	}
	return false
}

// drain lets everything settle and works until nothing is left. Every record must end settled or as a dead letter, never both.
func (c *chaos) drain() error {
	s := c.s
	s.patient = false
	s.settle()
	s.take()
	if err := c.wait(2); err != nil {
		return err
	}
	for range 4 * int(s.end) {
		if err := c.judge(); err != nil {
			return err
		}
		p := Poll{Ask: s.ask(), Conn: c.conns[0], Max: 3}
		s.step(&p)
		g := s.got[p.Token]
		if err := c.judge(); err != nil {
			return err
		}
		for _, h := range g.deliver.Records {
			a := &Ack{Ask: s.ask(), Offset: h.Offset}
			c.acks[a.Token] = h.Offset
			if f := s.do(a).Refusal; f != nil {
				return fmt.Errorf("ack %d: %s", h.Offset, f.Message)
			}
		}
		if err := c.wait(3); err != nil {
			return err
		}
	}
	deads := s.deads()
	for o := id.Offset(0); o < s.end; o++ {
		dead := slices.Contains(deads, o)
		if c.acked[o] && dead || !c.acked[o] && !dead && !c.unknown(o) {
			return fmt.Errorf("record %d is settled: %v, a dead letter: %v", o, c.acked[o], dead)
		}
	}
	want := Info{Exists: true, Cursor: s.end, Tail: s.end, Dead: len(deads)}
	if got := s.core.Info(); got != want && s.end > 0 {
		return fmt.Errorf("after the drain: %+v, want %+v", got, want)
	}
	if !s.core.Resting() {
		return fmt.Errorf("after the drain something is left to do")
	}
	return nil
}

func TestNothingIsLostSettledTwiceOrStuckWhateverIsLateFailsOrIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(rapid.IntRange(1, 8).Draw(t, "records"))
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			c.act(t)
			if err := c.judge(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.drain(); err != nil {
			t.Fatal(err)
		}
	})
}
