package sessionactor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/internal/stages"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/shardactor/shardcore"
	"github.com/felixd/felixd/wire"
)

// lane is one client-opened stream: the small thing between its bytes and the shards. Its read pump feeds it, outcomes
// come from any goroutine, and whoever settles the oldest request lets all ready answers leave.
//
//  1. core is used under mu only; framer, scratch and entry belong to the read pump;
//  2. at most one goroutine writes: it holds mu and does not block, or writing is true and it is the write pump;
//  3. credit of the session and of the node is held for every frame that was read and whose request has no outcome, unless
//     the request waits for room in the read pump's hands, or is a poll or parked.
type lane struct {
	session *session
	recv    ReceiveStream
	send    SendStream // nil on a unidirectional stream

	framer  sessioncore.Framer
	scratch []byte            // to build route keys in
	entry   *shardactor.Entry // of the last publish
	tenant  *tenantShare      // in the node's admission; nil before a token was accepted
	partial int64             // booked for the body that is being read
	sampler stages.Sampler    // of the requests to be timed

	inHand        sessioncore.Token // the request the read pump is busy with, while handling
	handling      bool
	fresh         bool // it has just authenticated, which takes more stack than what comes later
	inPreauth     bool // it holds a place among the streams that are read before they authenticated
	preauthBooked bool // it counts among the node's streams of that kind
	place         int  // in session.lanes, under session.mu

	mu       sync.Mutex
	core     *sessioncore.Stream
	writing  bool
	gathered bool // it is in session.gathering, and somebody is about to flush it
	closed   bool
	draining bool
	activity activity // see stir
	lent     int      // permits that a request gave back while it waited and never took again
	sample   sample
	demand   sessioncore.Demand // of the request that is on its way to its shard; the admission's while it waits
	gate     Gate               // of the read pump: rung when there may be room for another request, or credit
	turns    []turn             // subscribes that wait for older answers
	reads    laneReads          // of logs
	polls    lanePolls          // of consumer groups
	expiry   actors.Timer       // see awaitOutcome; nil before the first
	expiring bool               // it is armed

	debt debt // what it owes its client, in the books of the node
}

var (
	_ shardactor.Reply      = (*lane)(nil)
	_ shardactor.GroupReply = (*lane)(nil)
)

func newLane(s *session, role wire.Role, recv ReceiveStream, send SendStream) *lane {
	l := &lane{
		session: s, recv: recv, send: send, gate: s.opts.Runtime.NewGate(), sampler: s.opts.Timings.Sampler(),
		core: sessioncore.NewStream(role, s.opts.Offer, s.opts.Window),
	}
	l.core.TakeAtMost(s.opts.FrameBytes)
	return l
}

// readPump reads until the stream, the connection or the client's right to it ends, or until a new goroutine goes on with it.
func (l *lane) readPump(ctx context.Context) {
	over := false
	defer func() {
		if !over { // a panic, or the end of the goroutine: it goes on to the session
			l.failed()
		}
	}()
	var err error
	for err == nil && (!l.framer.Between() || l.waitRoom(ctx)) {
		var n int
		n, err = l.recv.Read(l.framer.Want())
		rest := l.askedToRest(err)
		if rest {
			err = nil
		}
		if n > 0 && !l.Feed(ctx, n) {
			break
		}
		if rest || l.fresh && err == nil {
			l.handOver()
			over = true
			return
		}
	}
	l.readEnded(err)
	over = true
}

// waitRoom waits until the core takes another request; false means that it never will.
func (l *lane) waitRoom(ctx context.Context) bool {
	for {
		l.mu.Lock()
		ended, room := l.core.Ended() != "", l.core.Room()
		if l.debt.bytes > 0 && l.session.opts.Answers.tight() {
			room = false // its own answers ring when they have left
		}
		l.mu.Unlock()
		if ended {
			return false
		}
		if room {
			return true
		}
		if !l.gate.Wait(ctx) {
			return false
		}
	}
}

