package sessioncore

import (
	"fmt"

	"github.com/felixd/felixd/wire/id"
)

// AdmissionLimits bound the requests of a node that were let through to shards and have no outcome yet.
type AdmissionLimits struct {
	// SlotsPerTenant is how many requests a tenant may always have under way; Slots how many all tenants may together.
	SlotsPerTenant, Slots int
	// Bytes is what all of them may hold. A tenant may always hold a share of BytesPerTenant.
	BytesPerTenant, Bytes int
}

// DefaultAdmission is the mission's: 512 slots guaranteed to each tenant, as many in all as that times the executors, and
// the bytes of the node, of which a quarter is kept out of what is lent.
func DefaultAdmission(executors, bytes int) AdmissionLimits {
	return AdmissionLimits{SlotsPerTenant: 512, Slots: 512 * executors, BytesPerTenant: bytes / 4, Bytes: bytes}
}

// Admission decides whether another request is let through. It is not safe for concurrent use.
//
// A tenant inside its guaranteed share is let in while there is room at all. Beyond it, it uses what others leave free, on
// loan, except for the last share, which is never lent: whoever comes next finds it. A request larger than every bound is let
// in when nothing else of its tenant is under way. One shard may have at most half of what its connection may have under way
// (ConnUse). Who is not let in may wait (admission_wait.go); nobody who comes later is let in past one who waits for the same.
//
//  1. slots and bytes are the sums over all tenants, never negative;
//  2. a tenant or a shard without anything under way, and for which nobody waits, costs nothing: the caller may forget the tenant;
//  3. whoever is first in a line does not fit.
type Admission struct {
	limits       AdmissionLimits
	slots, bytes int

	waiting []*TenantUse         // tenants with a line, served in turn
	next    int                  // of them, whose turn it is
	full    map[id.ShardID]*line // of requests that found the shard's mailbox full

	draining bool
}

// TenantUse is what one tenant has under way.
type TenantUse struct {
	slots, bytes int
	line         line // let through by their connection's half
}

// Idle reports whether nothing of the tenant is under way, and nothing waits.
func (u *TenantUse) Idle() bool { return u.slots == 0 && u.line.empty() }

// ConnUse is what one connection has under way, by shard: a shard that is stuck must not take what all requests of the connection
// share. It holds an entry only for shards with something under way or waiting, at most one for each of the connection's requests.
type ConnUse struct {
	half   int
	shards map[id.ShardID]*shardUse
	spare  *shardUse // an entry to be used again
}

type shardUse struct {
	requests, bytes int
	line            line
}

// NewConnUse is for a connection whose requests may hold so many bytes.
func NewConnUse(bytes int) *ConnUse {
	return &ConnUse{half: bytes / 2, shards: map[id.ShardID]*shardUse{}}
}

// Demand is one request that wants to be let through to its shard. Its owner fills the fields and keeps them until the request has
// its outcome or was given up.
type Demand struct {
	Tenant *TenantUse
	Conn   *ConnUse
	Shard  id.ShardID
	Bytes  int
	// Ring is called when one that waits should look again: Granted and Rung say for what. It must not block or call back.
	Ring func()

	granted bool
	rung    bool  // there may be room in the shard's mailbox
	inLine  place // of its connection's shard, then of its tenant
	forRoom place // in the mailbox
}

// Verdict says whether a request is let in.
type Verdict uint8

const (
	// LetIn: it counts as under way.
	LetIn Verdict = iota
	// OverHalf: its shard has half of what the connection may have under way.
	OverHalf
	// NoRoom: the node has enough of the tenant's requests under way, or enough of all.
	NoRoom
	// ShardFull: others wait for room in the shard's mailbox.
	ShardFull
	// Draining: the node stops, and nothing more gets under way.
	Draining
)

// NewAdmission returns an empty admission.
func NewAdmission(l AdmissionLimits) *Admission {
	if l.SlotsPerTenant <= 0 || l.Slots < l.SlotsPerTenant || l.BytesPerTenant <= 0 || l.Bytes < l.BytesPerTenant {
		panic(fmt.Sprintf("sessioncore: admission limits %+v contradict each other", l))
	}
	return &Admission{limits: l, full: map[id.ShardID]*line{}}
}

