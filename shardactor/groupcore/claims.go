package groupcore

import (
	"fmt"
	"maps"
	"slices"
)

// ClaimBytes is what a record in play is counted with, in bytes: 200 are measured for one that is claimed, with its places in the group's
// order, and a settled range above it takes 24 more.
const ClaimBytes = 256

// FreeClaims is how many records each group may always have in play, whatever others hold: so that none waits for another to settle. They
// are 4 KiB, a part of what a group takes that is in memory at all.
const FreeClaims = 16

// claimStep is how many records are given to a group at once, at least: 16 KiB. A group whose polls ask for fewer is asked for no more of them
// than once for so many.
const claimStep = 64

// ClaimLimits bound the memory of the records that groups have in play beyond FreeClaims of each, or what they keep, in bytes: of all groups of
// a node, of which those of a tenant may always have a share.
type ClaimLimits struct{ Tenant, Node int64 }

// DefaultClaims is 256 MiB for a node, which are a million records in flight, and a quarter of it for each tenant: 26 groups with 10,000 each.
func DefaultClaims() ClaimLimits { return ClaimsOf(256 << 20) }

// ClaimsOf divides so many bytes: a quarter is each tenant's share.
func ClaimsOf(node int64) ClaimLimits { return ClaimLimits{Tenant: node / 4, Node: node} }

// Claims decides how much of something the groups of a node may have: how many records in play (NewClaims), or how much they keep (NewKept, which
// counts in other units and calls them records all the same). A tenant inside its share gets some while there is room at all; beyond
// it, it uses what others leave free, except for the last share, which is never lent. Who gets less than it wants waits: tenants take turns, and
// the groups of one are served in the order they came. It is not safe for concurrent use.
//
//  1. used is the sum of what all holders hold, and of what all tenants do; only what had to be counted is beyond the limits;
//  2. nobody waits for whom there is room for a step;
//  3. a tenant without a holder is forgotten.
type Claims struct {
	limits       ClaimLimits
	unit         int64 // bytes of a record
	share, total int   // in records
	used         int
	tenants      map[string]*claimTenant
	turn         *claimTenant // of those in which somebody waits, who is next
	queued       int          // how many such tenants there are
}

type claimTenant struct {
	name          string
	holders, used int
	first, last   *Holder      // that wait, in the order they came
	before, after *claimTenant // in the ring of those in which somebody waits
}

// Holder is a group as Claims knows it.
type Holder struct {
	owner         any
	tenant        *claimTenant
	held          int
	backed        int // of that so much had room, and was not only counted
	wants         int // 0 unless it waits
	before, after *Holder
}

// Grant says that a group which waited has got so many records. Owner is what it joined with.
type Grant struct {
	Owner   any
	Records int
}

// NewClaims returns a budget for records in play, of which nothing is used.
func NewClaims(l ClaimLimits) *Claims { return newClaims(l, ClaimBytes) }

func newClaims(l ClaimLimits, unit int64) *Claims {
	if l.Tenant < claimStep*unit || l.Node < l.Tenant {
		panic(fmt.Sprintf("groupcore: the limits %+v contradict each other", l))
	}
	return &Claims{limits: l, unit: unit, share: int(l.Tenant / unit), total: int(l.Node / unit), tenants: make(map[string]*claimTenant)}
}

// Used is what is held, in bytes.
func (c *Claims) Used() int64 { return int64(c.used) * c.unit }

// Limits are the bounds it was made with.
func (c *Claims) Limits() ClaimLimits { return c.limits }

// Join takes a group in, which holds nothing. owner is the caller's, and is not looked into.
func (c *Claims) Join(tenant string, owner any) *Holder {
	t := c.tenants[tenant]
	if t == nil {
		t = &claimTenant{name: tenant}
		c.tenants[tenant] = t
	}
	t.holders++
	return &Holder{owner: owner, tenant: t}
}

// Enter is Join of a group that holds so many from then on, if there is room for all of them; if not it returns nil.
func (c *Claims) Enter(tenant string, owner any, records int) *Holder {
	h := c.Join(tenant, owner)
	if c.fits(h.tenant, records) < records {
		c.Leave(h) // it held nothing: nobody gets more
		return nil
	}
	c.give(h, records)
	return h
}

// Keep has a group hold exactly so many, which are counted in any case, and no longer wait. It says who gets what it held more.
func (c *Claims) Keep(h *Holder, records int) []Grant {
	c.part(h)
	more := records - h.held
	given := c.fits(h.tenant, max(more, 0))
	c.give(h, given)
	c.hold(h, more-given)
	return c.serve()
}

