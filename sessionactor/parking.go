package sessionactor

import (
	"sync"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// Parking is a node's budget for requests of one kind that wait for something slow. They hold no permits of frames then, so that others publish
// and read however many wait. It knows the tenants that have such a request, and no others. Safe for concurrent use; the decisions are
// sessioncore's.
type Parking struct {
	mu      sync.Mutex
	core    *sessioncore.Parking
	tenants map[string]*sessioncore.ParkUse
}

// NewPolls returns a budget for polls of groups that are with their shards, of which nothing is used.
func NewPolls(l sessioncore.ParkLimits) *Parking {
	return newParking(sessioncore.Parked{Name: "polls", Reason: wire.ReasonPublishQueueFull}, l)
}

// NewParked returns a budget for reads of logs and for subscribes that wait, of which nothing is used.
func NewParked(l sessioncore.ParkLimits) *Parking {
	return newParking(sessioncore.Parked{Name: "reads and subscribes", Reason: wire.ReasonRequestsWaiting}, l)
}

func newParking(kind sessioncore.Parked, l sessioncore.ParkLimits) *Parking {
	return &Parking{core: sessioncore.NewParking(kind, l), tenants: map[string]*sessioncore.ParkUse{}}
}

// Used is what is held now, in bytes; Limits is what may be.
func (p *Parking) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.core.Used()
}

// Limits are the bounds it was made with.
func (p *Parking) Limits() sessioncore.ParkLimits { return p.core.Limits() }

// take takes so many bytes for a request of a tenant on a connection, or says why there are none.
func (p *Parking) take(conn *sessioncore.ParkUse, tenant string, bytes int) *wire.Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.tenants[tenant]
	if u == nil {
		u = &sessioncore.ParkUse{}
	}
	f := p.core.Take(conn, u, bytes)
	if f == nil {
		p.tenants[tenant] = u
	}
	return f
}

// give gives them back.
func (p *Parking) give(conn *sessioncore.ParkUse, tenant string, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.tenants[tenant]
	p.core.Give(conn, u, bytes)
	if u.Idle() {
		delete(p.tenants, tenant)
	}
}

// What a request takes in memory while it is parked, in bytes, beside names and keys. For a read that is its place in its stream, what was
// asked, and its place in the line of its lane: 555 to 655 are measured, the most where the ring of a stream has just grown
// (TestAThousandWaitingReadsCostLittle). A subscribe has its place and what was asked; what else it has belongs to the subscription that it is
// going to be, which is bounded by number.
const (
	readHeld      = 768
	subscribeHeld = 384
)

// park lets go of the frame of a request that may wait for long. Until its outcome it counts with so many bytes in a budget of its own; false says
// that there is no room, and that it is refused. mu is held.
func (l *lane) park(t sessioncore.Token, bytes int) bool {
	if f := l.session.opts.Parked.take(&l.session.parked, l.core.Grants().Tenant(), bytes); f != nil {
		l.refuse(t, *f)
		return false
	}
	l.session.opts.Metrics.Parked.Inc()
	l.session.opts.Metrics.ParkedBytes.Add(float64(bytes))
	l.core.Park(t, bytes)
	return true
}

// unpark gives back what parked requests held that have their outcome. mu is held.
func (l *lane) unpark() {
	n, bytes := l.core.Unparked()
	if n == 0 {
		return
	}
	l.session.opts.Parked.give(&l.session.parked, l.core.Grants().Tenant(), bytes)
	l.session.opts.Metrics.Parked.Sub(float64(n))
	l.session.opts.Metrics.ParkedBytes.Sub(float64(bytes))
}

// namesLen is how many bytes the names of what a request is about have.
func namesLen(tenant, namespace, name string) int { return len(tenant) + len(namespace) + len(name) }
