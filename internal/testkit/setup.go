package testkit

import (
	"time"

	"github.com/felixd/felixd/internal/node"
	"github.com/felixd/felixd/shardactor/route"
)

// Whom the broker serves.
const (
	// Tenant is the only tenant.
	Tenant = "t1"
	// Namespace is where all resources are.
	Namespace = "default"
	// Token is the only token that is taken. It allows everything but what is done to Forbidden.
	Token = "good"
	// Forbidden is the name of a resource that nobody may touch.
	Forbidden = "forbidden"
)

// Setup is what a test changes in its broker. Zeros are the defaults of a node, but for Limits.
type Setup struct {
	AuthTimeout    time.Duration
	Handshake      time.Duration
	Idle           time.Duration // after which a silent connection is given up
	MaxConnections int
	MaxPerIP       int
	SocketBuffers  int // bytes
	NoOffload      bool
	MemoryLimit    int64        // GOMEMLIMIT of the process, in bytes
	Limits         *node.Limits // nil: SmallLimits
	Resources      []Resource
	// Breaks says that the test makes shards fail, so that failures are no finding.
	Breaks bool
}

// Resource is a stream or a cache that the broker has from the beginning.
type Resource struct {
	Name   string
	Shards uint32
	Cache  bool
}

// SmallLimits keep the store of what tests publish small and soon full, so that memory tells of leaks and not of data.
func SmallLimits() node.Limits {
	l := node.DefaultLimits()
	l.RingBatches, l.RingBytes, l.CacheBytes = 256, 1<<20, 2<<20
	return l
}

// assignments are the resources as a control plane would assign them, in the order of their names.
func assignments(all []Resource) []route.Assignment {
	var out []route.Assignment
	for _, r := range all {
		n := route.Name{Kind: route.Stream, Tenant: Tenant, Namespace: Namespace, Name: r.Name}
		if r.Cache {
			n.Kind = route.Cache
		}
		out = append(out, route.Assignment{Name: n, Incarnation: 1, Generation: 1, Shards: r.Shards})
	}
	return out
}