// Admit lets a request in at once, or says why not.
func (a *Admission) Admit(d *Demand) Verdict {
	if a.draining {
		return Draining
	}
	if a.Behind(d) {
		return ShardFull
	}
	u := d.Conn.shards[d.Shard]
	if u != nil && (!u.line.empty() || !u.fits(d.Bytes, d.Conn.half)) {
		return OverHalf
	}
	if !d.Tenant.line.empty() || !a.fits(d.Tenant, d.Bytes) {
		return NoRoom
	}
	d.Conn.use(d.Shard).take(d.Bytes)
	a.take(d.Tenant, d.Bytes)
	return LetIn
}

// Done takes back what was let in for some requests that have got their outcome: of one tenant, on one connection, for one shard;
// bytes is theirs together.
func (a *Admission) Done(t *TenantUse, c *ConnUse, shard id.ShardID, requests, bytes int) {
	a.takeBack(t, c, shard, requests, bytes)
	a.ringForRoom(shard, requests)
}

// Withdraw takes back that a request was let in: it did not reach its shard.
func (a *Admission) Withdraw(d *Demand) { a.takeBack(d.Tenant, d.Conn, d.Shard, 1, d.Bytes) }

func (a *Admission) takeBack(t *TenantUse, c *ConnUse, shard id.ShardID, requests, bytes int) {
	t.slots -= requests
	t.bytes -= bytes
	a.slots -= requests
	a.bytes -= bytes
	u := c.shards[shard]
	if u == nil || t.slots < 0 || t.bytes < 0 {
		panic("sessioncore: more requests ended than were admitted")
	}
	u.give(requests, bytes)
	a.serveHalf(c, u, shard)
	a.serveTenants()
}

// Drain lets nobody in any more who does not stand in a line already, and nobody into a line: whoever enters one asks Draining first.
func (a *Admission) Drain() { a.draining = true }

// Draining reports whether Drain was called.
func (a *Admission) Draining() bool { return a.draining }

// Quiet reports whether nothing is under way and nobody stands in line. Once it is so while draining, it stays so.
func (a *Admission) Quiet() bool {
	// Who waits for a connection's half waits for requests of that connection, which are under way or in the second line.
	return a.slots == 0 && len(a.waiting) == 0 && len(a.full) == 0
}

// InUse is what all tenants have under way.
func (a *Admission) InUse() (slots, bytes int) { return a.slots, a.bytes }

// fits judges both bounds for another request of a tenant.
func (a *Admission) fits(u *TenantUse, bytes int) bool {
	l := &a.limits
	return within(u.slots, 1, a.slots, l.SlotsPerTenant, l.Slots) && (u.slots == 0 || within(u.bytes, bytes, a.bytes, l.BytesPerTenant, l.Bytes))
}

// within judges one of the two bounds. own is what the tenant has, used what all have.
func within(own, more, used, share, total int) bool {
	if own+more <= share {
		return used+more <= total
	}
	return used+more <= total-share
}

func (a *Admission) take(u *TenantUse, bytes int) {
	u.slots++
	u.bytes += bytes
	a.slots++
	a.bytes += bytes
}

// use is the entry of a shard, a new one if it has none.
func (c *ConnUse) use(shard id.ShardID) *shardUse {
	u := c.shards[shard]
	if u == nil {
		if u = c.spare; u == nil {
			u = &shardUse{}
		}
		c.spare = nil
		c.shards[shard] = u
	}
	return u
}

// forget drops the entry of a shard for which nothing is under way or waits.
func (c *ConnUse) forget(u *shardUse, shard id.ShardID) {
	if u.requests == 0 && u.line.empty() {
		delete(c.shards, shard)
		c.spare = u
	}
}

// fits says whether the shard may have so many bytes more: a request larger than the half passes alone.
func (u *shardUse) fits(bytes, half int) bool { return u.requests == 0 || u.bytes+bytes <= half }

func (u *shardUse) take(bytes int) {
	u.requests++
	u.bytes += bytes
}

func (u *shardUse) give(requests, bytes int) {
	u.requests -= requests
	u.bytes -= bytes
	if u.requests < 0 || u.bytes < 0 || u.requests == 0 && u.bytes != 0 {
		panic("sessioncore: more requests of a shard ended than were admitted")
	}
}
