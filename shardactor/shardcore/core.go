package shardcore

import (
	"fmt"
	"math"
	"time"

	"github.com/felixd/felixd/storage/batch"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Options bounds one core.
type Options struct {
	// UnsyncedBytes is how much may be claimed and not yet durable; a write beyond it is refused as overloaded.
	UnsyncedBytes int
	// HoldLimit is how long a write waits in a role that holds before it is refused.
	HoldLimit time.Duration
	// HeldBytes and HeldWrites bound what waits meanwhile.
	HeldBytes  int
	HeldWrites int
	// Blocking withholds the answer of a write until every reader has room for it: until Released covers it. Writes that wait
	// for that are bounded by the permits their senders hold.
	Blocking bool
}

// DefaultOptions are the bounds of a shard: 64 MiB claimed and not durable (the largest burst a node admits), and 2 s of
// patience with a role that passes, the time a mover is given before clients are told to come back.
func DefaultOptions() Options {
	return Options{UnsyncedBytes: 64 << 20, HoldLimit: 2 * time.Second, HeldBytes: 8 << 20, HeldWrites: 1024}
}

// Core is one shard replica. It is not safe for concurrent use: its actor owns it.
//
// Invariants, checked after every Step:
//
//  1. every log is in order (logState);
//  2. pending holds, in claim order, exactly the writes that were claimed and not answered, and each ends at or below
//     the tail of its log and above what may be answered: the lower of its commit offset and released;
//  3. held is empty unless the role holds.
type Core struct {
	opts    Options
	role    role
	logs    [logCount]logState
	seq     uint64
	claims  []*batch.Batch // claimed in this turn, not yet in an Append
	bytes   int            // of claims
	pending []pendingWrite
	held    []heldWrite
	heldLen int
	// released is the end of what readers have room for; forAll when nobody is asked.
	released id.Offset
	turn     *turnEffects // of this turn
	spare    *turnEffects // of the turn before, to be used again
	serving  bool
	gate     bool
}

type pendingWrite struct {
	reply Reply
	token Token
	batch *batch.Batch
	apply bool
	seq   uint64
}

// turnEffects is what a turn asks for. Two of them take turns, so that a busy shard allocates nothing for its lists.
type turnEffects struct {
	list    []Effect
	answers []*Answers // used[:used] are in list
	used    int
}

func (t *turnEffects) reset() {
	clear(t.list)
	t.list = t.list[:0]
	for _, a := range t.answers[:t.used] {
		clear(a.List)
		a.List = a.List[:0]
	}
	t.used = 0
	if len(t.answers) > answersKept {
		t.answers = t.answers[:answersKept:answersKept]
	}
}

// answersKept is how many lists of answers a core keeps for its next turns.
const answersKept = 4

type heldWrite struct {
	write *Write
	until time.Duration
}

// New returns the core of a replica that was not opened yet.
func New(opts Options) *Core {
	c := &Core{opts: opts, role: closed{reason: "not opened yet"}, gate: true, turn: &turnEffects{}, spare: &turnEffects{}}
	if !opts.Blocking {
		c.released = forAll
	}
	return c
}

// forAll releases whatever is committed.
const forAll = id.Offset(math.MaxUint64)

// Role is the name of the role played now; Serving says whether requests are served.
func (c *Core) Role() string { return c.role.name() }

// Serving reports whether this replica serves.
func (c *Core) Serving() bool { return c.serving }

// Tail is the end of what was claimed in the main log.
func (c *Core) Tail() id.Offset { return c.logs[LogMain].tail }

// Step takes one input. It cannot fail and cannot wait.
func (c *Core) Step(at At, in Input) {
	switch in := in.(type) {
	case *Write:
		c.write(at, in)
	case Persisted:
		c.persisted(in)
	case WriteFailed:
		c.writeFailed(at, in)
	case Released:
		c.release(in.End)
	case Open:
		c.abandonClaims()
		c.become(at, opening{generation: in.Generation}, "assigned")
		c.emit(Recover{})
	case Recovered:
		c.recovered(at, in)
	case OpenFailed:
		c.become(at, closed{reason: in.Reason}, in.Reason)
	case DiskStalled:
		if r, ok := c.role.(leading); ok {
			c.become(at, waitingForDisk(r), "the disk does not answer")
		}
	case DiskBack:
		if r, ok := c.role.(waitingForDisk); ok {
			c.become(at, leading(r), "the disk answers again")
		}
	case Damaged:
		c.become(at, damaged{reason: in.Reason}, in.Reason)
	case Drain:
		c.flushClaims()
		c.become(at, draining{}, "asked to drain")
		c.release(forAll) // readers get what there is before the log closes: nothing more will fill their windows
	case Wake:
		c.expireHeld(at)
	default:
		panic(fmt.Sprintf("shardcore: unknown input %T", in))
	}
	if err := c.check(); err != nil {
		panic("shardcore: after " + fmt.Sprintf("%T", in) + ": " + err.Error())
	}
}

// Take returns what must be done for all that was stepped since the last Take. The slice, and the lists of answers in it,
// are valid until the next Take; Step may be called meanwhile.
func (c *Core) Take() []Effect {
	c.flushClaims()
	c.turn, c.spare = c.spare, c.turn
	c.turn.reset()
	return c.spare.list
}

func (c *Core) emit(e Effect) { c.turn.list = append(c.turn.list, e) }

func (c *Core) refuse(w *Write, f *wire.Refusal) {
	c.answer(Answer{Reply: w.Reply, Token: w.Token, Refusal: f})
}

// answer adds to the answers that leave next; those that follow each other leave as one effect.
func (c *Core) answer(a Answer) {
	t := c.turn
	if n := len(t.list); n > 0 {
		if last, ok := t.list[n-1].(*Answers); ok {
			last.List = append(last.List, a)
			return
		}
	}
	if t.used == len(t.answers) {
		t.answers = append(t.answers, &Answers{})
	}
	next := t.answers[t.used]
	t.used++
	next.List = append(next.List, a)
	c.emit(next)
}

func (c *Core) write(at At, w *Write) {
	if w.Batch.Count == 0 || w.Batch.Kind == 0 {
		panic(fmt.Sprintf("shardcore: a write of %d records of kind %s", w.Batch.Count, w.Batch.Kind))
	}
	if f := c.role.refusal(); f != nil {
		c.refuse(w, f)
		return
	}
	if c.role.holds() {
		c.hold(at, w)
		return
	}
	c.claim(at, w)
}

// claim gives a write its offsets.
func (c *Core) claim(at At, w *Write) {
	l := &c.logs[LogMain]
	size := w.Batch.Size()
	if l.unsynced+c.bytes+size > c.opts.UnsyncedBytes && l.unsynced+c.bytes > 0 {
		f := wire.Refuse(wire.CodeOverloaded, "the shard has too much on its way to the log; repeat the request")
		f.Reason, f.RetryAfterMS = "publish_queue_full", 50
		c.refuse(w, &f)
		return
	}
	w.Batch.Base, w.Batch.Generation = l.tail, l.generation
	w.Batch.AppendMicros = uint64(at.Wall.UnixMicro())
	if w.Stamp != nil {
		w.Stamp(w.Batch, uint64(at.Wall.UnixMilli()))
	}
	l.tail = w.Batch.End()
	c.claims = append(c.claims, w.Batch)
	c.bytes += size
	c.pending = append(c.pending, pendingWrite{reply: w.Reply, token: w.Token, batch: w.Batch, apply: w.Apply, seq: c.seq + 1})
}

// flushClaims turns the claims of this turn into one Append.
func (c *Core) flushClaims() {
	if len(c.claims) == 0 {
		return
	}
	c.seq++
	l := &c.logs[LogMain]
	l.appends = append(l.appends, appendState{seq: c.seq, end: l.tail, bytes: c.bytes})
	l.unsynced += c.bytes
	c.emit(Append{Seq: c.seq, Log: LogMain, Batches: c.claims})
	c.claims, c.bytes = nil, 0
}

func (c *Core) persisted(in Persisted) {
	l := &c.logs[LogMain]
	if !l.persisted(in.Seq) {
		return // completes an append that a failure before it already voided
	}
	if l.commit == l.durable {
		return
	}
	l.commit = l.durable // one voter: durable here is durable on the majority
	c.emit(Readable{Log: LogMain, End: l.commit})
	c.answerReleased()
}

// release notes that readers have room up to end. It never falls: what was answered stays so.
func (c *Core) release(end id.Offset) {
	c.released = max(c.released, end)
	c.answerReleased()
}

// answerReleased answers, in claim order, the writes that are committed and that no reader holds up.
func (c *Core) answerReleased() {
	end := min(c.logs[LogMain].commit, c.released)
	done := 0
	for done < len(c.pending) && c.pending[done].batch.End() <= end {
		p := &c.pending[done]
		a := Answer{Reply: p.reply, Token: p.token, Offset: p.batch.Base}
		if p.apply {
			a.Apply = p.batch
		}
		c.answer(a)
		done++
	}
	c.dropPending(done)
	c.settleDrain()
}

func (c *Core) dropPending(done int) {
	if done == 0 {
		return
	}
	n := copy(c.pending, c.pending[done:])
	clear(c.pending[n:])
	c.pending = c.pending[:n]
}

// writeFailed answers everything from the failed append on and gives the offsets back: nothing of it was acknowledged.
func (c *Core) writeFailed(at At, in WriteFailed) {
	c.flushClaims()
	l := &c.logs[LogMain]
	if !l.failed(in.Seq) {
		return
	}
	kept := len(c.pending)
	for i := range c.pending {
		if c.pending[i].seq >= in.Seq {
			kept = i
			break
		}
	}
	for _, p := range c.pending[kept:] {
		f := wire.Refuse(wire.CodeStorage, "the write failed: "+in.Reason)
		c.answer(Answer{Reply: p.reply, Token: p.token, Refusal: &f})
	}
	clear(c.pending[kept:])
	c.pending = c.pending[:kept]
	// What left in this turn's effects for the voided claims must not reach the log.
	for i, e := range c.turn.list {
		if a, ok := e.(Append); ok && a.Seq > in.Seq {
			c.turn.list[i] = Append{Seq: a.Seq, Log: a.Log}
		}
	}
	c.settleDrain()
}

func (c *Core) recovered(at At, in Recovered) {
	r, ok := c.role.(opening)
	if !ok {
		return // closed or reassigned meanwhile
	}
	for i := range c.logs {
		c.logs[i].generation = r.generation
		c.logs[i].begin(in.Tails[i])
	}
	if c.opts.Blocking {
		c.released = in.Tails[LogMain]
	}
	c.emit(Save{Generation: r.generation})
	c.emit(Readable{Log: LogMain, End: c.logs[LogMain].commit})
	c.become(at, leading(r), "recovered")
}

// abandonClaims answers what was claimed at an earlier generation and has no outcome: it may or may not be in the log that
// is about to be opened.
func (c *Core) abandonClaims() {
	c.flushClaims()
	c.release(forAll) // what is committed is done, whoever has no room for it
	for _, p := range c.pending {
		f := wire.Refuse(wire.CodeLeadershipLost, "the shard is opened anew; the write may or may not have been done")
		c.answer(Answer{Reply: p.reply, Token: p.token, Refusal: &f})
	}
	c.dropPending(len(c.pending))
}

func (c *Core) settleDrain() {
	r, ok := c.role.(draining)
	if !ok || r.done || len(c.pending) > 0 {
		return
	}
	c.role = draining{done: true}
	c.emit(Drained{})
}

// become changes the role, tells the shell what follows from it, and lets go of what was held.
func (c *Core) become(at At, next role, reason string) {
	c.emit(RoleChanged{From: c.role.name(), To: next.name(), Reason: reason})
	c.role = next
	_, leads := next.(leading)
	if leads != c.serving {
		c.serving = leads
		c.emit(Serving{On: leads})
	}
	if open := !next.holds(); open != c.gate {
		c.gate = open
		c.emit(Gate{Open: open})
	}
	if next.holds() {
		return
	}
	held := c.held
	c.held, c.heldLen = nil, 0
	for _, h := range held {
		c.write(at, h.write)
	}
	if len(held) > 0 {
		c.emit(Deadline{})
	}
}

func (c *Core) hold(at At, w *Write) {
	size := w.Batch.Size()
	if len(c.held) >= c.opts.HeldWrites || c.heldLen+size > c.opts.HeldBytes && len(c.held) > 0 {
		c.refuse(w, unavailable("not_ready", "the shard is "+c.role.name()+" and enough is waiting for it; repeat the request"))
		return
	}
	c.held = append(c.held, heldWrite{write: w, until: at.Mono + c.opts.HoldLimit})
	c.heldLen += size
	if len(c.held) == 1 {
		c.emit(Deadline{At: c.held[0].until})
	}
}

// expireHeld refuses what waited long enough.
func (c *Core) expireHeld(at At) {
	n := 0
	for n < len(c.held) && c.held[n].until <= at.Mono {
		w := c.held[n].write
		c.heldLen -= w.Batch.Size()
		c.refuse(w, unavailable("not_ready", "the shard is "+c.role.name()+" and did not become ready in time; repeat the request"))
		n++
	}
	c.held = c.held[n:]
	if len(c.held) > 0 {
		c.emit(Deadline{At: c.held[0].until})
	}
}

func (c *Core) check() error {
	for i := range c.logs {
		claims := 0 // records claimed in this turn, not in an Append yet
		if Log(i) == LogMain {
			claims = len(c.claims)
		}
		if err := c.logs[i].check(Log(i), claims > 0); err != nil {
			return err
		}
	}
	claimed := &c.logs[LogMain]
	if len(c.pending) > 0 {
		first, last := c.pending[0].batch, c.pending[len(c.pending)-1].batch
		if answered := min(claimed.commit, c.released); first.End() <= answered || last.End() > claimed.tail {
			return fmt.Errorf("pending writes [%d, %d) outside (%d, %d]", first.Base, last.End(), answered, claimed.tail)
		}
	}
	if len(c.held) > 0 && !c.role.holds() {
		return fmt.Errorf("%d writes held while %s", len(c.held), c.role.name())
	}
	return nil
}
