package sessioncore

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// PollLimits bound what the polls of groups hold that are with their shards, in bytes of memory: those of one connection, and all of a node,
// of which a tenant may always have a share.
type PollLimits struct{ Conn, Tenant, Node int }

// DefaultPolls is 64 MiB for a node, a quarter of it for each tenant, and 8 MiB for a connection. A poll that waits takes 1.3 KiB with
// ordinary names, so that one connection can have six thousand, and eight such connections, of two tenants at least, use up what all have: a
// thousand polls on each of ten connections are a fifth of it.
func DefaultPolls() PollLimits { return PollLimits{Conn: 8 << 20, Tenant: 16 << 20, Node: 64 << 20} }

// Polls decides whether another poll is taken. Polls wait, for as long as their clients like: they must not use up the permits that the frames
// of everybody else need, and have a budget of their own. It is shared as Admission shares slots: a tenant inside its share is let in while
// there is room at all; beyond it, it uses what others leave free, except for the last share, which is never lent. It is not safe for
// concurrent use.
//
//  1. used is the sum of what all connections, and of what all tenants, hold; never negative;
//  2. a connection or a tenant that holds nothing costs nothing: the caller may forget it.
type Polls struct {
	limits PollLimits
	used   int
}

// PollUse is what the polls of one connection, or of one tenant, hold.
type PollUse struct{ bytes int }

// Idle reports whether it is nothing.
func (u *PollUse) Idle() bool { return u.bytes == 0 }

// NewPolls returns one that holds nothing.
func NewPolls(l PollLimits) *Polls {
	if l.Conn <= 0 || l.Tenant <= 0 || l.Node < l.Tenant {
		panic(fmt.Sprintf("sessioncore: the limits of polls %+v contradict each other", l))
	}
	return &Polls{limits: l}
}

// Take takes a poll that holds so many bytes until Give; nil says that it may wait, anything else why not.
func (p *Polls) Take(conn, tenant *PollUse, bytes int) *wire.Refusal {
	switch {
	case conn.bytes+bytes > p.limits.Conn:
		return tooManyPolls("as many polls of this connection wait as one connection may have; repeat this one after a pause, or use another connection")
	case !within(tenant.bytes, bytes, p.used, p.limits.Tenant, p.limits.Node):
		return tooManyPolls("as many polls of this tenant wait as the node has room for; repeat this one after a pause")
	}
	conn.bytes += bytes
	tenant.bytes += bytes
	p.used += bytes
	return nil
}

// Give gives back what a poll held.
func (p *Polls) Give(conn, tenant *PollUse, bytes int) {
	conn.bytes -= bytes
	tenant.bytes -= bytes
	p.used -= bytes
	if conn.bytes < 0 || tenant.bytes < 0 || p.used < 0 {
		panic("sessioncore: more polls ended than were taken")
	}
}

// Used is what all polls hold, in bytes.
func (p *Polls) Used() int { return p.used }

// Limits are the bounds it was made with.
func (p *Polls) Limits() PollLimits { return p.limits }

// pollPause is how long a poll that was not taken is told to wait, in milliseconds. Others wait for seconds, and one that comes at once would
// find no room again.
const pollPause = 500

func tooManyPolls(message string) *wire.Refusal {
	f := wire.Refuse(wire.CodeOverloaded, message).WithReason(wire.ReasonPublishQueueFull, pollPause)
	return &f
}
