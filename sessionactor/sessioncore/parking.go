package sessioncore

import (
	"fmt"

	"github.com/felixd/felixd/wire"
)

// ParkLimits bound what requests hold that wait for something slow, in bytes of memory: those of one connection, and all of a node, of which a
// tenant may always have a share.
type ParkLimits struct{ Conn, Tenant, Node int }

// DefaultPolls is 64 MiB for a node, a quarter of it for each tenant, and 8 MiB for a connection. A poll that waits takes 1.3 KiB with
// ordinary names, so that one connection can have six thousand, and eight such connections, of two tenants at least, use up what all have: a
// thousand polls on each of ten connections are a fifth of it.
func DefaultPolls() ParkLimits { return ParkLimits{Conn: 8 << 20, Tenant: 16 << 20, Node: 64 << 20} }

// DefaultParked is the same for reads of logs and for subscribes that wait for a disk, or for answers before theirs. A read takes 0.8 KiB
// with ordinary names, so that one connection can have ten thousand: 40 streams with all that their windows allow. It is apart from that of polls,
// most of which wait for as long as their clients like: they must not keep anybody from reading.
func DefaultParked() ParkLimits { return DefaultPolls() }

// Parking decides whether another request is taken that may wait for something slow, for records or for a disk: such requests must not use up
// the permits that the frames of everybody else need, and have budgets of their own. It is shared as Admission shares slots: a
// tenant inside its share is let in while there is room at all; beyond it, it uses what others leave free, except for the last share, which is
// never lent. It is not safe for concurrent use.
//
//  1. used is the sum of what all connections, and of what all tenants, hold; never negative;
//  2. a connection or a tenant that holds nothing costs nothing: the caller may forget it.
type Parking struct {
	kind   Parked
	limits ParkLimits
	used   int
}

// Parked is a kind of request that waits, as its client is told: what they are called, and the reason in the detail of a refusal.
type Parked struct{ Name, Reason string }

// ParkUse is what the waiting requests of one connection, or of one tenant, hold.
type ParkUse struct{ bytes int }

// Idle reports whether it is nothing.
func (u *ParkUse) Idle() bool { return u.bytes == 0 }

// NewParking returns one that holds nothing.
func NewParking(kind Parked, l ParkLimits) *Parking {
	if l.Conn <= 0 || l.Tenant <= 0 || l.Node < l.Tenant {
		panic(fmt.Sprintf("sessioncore: the limits of %s %+v contradict each other", kind.Name, l))
	}
	return &Parking{kind: kind, limits: l}
}

// Take takes a request that holds so many bytes until Give; nil says that it may wait, anything else why not.
func (p *Parking) Take(conn, tenant *ParkUse, bytes int) *wire.Refusal {
	switch {
	case conn.bytes+bytes > p.limits.Conn:
		return p.full("as many %s of this connection wait as one connection may have; repeat this one after a pause, or use another connection")
	case !within(tenant.bytes, bytes, p.used, p.limits.Tenant, p.limits.Node):
		return p.full("as many %s of this tenant wait as the node has room for; repeat this one after a pause")
	}
	conn.bytes += bytes
	tenant.bytes += bytes
	p.used += bytes
	return nil
}

// Give gives back what a request held.
func (p *Parking) Give(conn, tenant *ParkUse, bytes int) {
	conn.bytes -= bytes
	tenant.bytes -= bytes
	p.used -= bytes
	if conn.bytes < 0 || tenant.bytes < 0 || p.used < 0 {
		panic("sessioncore: more " + p.kind.Name + " ended than were taken")
	}
}

// Used is what all of them hold, in bytes.
func (p *Parking) Used() int { return p.used }

// Limits are the bounds it was made with.
func (p *Parking) Limits() ParkLimits { return p.limits }

// parkPause is how long a request that was not taken is told to wait, in milliseconds. Others wait for seconds, and one that comes at once would
// find no room again.
const parkPause = 500

func (p *Parking) full(format string) *wire.Refusal {
	f := wire.Refuse(wire.CodeOverloaded, fmt.Sprintf(format, p.kind.Name)).WithReason(p.kind.Reason, parkPause)
	return &f
}
