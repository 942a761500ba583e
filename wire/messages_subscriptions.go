package wire

import "github.com/felixd/felixd/wire/id"

// Which subscriptions a broker serves, for operators (FeatureHiInspect), page by page.

// SubscriptionsList asks for one page.
type SubscriptionsList struct {
	RequestID uint64
	Filter    Opt[SubscriptionFilter]
	Limit     Opt[uint32]             // entries of the page, at most MaxInspectPage; unset: InspectPage
	Cursor    Opt[SubscriptionCursor] // where the page before ended
}

// SubscriptionFilter narrows the list by everything that is set.
type SubscriptionFilter struct {
	TenantID, Namespace, Stream Opt[string]
	Shard                       Opt[uint32]
	Principal                   Opt[string]
	Dropping                    Opt[bool] // only those that have dropped records, or only those that have not
}

// SubscriptionCursor is a place in the list: entries are in the order of its fields.
type SubscriptionCursor struct {
	TenantID, Namespace, Stream string
	Shard                       uint32
	SubscriberID                uint64
}

// SubscriptionsListInfo answers SubscriptionsList.
type SubscriptionsListInfo struct {
	NodeID        string             // empty outside a cluster
	Subscriptions []SubscriptionView // at most MaxInspectPage
	NextCursor    Opt[SubscriptionCursor]
	RequestID     uint64
}

// SubscriptionView is one subscription.
type SubscriptionView struct {
	TenantID, Namespace, Stream string
	Shard                       uint32
	SubscriberID                uint64      // of the shard, never used again
	SubscriptionID              Opt[uint64] // that the client knows it by
	Connection                  Opt[uint64] // number of the client's connection
	Peer                        Opt[string] // "IP:port" of the client
	Principal                   Opt[string]
	Policy                      string // "block", "drop_new" or "drop_old"
	Depth                       uint64 // batches queued
	Capacity                    uint64 // batches that may be queued
	Dropped                     uint64 // records, since the subscription began
	Position                    Opt[id.Offset]
	Tail                        id.Offset // of the shard
	AgeMillis                   uint64
}

// MessageType returns "subscriptions_list".
func (*SubscriptionsList) MessageType() string { return "subscriptions_list" }

func (m *SubscriptionsList) fields(f *fields) {
	uintField(f, "request_id", &m.RequestID)
	f.subscriptionFilter("filter", &m.Filter)
	optUint(f, "limit", &m.Limit)
	f.subscriptionCursor("cursor", &m.Cursor)
}

func (s *SubscriptionFilter) fields(f *fields) {
	f.optStr("tenant_id", MaxNameBytes, &s.TenantID)
	f.optStr("namespace", MaxNameBytes, &s.Namespace)
	f.optStr("stream", MaxNameBytes, &s.Stream)
	optUint(f, "shard", &s.Shard)
	f.optStr("principal", MaxPublisherBytes, &s.Principal)
	f.optBool("dropping", &s.Dropping)
}

func (c *SubscriptionCursor) fields(f *fields) {
	f.names(&c.TenantID, &c.Namespace, "stream", &c.Stream)
	uintField(f, "shard", &c.Shard)
	uintField(f, "subscriber_id", &c.SubscriberID)
}

// MessageType returns "subscriptions_list_info".
func (*SubscriptionsListInfo) MessageType() string { return "subscriptions_list_info" }

func (m *SubscriptionsListInfo) fields(f *fields) {
	f.str("node_id", MaxNameBytes, &m.NodeID)
	f.subscriptions("subscriptions", &m.Subscriptions)
	f.subscriptionCursor("next_cursor", &m.NextCursor)
	uintField(f, "request_id", &m.RequestID)
}

func (s *SubscriptionView) fields(f *fields) {
	f.names(&s.TenantID, &s.Namespace, "stream", &s.Stream)
	uintField(f, "shard", &s.Shard)
	uintField(f, "subscriber_id", &s.SubscriberID)
	optUint(f, "subscription_id", &s.SubscriptionID)
	optUint(f, "connection", &s.Connection)
	f.optStr("peer", MaxNameBytes, &s.Peer)
	f.optStr("principal", MaxPublisherBytes, &s.Principal)
	f.str("policy", MaxNameBytes, &s.Policy)
	uintField(f, "depth", &s.Depth)
	uintField(f, "capacity", &s.Capacity)
	uintField(f, "dropped", &s.Dropped)
	optUint(f, "position", &s.Position)
	uintField(f, "tail", &s.Tail)
	uintField(f, "age_ms", &s.AgeMillis)
}

func (f *fields) subscriptionFilter(name string, v *Opt[SubscriptionFilter]) {
	if !f.optObject(name, v.Set) {
		return
	}
	v.Set = true
	for o := f.object("filter."); f.more(&o); {
		v.V.fields(f)
	}
}

func (f *fields) subscriptionCursor(name string, v *Opt[SubscriptionCursor]) {
	if !f.optObject(name, v.Set) {
		return
	}
	v.Set = true
	for o := f.object("cursor."); f.more(&o); {
		v.V.fields(f)
	}
}

const leastSubscription = len(`{"tenant_id":"","namespace":"","stream":"","shard":0,"subscriber_id":0,"policy":"","depth":0,` +
	`"capacity":0,"dropped":0,"tail":0,"age_ms":0},`)

// subscriptions is an array of at most MaxInspectPage objects.
func (f *fields) subscriptions(name string, v *[]SubscriptionView) {
	if !f.array(name, must) {
		return
	}
	if f.pass == reading {
		*v = make([]SubscriptionView, 0, f.room(leastSubscription, MaxInspectPage))
	}
	for i := 0; f.element(i, len(*v)); i++ {
		if f.pass == reading {
			*v = append(*v, SubscriptionView{})
		}
		for o := f.object("subscriptions."); f.more(&o); {
			(*v)[i].fields(f)
		}
	}
}