// Own makes another one the owner of what a group holds, which is how much, and of that so much had room.
func (c *Claims) Own(h *Holder, owner any) (held, backed int) {
	h.owner = owner
	return h.held, h.backed
}

// Want answers Core.Wants: must records are counted in any case, as many of the others are given as there is room for. later says
// that it waits, and that a Grant follows unless it leaves.
func (c *Claims) Want(h *Holder, records, must int) (given int, later bool) {
	c.hold(h, must)
	given = c.fits(h.tenant, records)
	c.give(h, given)
	if lacks := records - given; lacks > 0 || must > 0 && c.fits(h.tenant, claimStep) == 0 {
		c.wait(h, max(lacks, claimStep))
	}
	return given + must, h.wants > 0
}

// Spare takes records back, and says who gets them.
func (c *Claims) Spare(h *Holder, records int) []Grant {
	c.hold(h, -records)
	return c.serve()
}

// Leave takes back everything, and forgets the group; it says who gets it.
func (c *Claims) Leave(h *Holder) []Grant {
	t := h.tenant
	c.part(h)
	c.hold(h, -h.held)
	if t.holders--; t.holders == 0 {
		delete(c.tenants, t.name)
	}
	return c.serve()
}

func (c *Claims) hold(h *Holder, n int) {
	h.held += n
	h.tenant.used += n
	c.used += n
	if h.backed = min(h.backed, h.held); h.held < 0 {
		panic("groupcore: more records are given back than were given")
	}
}

// give is hold of what there is room for.
func (c *Claims) give(h *Holder, n int) {
	c.hold(h, n)
	h.backed += n
}

// fits is how many of so many records there is room for: all of them, or some steps.
func (c *Claims) fits(t *claimTenant, records int) int {
	room := max(min(c.share-t.used, c.total-c.used), c.total-c.share-c.used, 0)
	if records <= room {
		return records
	}
	return room / claimStep * claimStep
}

// serve gives what there is to those who wait.
func (c *Claims) serve() (list []Grant) {
	for passed := 0; passed < c.queued && c.used+claimStep <= c.total; {
		t := c.turn
		c.turn = t.after
		h := t.first
		n := c.fits(t, h.wants)
		if n == 0 {
			passed++
			continue
		}
		passed = 0
		c.part(h)
		c.give(h, n)
		list = append(list, Grant{h.owner, n})
	}
	return list
}

// wait puts a holder behind the others of its tenant, unless it waits already.
func (c *Claims) wait(h *Holder, records int) {
	t := h.tenant
	if h.wants > 0 {
		h.wants = max(h.wants, records)
		return
	}
	h.wants = records
	if t.first != nil {
		h.before, t.last.after = t.last, h
		t.last = h
		return
	}
	t.first, t.last = h, h
	c.queued++
	if c.turn == nil {
		t.before, t.after = t, t
		c.turn = t
		return
	}
	t.before, t.after = c.turn.before, c.turn
	t.before.after, t.after.before = t, t
}

// part takes a holder out of those that wait.
func (c *Claims) part(h *Holder) {
	if h.wants == 0 {
		return
	}
	t := h.tenant
	if h.before != nil {
		h.before.after = h.after
	} else {
		t.first = h.after
	}
	if h.after != nil {
		h.after.before = h.before
	} else {
		t.last = h.before
	}
	h.before, h.after, h.wants = nil, nil, 0
	if t.first != nil {
		return
	}
	c.queued--
	t.before.after, t.after.before = t.after, t.before
	if c.turn == t {
		c.turn = t.after
	}
	if c.turn == t {
		c.turn = nil
	}
	t.before, t.after = nil, nil
}

// check verifies the invariants.
func (c *Claims) check() error {
	used, waiting := 0, 0
	for _, name := range slices.Sorted(maps.Keys(c.tenants)) {
		t := c.tenants[name]
		used += t.used
		if t.first != nil {
			waiting++
		}
		switch {
		case t.name != name || t.holders < 1 || t.used < 0:
			return fmt.Errorf("tenant %q has %d groups that hold %d", name, t.holders, t.used)
		case t.first != nil && c.fits(t, claimStep) > 0:
			return fmt.Errorf("a group of tenant %q waits for %d, and there is room", name, t.first.wants)
		case (t.first != nil) != (t.after != nil):
			return fmt.Errorf("tenant %q is in the ring: %v", name, t.after != nil)
		}
	}
	if used != c.used || waiting != c.queued {
		return fmt.Errorf("%d are used, not %d, %d tenants wait, not %d", c.used, used, c.queued, waiting)
	}
	return nil
}