// Feed says that n bytes were put where the framer wanted them. It returns false when nothing more is to be read.
func (l *lane) Feed(ctx context.Context, n int) bool {
	frame, done, err := l.framer.Feed(n, l.core.MaxPayload()) // no lock: only this goroutine changes what it is
	switch {
	case err != nil:
		l.mu.Lock()
		l.core.BadFrame(err)
		l.mu.Unlock()
		return false
	case done:
		ok := l.frame(ctx, frame)
		l.bookPartial(0)
		return ok
	}
	return l.bookPartial(int64(l.framer.Reserved()))
}

// bookPartial books the memory of a body that is being read. A stream that would exceed the bound is ended and not made to
// wait: a lane that waits does not read, its unread bytes use up the connection's window, and the very bytes it waits for
// might not get through.
func (l *lane) bookPartial(n int64) bool {
	if n <= wire.FirstBodyAllocation {
		n = 0 // what a thousand streams may always hold
	}
	more := n - l.partial
	l.partial = n
	if more <= 0 || l.session.bookPartial(more) {
		if more < 0 {
			l.session.givePartial(-more)
		}
		return true
	}
	l.partial -= more
	l.mu.Lock()
	defer l.mu.Unlock()
	l.core.TooMuch()
	l.countOwnRefusal()
	l.flush()
	return false
}

// frame takes one complete frame through the core, and lets the answers go that are ready then.
func (l *lane) frame(ctx context.Context, f sessioncore.Frame) bool {
	if !l.acquirePermits(ctx, len(f.Payload())) {
		return false
	}
	more, joins := l.step(ctx, f)
	if joins {
		l.session.gathering.Do(l, (*lane).flushGathered)
	}
	return more
}

// step takes one complete frame through the core. more is false when nothing more is to be read; joins says that what there is to send now
// leaves with answers of other lanes, which the caller sees to.
func (l *lane) step(ctx context.Context, f sessioncore.Frame) (more, joins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, began := l.core.Dropped(), l.beginSample()
	r := l.core.Frame(f)
	l.sampleRequest(r, began)
	l.session.opts.Metrics.DroppedFrames.Add(float64(l.core.Dropped() - before))
	l.countOwnRefusal()
	if r.Do != sessioncore.Nothing {
		l.session.opts.Metrics.requests[r.Kind].Inc()
	}
	l.inHand, l.handling = r.Token, r.Do != sessioncore.Nothing
	switch r.Do {
	case sessioncore.Authenticate:
		l.authenticate(r)
	case sessioncore.Publish:
		l.publish(ctx, r)
	case sessioncore.Ask:
		l.ask(ctx, r)
	}
	l.handling = false
	if l.core.Authenticated() {
		l.stir()
	}
	if r.Do != sessioncore.Publish {
		l.framer.Reuse(f)
	}
	more = l.core.Ended() == ""
	if !more || !l.gathers() {
		l.flush()
		return more, false
	}
	l.giveBack()
	l.sampleReadiness()
	joins = !l.gathered
	l.gathered = true
	return true, joins
}

// acquirePermits waits for the permits of a frame, of the connection and of the node; false means that the connection is gone.
func (l *lane) acquirePermits(ctx context.Context, n int) bool {
	if !acquire(ctx, l.gate, l.session.credit, n) {
		return false
	}
	if !acquire(ctx, l.gate, l.session.opts.Frames, n) {
		l.session.credit.Release(0, n)
		return false
	}
	return true
}

