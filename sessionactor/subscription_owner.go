package sessionactor

import "time"

// SubscriptionOwner is the Owner of the cursor of a subscription or watch: whose it is, for those who list cursors or hear of drops. It is
// never changed.
type SubscriptionOwner struct {
	Session      uint64 // number of the connection
	Subscription uint64 // that the client knows it by
	Tenant       string
	Principal    string
	Peer         string // "IP:port"
	Since        time.Time
}

func (f *feed) owner() *SubscriptionOwner {
	return &SubscriptionOwner{
		Session: f.session.number, Subscription: f.id, Tenant: f.asked.who.tenant, Principal: f.asked.who.subject,
		Peer: f.session.conn.RemoteAddr(), Since: f.session.opts.Clock.Now(),
	}
}
