package sessionactor

import (
	"testing"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// waits sends so many polls that wait, with the request ids from on.
func (l *line) waits(from, n uint64) {
	for i := range n {
		m := pollFor(1, 30_000)
		m.RequestID = from + i
		l.send(m)
	}
}

// waiting is how many polls wait once all that were sent have been looked at.
func (x *site) waiting(n int) {
	x.t.Helper()
	eventually(x.t, "the polls wait", func() bool { return x.metric("felix_group_polls_waiting") == float64(n) })
}

// However many polls wait, they hold nothing of what frames need, of their connection's and of the node's: who publishes there or elsewhere
// finds all of it.
func TestPollsThatWaitKeepNobodyFromPublishing(t *testing.T) {
	const bound, lanes, each = 16 << 10, 4, 100
	x := newSiteDisk().stored(t, setting{change: func(o *Options) { o.Frames, o.ConnBytes = actors.NewCredit(1, bound), bound }})
	c := x.connect()
	for range lanes {
		dial(t, c, today()).waits(0, each)
	}
	x.waiting(lanes * each)
	eventually(t, "they hold no permits", func() bool { _, held := x.opts.Frames.InUse(); return held == 0 })
	dial(t, c, today()).publish("wide", "a")
	dial(t, x.connect(), today()).publish("wide", "a")
	if n, want := x.opts.Polls.Used(), lanes*each*pollBytes(pollFor(1, 0), ""); n != want || x.metric("felix_group_poll_bytes") != float64(want) {
		t.Errorf("%d bytes are counted, %v in the metric, want %d", n, x.metric("felix_group_poll_bytes"), want)
	}
}

// tight makes a site with room for so many polls of a connection, of a tenant's share, and of the node.
func tight(t *testing.T, conn, share, node int) *site {
	one := pollBytes(pollFor(1, 0), "")
	return newSiteDisk().stored(t, setting{change: func(o *Options) {
		o.Polls = NewPolls(sessioncore.ParkLimits{Conn: conn * one, Tenant: share * one, Node: node * one})
	}})
}

// noRoomFor checks that a poll is told to come again after a pause, and what else its client asks is done.
func (l *line) noRoomFor(m *wire.GroupPoll) {
	l.t.Helper()
	r := refused(l.t, l.ask(m))
	if r.Code != wire.CodeOverloaded || r.Retry != wire.RetryAfter || r.RetryAfterMS == 0 || r.Reason != wire.ReasonPublishQueueFull {
		l.t.Errorf("refused %+v", r)
	}
	l.describe()
}

// One connection has its bound of polls; one more is refused, whether it would wait or not, and the connection goes on. Another connection has
// its own, and what is answered makes room again.
func TestAConnectionWithItsBoundOfPollsIsToldToComeAgain(t *testing.T) {
	const most = 5
	x := tight(t, most, 4*most, 4*most)
	c := x.connect()
	waiter, l := dial(t, c, today()), dial(t, c, today())
	waiter.waits(0, most)
	x.waiting(most)
	l.noRoomFor(pollFor(1, 30_000))
	l.noRoomFor(pollFor(1, 0))
	long := pollFor(1, 0)
	long.Group = "a longer name, of which none is let in either"
	l.noRoomFor(long)
	other := dial(t, x.connect(), today())
	other.waits(0, most)
	x.waiting(2 * most)
	l.publish("orders", "a", "b")
	handed(t, waiter.polled(0), 1, 0)
	handed(t, other.polled(0), 1, 1) // in turn
	handed(t, l.poll(pollFor(1, 0)), 0)
	if n := x.metric("felix_requests_refused_total"); n != 3 {
		t.Errorf("%v refused polls were counted", n)
	}
}

// The polls of one tenant leave the last share of the node's room to others. The site has one tenant, so nobody takes it here.
func TestATenantWhosePollsFillTheNodeIsToldToComeAgain(t *testing.T) {
	x := tight(t, 4, 2, 10)
	for range 2 {
		dial(t, x.connect(), today()).waits(0, 4)
	}
	x.waiting(8)
	c := x.connect()
	l := dial(t, c, today())
	l.noRoomFor(pollFor(1, 30_000))
	l.publish("orders", "a")
	x.waiting(7)
	l.waits(1, 1)
	x.waiting(8)
}

// What polls hold comes back however they end: by records, by nothing, by a refusal, by the end of their time, stream, connection, shard.
func TestWhatPollsHoldComesBackHoweverTheyEnd(t *testing.T) {
	x := newSiteDisk().stored(t, setting{})
	none := func(what string) {
		t.Helper()
		eventually(t, what, func() bool { return x.opts.Polls.Used() == 0 && x.metric("felix_group_poll_bytes") == 0 })
		if n := len(x.opts.Polls.tenants); n != 0 {
			t.Errorf("%s: %d tenants are remembered", what, n)
		}
	}
	c := x.connect()
	l := dial(t, c, today())
	l.poll(pollFor(1, 0))
	none("nothing was there")
	refused(t, l.ask(pollFor(0, 0)))
	none("the group refused it")
	missing := pollFor(1, 0)
	missing.Stream = "nowhere"
	refused(t, l.ask(missing))
	none("its stream is not there")
	l.publish("orders", "a")
	handed(t, l.poll(pollFor(1, 0)), 1, 0)
	none("it got its record")
	handed(t, l.poll(pollFor(1, 10)), 0)
	none("its time is over")
	l.waits(0, 3)
	x.waiting(3)
	c.leave()
	none("its connection is gone")
	l = dial(t, x.connect(), today())
	l.waits(0, 3)
	x.waiting(3)
	x.desire(stream("wide", 4))
	for range 3 {
		refused(t, l.next())
	}
	none("its shard is gone")
}
