package groupcore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// shell drives a core like an actor would: it keeps the two logs, reads records and remembers what was answered. Unless it is patient it
// completes everything at once.
type shell struct {
	core    *Core
	opts    Options
	now     time.Duration
	base    id.Offset
	end     id.Offset
	holes   map[id.Offset]bool
	unfit   map[id.Offset]bool // records that no answer can hold
	budget  int                // records that one answer has room for
	patient bool
	tables  [logCount]map[string][]byte // what is durable
	writes  [logCount]*Persist          // on their way
	fetches []Fetch
	got     map[uint64]*got
	token   uint64
	wakeAt  time.Duration
	idle    bool
	wrote   uint32 // records
	claims  *Claims
	holder  *Holder
	kept    *Claims   // for what it keeps
	keeper  *Holder   // in kept
	given   []Granted // that came without having been asked for
}

// got is what became of a request.
type got struct {
	answer  *Answer
	deliver *Deliver
	times   int
}

func newShell(opts Options, records int) *shell {
	s := &shell{opts: opts, end: id.Offset(records), holes: map[id.Offset]bool{}, unfit: map[id.Offset]bool{}, budget: 1000, got: map[uint64]*got{}, wakeAt: never}
	for i := range s.tables {
		s.tables[i] = map[string][]byte{}
	}
	s.start()
	return s
}

// start makes a core of what is durable.
func (s *shell) start() {
	st := NewState(s.opts.Group)
	for i := range s.tables {
		for k, v := range s.tables[i] {
			if err := st.Add([]byte(k), v); err != nil {
				panic(err)
			}
		}
	}
	s.writes, s.fetches, s.wakeAt, s.idle = [logCount]*Persist{}, nil, never, false
	if s.claims != nil {
		if s.holder != nil {
			pass(BudgetClaims, s.claims.Leave(s.holder))
		}
		s.holder, s.given = s.claims.Join("t", s), nil
	}
	beyond, backed := 0, 0
	if s.kept != nil {
		s.given = nil
		s.rest()
		held, had := s.kept.Own(s.keeper, s)
		beyond, backed = held-Kept(s.opts.Group, 0), max(0, had-Kept(s.opts.Group, 0))
	}
	s.core = New(s.opts, s.now, Loaded{State: st, Base: s.base, Tail: Tail{End: s.end, Committed: s.end}, Kept: beyond, Backed: backed})
	s.grant()
	s.take()
}

// rest has the group hold what its logs say.
func (s *shell) rest() {
	if s.keeper == nil {
		s.keeper = s.kept.Join("t", nil)
	}
	pass(BudgetKept, s.kept.Keep(s.keeper, Kept(s.opts.Group, s.keys())))
}

// keys is how many keys the tables have beside the position.
func (s *shell) keys() int {
	n := len(s.tables[LogCursors]) + len(s.tables[LogDeadLetters])
	if _, ok := s.tables[LogCursors][string(AppendKey(nil, s.opts.Group, KindPosition, 0))]; ok {
		n--
	}
	return n
}

// crash loses what only memory holds; of the writes on their way those are stored that keep says.
func (s *shell) crash(keep [logCount]bool) {
	for i, w := range s.writes {
		if w != nil && keep[i] {
			s.fold(w)
		}
	}
	s.start()
}

func (s *shell) fold(w *Persist) {
	body, n := w.Body, uint32(0)
	for ; len(body) > 0; n++ {
		size := binary.BigEndian.Uint32(body)
		r, err := DecodeRecord(body[4 : 4+size])
		if err != nil {
			panic(err)
		}
		if _, e, err := DecodeKey(r.Key); err != nil || (e.Kind == KindDead) != (w.Log == LogDeadLetters) {
			panic(fmt.Sprintf("kind %d in log %d: %v", e.Kind, w.Log, err))
		}
		if r.Op == Delete {
			delete(s.tables[w.Log], string(r.Key))
		} else {
			s.tables[w.Log][string(r.Key)] = append([]byte(nil), r.Value...)
		}
		body = body[4+size:]
	}
	if n != w.Count {
		panic("a persist does not hold what it says")
	}
	s.wrote += n
}

// put steps one input, and answers what the core asks for.
func (s *shell) put(in Input) {
	s.core.Step(s.now, in)
	s.grant()
}

func (s *shell) grant() {
	for w, ok := s.core.Wants(); ok; w, ok = s.core.Wants() {
		budget, holder := s.claims, s.holder
		if w.Of == BudgetKept {
			budget, holder = s.kept, s.keeper
		}
		n, later := budget.Want(holder, w.Records, w.Must)
		s.core.Step(s.now, Granted{Of: w.Of, Records: n, Later: later})
	}
}

func (s *shell) step(in Input) {
	s.put(in)
	s.take()
}

// take performs effects until there are none.
func (s *shell) take() {
	for {
		effects := s.core.Take()
		if len(effects) == 0 {
			break
		}
		for _, e := range effects {
			s.perform(e)
		}
		if !s.patient {
			s.settle()
		}
	}
	if err := s.core.CheckAll(); err != nil {
		panic(err)
	}
}

