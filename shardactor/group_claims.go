package shardactor

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixd/felixd/shardactor/groupcore"
)

// groupClaims is a node's budget for the records that its groups have in play. Safe for concurrent use; the decisions are groupcore's.
type groupClaims struct {
	mu   sync.Mutex
	core *groupcore.Claims
}

func newGroupClaims(l groupcore.ClaimLimits) *groupClaims {
	return &groupClaims{core: groupcore.NewClaims(l)}
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
	return groupcore.Granted{Records: n, Later: later}
}

// spare takes back what a group does not need, and leave all that it has.
func (c *groupClaims) spare(h *groupcore.Holder, e groupcore.Spare) {
	c.mu.Lock()
	list := c.core.Spare(h, e.Records)
	c.mu.Unlock()
	tellGranted(list)
}

func (c *groupClaims) leave(h *groupcore.Holder) {
	c.mu.Lock()
	list := c.core.Leave(h)
	c.mu.Unlock()
	tellGranted(list)
}

// tellGranted tells groups that waited. One that has ended meanwhile does not hear it, and has given it back.
func tellGranted(list []groupcore.Grant) {
	for _, x := range list {
		x.Owner.(*groupInbox).tell(groupcore.Granted{Records: x.Records})
	}
}

// used is what groups hold, in bytes.
func (c *groupClaims) used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.Used()
}

func (c *groupClaims) register(reg prometheus.Registerer) {
	gauge := func(name, help string, v func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, v)
	}
	reg.MustRegister(
		gauge("felix_group_claim_bytes", "Memory of the records that consumer groups have in flight, beyond a few of each; near the bound of the node, "+
			"or of what is left for their tenant, groups hand out only as many new ones as are settled.", func() float64 { return float64(c.used()) }),
		gauge("felix_group_claim_budget_bytes", "Limit of felix_group_claim_bytes.", func() float64 { return float64(c.core.Limits().Node) }),
	)
}
