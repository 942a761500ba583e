package sessionactor

import (
	"sync"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// Polls is a node's budget for the polls of groups that are with their shards, most of which wait. They hold no permits of frames then, so that
// others publish however many wait. It knows the tenants that have a poll, and no others. Safe for concurrent use; the decisions are
// sessioncore's.
type Polls struct {
	mu      sync.Mutex
	core    *sessioncore.Polls
	tenants map[string]*sessioncore.PollUse
}

// NewPolls returns a budget of which nothing is used.
func NewPolls(l sessioncore.PollLimits) *Polls {
	return &Polls{core: sessioncore.NewPolls(l), tenants: map[string]*sessioncore.PollUse{}}
}

// Used is what polls hold now, in bytes; Limits is what they may.
func (p *Polls) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.core.Used()
}

// Limits are the bounds it was made with.
func (p *Polls) Limits() sessioncore.PollLimits { return p.core.Limits() }

// take takes so many bytes for a poll of a tenant on a connection, or says why there are none.
func (p *Polls) take(conn *sessioncore.PollUse, tenant string, bytes int) *wire.Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.tenants[tenant]
	if u == nil {
		u = &sessioncore.PollUse{}
	}
	f := p.core.Take(conn, u, bytes)
	if f == nil {
		p.tenants[tenant] = u
	}
	return f
}

// give gives them back.
func (p *Polls) give(conn *sessioncore.PollUse, tenant string, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.tenants[tenant]
	p.core.Give(conn, u, bytes)
	if u.Idle() {
		delete(p.tenants, tenant)
	}
}

// pollHeld is what a poll takes in memory while it waits, in bytes, beside its names: its place in its stream, what was asked, and its entries
// in its lane, in its group's actor and in the group's order of waiting. 800 to 1070 are measured, the most where the ring of a stream has
// just grown (TestAThousandWaitingPollsCostNoGoroutines).
const pollHeld = 1280

// pollBytes is what a poll is counted with: its names are kept once, a member's name and principal once more. Only what is kept counts: the
// frame, and whatever else was in it, is let go of.
func pollBytes(m *wire.GroupPoll, subject string) int {
	n := pollHeld + len(m.TenantID) + len(m.Namespace) + len(m.Stream) + len(m.Group)
	if m.Consumer.Set {
		n += 2*len(m.Consumer.V) + len(subject)
	}
	return n
}