// authenticate verifies a token. It is pure computation, so the read pump may do it.
func (l *lane) authenticate(r sessioncore.Request) {
	auth := r.Message.(*wire.Auth)
	grants, refusal := l.session.opts.Auth.Authenticate(auth.TenantID, auth.Token, l.session.opts.Clock.Now())
	l.core.AuthenticatedAs(r.Token, auth, grants, refusal)
	if !l.core.Authenticated() {
		l.session.opts.Metrics.AuthFailures.Inc()
		l.countRefusal(refusal)
		return
	}
	l.tenant = l.session.opts.Admission.attach(grants.Tenant())
	l.demand.Tenant, l.demand.Conn = &l.tenant.use, l.session.use
	_ = l.recv.SetReadDeadline(time.Time{})
	l.fresh = true
	l.leavePreauth()
	l.session.streamAuthenticated()
}

// Answer implements shardactor.Reply.
func (l *lane) Answer(t shardcore.Token, a shardactor.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token := sessioncore.Token(t)
	open := l.core.IsOpen(token)
	if !open && !l.core.Outlived(token) {
		return // the stream is gone; what it held was given back with it
	}
	if a.Caused {
		l.causedFailure()
	}
	if !open {
		return // it came too late, and was answered
	}
	l.settle(token, sessioncore.Answer{
		Refusal: a.Refusal, Refused: a.Refused, HasOffset: !a.NoOffset && l.core.IsLogged(token), Offset: a.Offset, Found: a.Found, Value: a.Value,
		Applied: a.Applied, HasVersion: a.HasVersion, Version: a.Version, Sum: a.Sum,
	})
}

// causedFailure is told that a request of this stream made a shard fail. The second one of its principal costs the connection.
func (l *lane) causedFailure() {
	m, g := l.session.opts.Metrics, l.core.Grants()
	m.ShardFailures.Inc()
	if l.session.opts.Suspects.again(g.Tenant(), g.Subject()) {
		l.session.opts.Events.Emit(principalClosed{session: l.session.number, tenant: g.Tenant(), subject: g.Subject()})
		// Not here: closing waits for the connection, and this is a shard's turn.
		l.session.pump("close", func(context.Context) { l.session.closeFor(CloseRepeatedFailure) })
	}
}

// Flush implements shardactor.Reply: answers that are ready leave.
func (l *lane) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

// settle answers a request at once.
func (l *lane) settle(t sessioncore.Token, a sessioncore.Answer) {
	l.countRefusal(a.Refusal)
	if a.Refused != nil {
		l.session.opts.Metrics.Refused.WithLabelValues(a.Refused.Kind.String()).Inc()
	}
	l.outcome(t, a)
}

// resolve answers a request from another goroutine.
func (l *lane) resolve(t sessioncore.Token, a sessioncore.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.core.IsOpen(t) {
		l.settle(t, a)
		l.flush()
	}
}

func (l *lane) refuse(t sessioncore.Token, f wire.Refusal) {
	l.settle(t, sessioncore.Answer{Refusal: &f})
}

// countOwnRefusal counts what the core refused by itself. mu is held.
func (l *lane) countOwnRefusal() {
	if code := l.core.TakeRefusal(); code != "" {
		l.session.opts.Metrics.Refused.WithLabelValues(code).Inc()
	}
}

func (l *lane) countRefusal(f *wire.Refusal) {
	if f != nil {
		l.session.opts.Metrics.Refused.WithLabelValues(f.Code.String()).Inc()
	}
}

// flush gives back permits, sends what may leave, and finishes the stream when it is over. mu is held.
func (l *lane) flush() {
	l.giveBack()
	l.gate.Ring()
	l.sampleReadiness()
	if !l.writing && l.core.Pending() > 0 && l.send != nil {
		switch err := l.send.TryWriteAll(l.core.Out()); {
		case err == nil:
			l.core.Sent()
			l.sampleLeft(sampleReady)
		case errors.Is(err, ErrWouldBlock):
			out := l.core.TakeOut()
			l.sampleTake()
			if l.writing = l.session.pump("write", func(context.Context) { l.writePump(out) }); !l.writing {
				l.abandon("connection closed")
			}
		default:
			l.abandon("the client stopped reading answers")
		}
	}
	l.bookOwed()
	l.callTurns()
	l.finish()
	if l.draining && l.core.Open() == 0 && l.core.Pending() == 0 && !l.writing {
		l.session.idle()
	}
}

