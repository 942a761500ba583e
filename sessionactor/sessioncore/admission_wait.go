package sessioncore

import (
	"slices"

	"github.com/felixd/felixd/wire/id"
)

// Who finds no room may wait. There are three lines, in the order in which a request passes them:
//
//	of its connection's shard    until the shard has less than half of the connection's permits
//	of its tenant                until the node has room for the tenant; tenants with a line are served in turn
//	of the shard                 until there may be room in the shard's mailbox
//
// Each is first in, first out. A request that leaves the first line counts with its connection from then on, one that leaves the
// second counts as under way: what it waited for is its own, so each place that comes free wakes the one it is for. The third line is
// different, because the mailbox is not ours: each outcome of a request of that shard, which had left the mailbox before, wakes one.

// Wait puts a request that was not let in into line. It is granted, and rung, as soon as there is room for it; maybe now. A line holds
// at most one request of each client stream, because a stream that waits is not read.
func (a *Admission) Wait(d *Demand) {
	u := d.Conn.use(d.Shard)
	if !u.line.empty() || !u.fits(d.Bytes, d.Conn.half) {
		u.line.push(&d.inLine, d)
		return
	}
	u.take(d.Bytes)
	a.waitForTenant(d)
}

// Granted reports whether a request that waited was let in. It counts as under way then, as after Admit.
func (d *Demand) Granted() bool { return d.granted }

// GiveUp takes a request out of the first two lines, or takes back that it was let in, when it has not reached its shard.
func (a *Admission) GiveUp(d *Demand) {
	switch t, u := d.Tenant, d.Conn.shards[d.Shard]; d.inLine.of {
	case nil:
		if d.granted {
			d.granted = false
			a.Withdraw(d)
		}
		return
	case &t.line:
		t.line.remove(&d.inLine)
		if t.line.empty() {
			a.leaveTurn(t)
		}
		u.give(1, d.Bytes)
		a.serveHalf(d.Conn, u, d.Shard)
	default:
		u.line.remove(&d.inLine)
		a.serveHalf(d.Conn, u, d.Shard)
	}
	a.serveTenants() // who is first now may fit where this one did not
}

// Reached ends the wait of a request that its shard has taken.
func (a *Admission) Reached(d *Demand) {
	d.granted = false
	a.leaveRoom(d)
}

// waitForTenant is the second line.
func (a *Admission) waitForTenant(d *Demand) {
	t := d.Tenant
	if t.line.empty() && a.fits(t, d.Bytes) {
		a.grant(d)
		return
	}
	if t.line.empty() {
		a.waiting = append(a.waiting, t)
	}
	t.line.push(&d.inLine, d)
}

func (a *Admission) grant(d *Demand) {
	a.take(d.Tenant, d.Bytes)
	d.granted = true
	d.Ring()
}

// serveHalf lets those through for whom the shard has room again.
func (a *Admission) serveHalf(c *ConnUse, u *shardUse, shard id.ShardID) {
	for d := u.line.first(); d != nil && u.fits(d.Bytes, c.half); d = u.line.first() {
		u.line.remove(&d.inLine)
		u.take(d.Bytes)
		a.waitForTenant(d)
	}
	c.forget(u, shard)
}

// serveTenants lets in who fits now, one of each tenant in turn.
func (a *Admission) serveTenants() {
	for refused := 0; refused < len(a.waiting); {
		a.next %= len(a.waiting)
		t := a.waiting[a.next]
		d := t.line.first()
		if !a.fits(t, d.Bytes) {
			refused++
			a.next++
			continue
		}
		refused = 0
		t.line.remove(&d.inLine)
		a.grant(d)
		if a.next++; t.line.empty() {
			a.leaveTurn(t)
		}
	}
}

// leaveTurn takes a tenant without a line out of the turn.
func (a *Admission) leaveTurn(t *TenantUse) {
	i := slices.Index(a.waiting, t)
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if i < a.next {
		a.next--
	}
}

// AwaitRoom puts a request whose shard's mailbox was full in line for room there. true says that it is the first: it should try once
// more, because outcomes of before it stood in line have rung nobody.
func (a *Admission) AwaitRoom(d *Demand) (first bool) {
	l := a.full[d.Shard]
	if l == nil {
		l = &line{}
		a.full[d.Shard] = l
	}
	l.push(&d.forRoom, d)
	return l.head == &d.forRoom
}

// InRoomLine reports whether a request stands in the line for room.
func (d *Demand) InRoomLine() bool { return d.forRoom.of != nil }

// Behind reports whether others stand in line for room in the shard's mailbox, and the request does not.
func (a *Admission) Behind(d *Demand) bool {
	return len(a.full) > 0 && d.forRoom.of == nil && a.full[d.Shard] != nil
}

// TakeRung reports whether there may have come room in the mailbox since the last call.
func (a *Admission) TakeRung(d *Demand) bool {
	rung := d.rung
	d.rung = false
	return rung
}

// LeaveRoom takes a request that did not get room out of the line. What it was woken for goes to the next.
func (a *Admission) LeaveRoom(d *Demand) {
	if d.forRoom.of != nil {
		d.rung = true // it may have been, and looked already
		a.leaveRoom(d)
	}
}

// leaveRoom hands on what the request was rung for and did not look at: an outcome that came while it tried, maybe its own.
func (a *Admission) leaveRoom(d *Demand) {
	l := d.forRoom.of
	if l == nil {
		return
	}
	l.remove(&d.forRoom)
	if l.empty() {
		delete(a.full, d.Shard)
	}
	if d.rung {
		d.rung = false
		a.ringForRoom(d.Shard, 1)
	}
}

// ringForRoom wakes as many of the line as requests of the shard have left its mailbox.
func (a *Admission) ringForRoom(shard id.ShardID, requests int) {
	if len(a.full) == 0 || a.full[shard] == nil {
		return
	}
	for p := a.full[shard].head; p != nil && requests > 0; p = p.next {
		if !p.d.rung {
			p.d.rung = true
			requests--
			p.d.Ring()
		}
	}
}
