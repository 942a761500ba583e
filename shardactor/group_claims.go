package shardactor

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/shardactor/groupcore"
)

// groupClaims is a node's budget for the records that its groups have in play, or for what they keep. Safe for concurrent use; the decisions are
// groupcore's.
type groupClaims struct {
	of   groupcore.Budget
	mu   sync.Mutex
	core *groupcore.Claims
}

func newGroupClaims(l groupcore.ClaimLimits) *groupClaims {
	return &groupClaims{of: groupcore.BudgetClaims, core: groupcore.NewClaims(l)}
}

func newGroupKept(l groupcore.ClaimLimits) *groupClaims {
	return &groupClaims{of: groupcore.BudgetKept, core: groupcore.NewKept(l)}
}

// join takes in a group of a tenant, which is told in its inbox what it is given later.
func (c *groupClaims) join(tenant string, inbox *groupInbox) *groupcore.Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.Join(tenant, inbox)
}

// want answers what a group asks for.
func (c *groupClaims) want(h *groupcore.Holder, w groupcore.Want) groupcore.Granted {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, later := c.core.Want(h, w.Records, w.Must)
	return groupcore.Granted{Of: c.of, Records: n, Later: later}
}

// spare takes back what a group does not need, and leave all that it has.
func (c *groupClaims) spare(h *groupcore.Holder, e groupcore.Spare) {
	c.mu.Lock()
	list := c.core.Spare(h, e.Records)
	c.mu.Unlock()
	c.tellGranted(list)
}

func (c *groupClaims) leave(h *groupcore.Holder) {
	c.mu.Lock()
	list := c.core.Leave(h)
	c.mu.Unlock()
	c.tellGranted(list)
}

// enter is join with so many at once; nil: there is no room.
func (c *groupClaims) enter(tenant string, inbox *groupInbox, n int) *groupcore.Holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.Enter(tenant, inbox, n)
}

// keep has a group that does not run hold exactly so many.
func (c *groupClaims) keep(h *groupcore.Holder, n int) {
	c.mu.Lock()
	list := c.core.Keep(h, n)
	c.mu.Unlock()
	c.tellGranted(list)
}

// own has another inbox told of what a group is given later; it returns what the group holds now, and for how much of that there was room.
func (c *groupClaims) own(h *groupcore.Holder, inbox *groupInbox) (held, backed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.Own(h, inbox)
}

// tellGranted tells groups that waited. One that has ended meanwhile does not hear it, and has given it back.
func (c *groupClaims) tellGranted(list []groupcore.Grant) {
	for _, x := range list {
		x.Owner.(*groupInbox).tell(groupcore.Granted{Of: c.of, Records: x.Records})
	}
}

// used is what groups hold, in bytes.
func (c *groupClaims) used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.Used()
}

func (c *groupClaims) register(reg prometheus.Registerer) {
	c.gauge(reg, "felix_group_claim_bytes", "Memory of the records that consumer groups have in flight, beyond a few of each; near the bound of the node, "+
		"or of what is left for their tenant, groups hand out only as many new ones as are settled.", c.used)
	c.gauge(reg, "felix_group_claim_budget_bytes", "Limit of felix_group_claim_bytes.", c.limit)
}

func (c *groupClaims) registerKept(reg prometheus.Registerer) {
	c.gauge(reg, "felix_group_state_bytes", "Memory of what consumer groups keep, in memory or at rest: each group, and its dead letters, settled ranges, "+
		"delivery numbers and unfinished records beyond a few; near the bound of the node, or of what is left for their tenant, no group is made, and new "+
		"records are handed out few at a time.", c.used)
	c.gauge(reg, "felix_group_state_budget_bytes", "Limit of felix_group_state_bytes.", c.limit)
}

func (c *groupClaims) gauge(reg prometheus.Registerer, name, help string, v func() int64) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(v()) }))
}

func (c *groupClaims) limit() int64 { return c.core.Limits().Node }
