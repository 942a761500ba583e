package sessionactor

import "time"

// SubscriptionOwner is the Owner of a subscription's cursor: whose it is, for those who list cursors or hear of drops. It is
// never changed.
type SubscriptionOwner struct {
	Session      uint64 // number of the connection
	Subscription uint64 // that the client knows it by
	Tenant       string
	Principal    string
	Peer         string // "IP:port"
	Since        time.Time
}

func (d *delivery) owner() *SubscriptionOwner {
	return &SubscriptionOwner{
		Session: d.session.number, Subscription: d.id, Tenant: d.request.who.tenant, Principal: d.request.who.subject,
		Peer: d.session.conn.RemoteAddr(), Since: d.session.opts.Clock.Now(),
	}
}
