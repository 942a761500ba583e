package sessionactor

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// TenantCounter counts by tenant and action. The first tenants that count get labels of their own, up to a bound; all others share
// one, so that a node with very many tenants does not become one with very many series.
type TenantCounter struct {
	vec   *prometheus.CounterVec
	most  int
	mu    sync.Mutex
	known map[string]struct{}
}

// TenantLabelsMax is how many tenants have a label of their own unless the operator says otherwise.
const TenantLabelsMax = 100

// tenantOverflow is the label of all other tenants. No tenant has that name: names begin with a letter or digit.
const tenantOverflow = "_overflow"

func newTenantCounter(vec *prometheus.CounterVec) *TenantCounter {
	return &TenantCounter{vec: vec, most: TenantLabelsMax, known: map[string]struct{}{}}
}

// Limit sets how many tenants get a label of their own; 0 is none. It is called before the first count.
func (c *TenantCounter) Limit(most int) { c.most = most }

func (c *TenantCounter) count(tenant, action string) {
	c.vec.WithLabelValues(c.label(tenant), action).Inc()
}

func (c *TenantCounter) label(tenant string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.known[tenant]; known {
		return tenant
	}
	if len(c.known) >= c.most {
		return tenantOverflow
	}
	c.known[tenant] = struct{}{}
	return tenant
}
