package sessioncore

import "fmt"

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
// in when nothing else of its tenant is under way.
//
//  1. slots and bytes are the sums over all tenants, never negative;
//  2. a tenant without anything under way costs nothing: the caller may forget it.
type Admission struct {
	limits       AdmissionLimits
	slots, bytes int
}

// TenantUse is what one tenant has under way.
type TenantUse struct{ slots, bytes int }

// Idle reports whether nothing of the tenant is under way.
func (u *TenantUse) Idle() bool { return u.slots == 0 }

// NewAdmission returns an empty admission.
func NewAdmission(l AdmissionLimits) *Admission {
	if l.SlotsPerTenant <= 0 || l.Slots < l.SlotsPerTenant || l.BytesPerTenant <= 0 || l.Bytes < l.BytesPerTenant {
		panic(fmt.Sprintf("sessioncore: admission limits %+v contradict each other", l))
	}
	return &Admission{limits: l}
}

// Admit lets a request of so many bytes in, or reports false: the node has no room for this tenant now.
func (a *Admission) Admit(u *TenantUse, bytes int) bool {
	if !a.fits(u.slots, 1, a.slots, a.limits.SlotsPerTenant, a.limits.Slots) {
		return false
	}
	if u.slots > 0 && !a.fits(u.bytes, bytes, a.bytes, a.limits.BytesPerTenant, a.limits.Bytes) {
		return false
	}
	u.slots++
	u.bytes += bytes
	a.slots++
	a.bytes += bytes
	return true
}

// fits judges one of the two bounds. own is what the tenant has, used what all have.
func (a *Admission) fits(own, more, used, share, total int) bool {
	if own+more <= share {
		return used+more <= total
	}
	return used+more <= total-share
}

// Done takes back what Admit counted for some requests, bytes together.
func (a *Admission) Done(u *TenantUse, requests, bytes int) {
	u.slots -= requests
	u.bytes -= bytes
	a.slots -= requests
	a.bytes -= bytes
	if u.slots < 0 || u.bytes < 0 {
		panic("sessioncore: more requests ended than were admitted")
	}
}

// InUse is what all tenants have under way.
func (a *Admission) InUse() (slots, bytes int) { return a.slots, a.bytes }