func (s *shell) perform(e Effect) {
	switch e := e.(type) {
	case *Persist:
		if s.writes[e.Log] != nil {
			panic("two writes of a log are on their way")
		}
		s.writes[e.Log] = e
	case *Fetch:
		s.fetches = append(s.fetches, Fetch{Poll: e.Poll, Offsets: append([]id.Offset(nil), e.Offsets...)})
	case *Deliver:
		g := s.got[e.Token]
		d := *e
		d.Records = append([]Handed(nil), e.Records...)
		g.deliver, g.times = &d, g.times+1
	case *Answers:
		for _, a := range e.List {
			g := s.got[a.Token]
			g.answer, g.times = &a, g.times+1
		}
	case Deadline:
		if e.At >= s.wakeAt && s.wakeAt > s.now {
			panic("a deadline that is not earlier")
		}
		s.wakeAt = e.At
	case Idle:
		s.idle = true
	case Spare:
		if e.Of == BudgetKept {
			pass(e.Of, s.kept.Spare(s.keeper, e.Records))
			return
		}
		pass(e.Of, s.claims.Spare(s.holder, e.Records))
	}
}

// settle completes what is on its way.
func (s *shell) settle() {
	for len(s.fetches) > 0 {
		s.readOne(0)
	}
	for i := range s.writes {
		if s.writes[i] != nil {
			s.complete(Log(i), true)
		}
	}
}

func (s *shell) readOne(i int) {
	f := s.fetches[i]
	s.fetches = append(s.fetches[:i:i], s.fetches[i+1:]...)
	var found []bool
	for _, o := range f.Offsets {
		if s.unfit[o] {
			unfit := len(found) == 0 || !slices.Contains(found, true) // only the first record of an answer can be too long for any
			s.put(Read{Poll: f.Poll, Found: found, Unfit: unfit})
			return
		}
		there := o >= s.base && o < s.end && !s.holes[o]
		if found = append(found, there); there && len(found) >= s.budget {
			break
		}
	}
	s.put(Read{Poll: f.Poll, Found: found})
}

func (s *shell) complete(log Log, ok bool) {
	w := s.writes[log]
	s.writes[log] = nil
	if ok {
		s.fold(w)
		s.put(Persisted{Seq: w.Seq})
		return
	}
	s.put(Failed{Seq: w.Seq, Reason: "no space"})
}

func (s *shell) publish(n int) {
	s.end += id.Offset(n)
	s.step(Tail{End: s.end, Committed: s.end})
}

// wait lets time pass and wakes the core when it asked for it.
func (s *shell) wait(d time.Duration) {
	for until := s.now + d; ; {
		if s.wakeAt > until {
			s.now = until
			return
		}
		s.now = max(s.now, s.wakeAt)
		s.wakeAt = never
		s.step(Wake{})
	}
}

func (s *shell) ask() Ask {
	s.token++
	s.got[s.token] = &got{}
	return Ask{Token: s.token}
}

// do steps a request and returns its answer, nil as long as there is none.
func (s *shell) do(in Input) *Answer {
	ask, ok := asks(in)
	if !ok {
		panic("not a request")
	}
	s.step(in)
	return s.got[ask.Token].answer
}

func (s *shell) poll(p Poll) *got {
	p.Ask = s.ask()
	if p.Conn == 0 {
		p.Conn = 1
	}
	s.step(&p)
	return s.got[p.Token]
}

// records polls and returns what was handed out, as offset and number.
func (s *shell) records(p Poll) []Handed {
	g := s.poll(p)
	if g.deliver == nil {
		panic(fmt.Sprintf("the poll is not answered: %+v", g.answer))
	}
	return g.deliver.Records
}

func (s *shell) ack(o id.Offset) *wire.Refusal { return s.do(&Ack{Ask: s.ask(), Offset: o}).Refusal }

func (s *shell) nack(o id.Offset, attempts uint32) *wire.Refusal {
	return s.do(Nack{Ask: s.ask(), Conn: 1, Offset: o, Attempts: attempts}).Refusal
}

func (s *shell) deads() []id.Offset { return s.do(ListDead{Ask: s.ask(), Max: 1000}).Dead }

func (s *shell) seek(start wire.Start, ifNew bool) *Answer {
	return s.do(Seek{Ask: s.ask(), Start: start, IfNew: ifNew})
}

func at(o id.Offset) wire.Start { return wire.Start{Kind: wire.StartOffset, Offset: o} }

// small are options of a small group whose times are easy to add.
func small() Options {
	o := DefaultOptions("g")
	o.Visibility, o.MaxInFlight = 10*time.Second, 100
	return o
}

func told(list []Handed) string {
	out := ""
	for _, h := range list {
		if out != "" {
			out += " "
		}
		out += fmt.Sprintf("%d:%d", h.Offset, h.Attempts)
		if h.Skipped > 0 {
			out += fmt.Sprintf("(%d)", h.Skipped)
		}
	}
	return out
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func refused(f *wire.Refusal) string {
	if f == nil {
		return "ok"
	}
	return fmt.Sprintf("%s %s", f.Code, f.Retry)
}