// writePump sends what would block, until it has caught up.
func (l *lane) writePump(out []byte) {
	for {
		_, err := l.send.Write(out)
		l.mu.Lock()
		l.core.Left()
		if err != nil {
			l.abandon("the client stopped reading answers")
		}
		l.sampleLeft(sampleTaken)
		if err != nil || l.core.Pending() == 0 {
			l.writing = false
			l.flush()
			l.mu.Unlock()
			return
		}
		out = l.core.TakeOut()
		l.sampleTake()
		l.bookOwed()
		l.gate.Ring()
		l.mu.Unlock()
	}
}

// abandon lets go of everything: nobody reads the answers. mu is held.
func (l *lane) abandon(why string) {
	l.core.Abandon(why)
	l.sample = sample{}
	l.reads.abandon()
	l.giveBack()
}

// giveBack returns what outcomes have freed: permits of the connection and the node, and places in the admission. mu is
// held.
func (l *lane) giveBack() {
	if n := l.core.Released(); n > 0 {
		lent := min(n, l.lent)
		l.lent -= lent
		l.session.credit.Release(0, n-lent)
		l.session.opts.Frames.Release(0, n-lent)
	}
	if list := l.core.Outcomes(); len(list) > 0 {
		l.session.opts.Admission.done(l.tenant, l.session.use, list)
	}
	l.unpark()
}

// finish closes both halves once nothing is owed. mu is held.
func (l *lane) finish() {
	if l.closed || l.writing || !l.core.Finished() {
		return
	}
	l.closed = true
	if fault := l.core.Fault(); fault != "" {
		l.session.opts.Metrics.StreamsRefused.WithLabelValues(fault).Inc()
	}
	if l.send != nil {
		_ = l.send.Close()
	}
	l.recv.CancelRead()
	if l.expiry != nil {
		l.expiry.Stop()
	}
	if l.tenant != nil {
		l.session.opts.Admission.detach(l.tenant)
	}
	l.session.laneDone(l)
}

// readEnded is called once the read pump reads no more.
func (l *lane) readEnded(err error) {
	l.session.givePartial(l.partial)
	l.partial = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil: // the core ended the stream, or the connection is gone
		l.core.End("connection closed")
	case errors.Is(err, io.EOF) && l.framer.InHeader():
		l.core.End("finished by the client")
	case errors.Is(err, os.ErrDeadlineExceeded) && !l.core.Authenticated():
		l.session.authTimedOut()
		l.abandon("authentication timeout")
	default:
		l.abandon(fmt.Sprintf("read: %v", err))
	}
	l.flush()
}

// failed gives back what the lane holds of the node's budgets when its read pump panics: that costs the connection, and must
// not cost the node a part of its memory for ever. The request at hand is settled; nobody else would.
func (l *lane) failed() {
	l.session.givePartial(l.partial)
	l.partial = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handling && l.core.IsOpen(l.inHand) { // a shard may have it or not
		f := wire.Refuse(wire.CodeUnacknowledged, "the broker failed; the request may or may not have been done")
		l.settle(l.inHand, sessioncore.Answer{Refusal: &f})
	}
	l.abandon("the broker failed")
	l.flush()
}

// drain makes the lane refuse what comes from now on.
func (l *lane) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.core.Drain()
}

// leavePreauth frees the lane's places among the unauthenticated streams. Only the read pump calls it.
func (l *lane) leavePreauth() {
	if l.preauthBooked {
		l.preauthBooked = false
		l.session.opts.Preauth.Give(1)
	}
	if l.inPreauth {
		l.inPreauth = false
		l.session.preauth.Release(0, 1)
	}
}

// busy reports whether requests have no outcome yet or answers wait to be sent.
func (l *lane) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.Open() > 0 || l.core.Pending() > 0 || l.writing
}
