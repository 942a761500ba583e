package sessionactor

import (
	"sync"

	"github.com/felixd/felixd/sessionactor/sessioncore"
)

// Admission shares a node's places for requests among its tenants, and those of a connection among its shards. It knows the tenants
// that have a stream open, and no others. Safe for concurrent use; the decisions are sessioncore's.
type Admission struct {
	limits sessioncore.AdmissionLimits

	mu      sync.Mutex
	core    *sessioncore.Admission
	tenants map[string]*tenantShare
	quiet   func() // to be called once nothing is under way; nil when nobody drains
}

// tenantShare is what one tenant has under way.
type tenantShare struct {
	name    string
	use     sessioncore.TenantUse
	streams int // that are open; the share is forgotten with the last
}

// NewAdmission returns an empty admission.
func NewAdmission(l sessioncore.AdmissionLimits) *Admission {
	return &Admission{limits: l, core: sessioncore.NewAdmission(l), tenants: map[string]*tenantShare{}}
}

// Limits are the bounds it was made with.
func (a *Admission) Limits() sessioncore.AdmissionLimits { return a.limits }

// InUse is how many requests are under way, and their bytes.
func (a *Admission) InUse() (requests, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.InUse()
}

// attach finds the share of a tenant for a stream; detach lets go of it.
func (a *Admission) attach(tenant string) *tenantShare {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.tenants[tenant]
	if s == nil {
		s = &tenantShare{name: tenant}
		a.tenants[tenant] = s
	}
	s.streams++
	return s
}

func (a *Admission) detach(s *tenantShare) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.streams--; s.streams == 0 {
		delete(a.tenants, s.name)
	}
}

func (a *Admission) admit(d *sessioncore.Demand) sessioncore.Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.Admit(d)
}

// withdraw takes back that a request was let in: it did not reach its shard.
func (a *Admission) withdraw(d *sessioncore.Demand) {
	a.do(func(core *sessioncore.Admission) { core.Withdraw(d) })
}

// done notes the outcomes of some requests of one connection and tenant.
func (a *Admission) done(s *tenantShare, c *sessioncore.ConnUse, list []sessioncore.Outcome) {
	a.do(func(core *sessioncore.Admission) {
		for _, o := range list {
			core.Done(&s.use, c, o.Shard, o.Requests, o.Bytes)
		}
	})
}

// drain lets nothing more in, and calls quiet once what is under way has its outcome: then nothing will be written any more. quiet must
// not block; a lane may hold its lock meanwhile.
func (a *Admission) drain(quiet func()) {
	a.do(func(core *sessioncore.Admission) {
		core.Drain()
		a.quiet = quiet
	})
}

// do makes one step.
func (a *Admission) do(step func(core *sessioncore.Admission)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	step(a.core)
	if a.quiet != nil && a.core.Quiet() {
		a.quiet()
		a.quiet = nil
	}
}
