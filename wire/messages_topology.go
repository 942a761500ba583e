package wire

import "github.com/felixd/felixd/wire/id"

// Placement: who serves what.

// NotLeader sends a request to the broker that owns the shard; only for clients with FeatureRedirect.
type NotLeader struct {
	NodeID     string
	Addr       Opt[string] // "IP:port" of its client listener
	Generation id.Generation
}

// Topology asks for the brokers a new client may dial.
type Topology struct{}

// TopologyView answers Topology.
type TopologyView struct{ Brokers []Broker }

// Broker is one entry of a TopologyView.
type Broker struct{ NodeID, Addr string }

// StreamShards asks how many shards a stream has.
type StreamShards struct {
	TenantID, Namespace, Stream string
	RequestID                   uint64
}

// StreamShardsView answers StreamShards.
type StreamShardsView struct {
	Shards    uint32 // 0: the stream is not known
	RequestID uint64
	Routing   Routing // modulo is left out
}

// CacheShards asks how many shards a cache has.
type CacheShards struct {
	TenantID, Namespace, Cache string
	RequestID                  uint64
}

// CacheShardsView answers CacheShards.
type CacheShardsView struct {
	Shards    uint32 // 0: the cache is not known
	RequestID uint64
}

// ResourceKind tells streams from caches.
type ResourceKind uint8

const (
	// ResourceStream is a stream.
	ResourceStream ResourceKind = iota
	// ResourceCache is a cache.
	ResourceCache
)

// String returns the name on the wire: "stream" or "cache".
func (k ResourceKind) String() string {
	if k == ResourceCache {
		return "cache"
	}
	return "stream"
}

// ShardOwners asks who owns each shard.
type ShardOwners struct {
	TenantID, Namespace, Name string
	Kind                      ResourceKind
	RequestID                 uint64
}

// ShardOwnersView answers ShardOwners: one entry per shard in shard order, none for an unknown name, at most
// MaxShardOwners.
type ShardOwnersView struct {
	Owners    []ShardOwner
	RequestID uint64
}

// ShardOwner is one entry of a ShardOwnersView.
type ShardOwner struct {
	Shard       uint32
	NodeID      Opt[string] // unset outside a cluster
	Addr        Opt[string]
	Generation  id.Generation // 0 outside a cluster
	Unavailable Opt[string]   // a reason of shard_unavailable when nobody can serve it
}

// MessageType returns "not_leader".
func (*NotLeader) MessageType() string { return "not_leader" }

func (m *NotLeader) fields(f *fields) {
	f.str("node_id", MaxNameBytes, &m.NodeID)
	f.optStr("addr", MaxNameBytes, &m.Addr)
	uintField(f, "generation", &m.Generation)
}

// MessageType returns "topology".
func (*Topology) MessageType() string { return "topology" }

func (*Topology) fields(*fields) {}

// MessageType returns "topology_view".
func (*TopologyView) MessageType() string { return "topology_view" }

func (m *TopologyView) fields(f *fields) { f.brokers("brokers", &m.Brokers) }

func (b *Broker) fields(f *fields) {
	f.str("node_id", MaxNameBytes, &b.NodeID)
	f.str("addr", MaxNameBytes, &b.Addr)
}

// MessageType returns "stream_shards".
func (*StreamShards) MessageType() string { return "stream_shards" }

func (m *StreamShards) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "stream", &m.Stream)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "stream_shards_view".
func (*StreamShardsView) MessageType() string { return "stream_shards_view" }

func (m *StreamShardsView) fields(f *fields) {
	uintField(f, "shards", &m.Shards)
	uintField(f, "request_id", &m.RequestID)
	f.routing("routing", &m.Routing)
}

// MessageType returns "cache_shards".
func (*CacheShards) MessageType() string { return "cache_shards" }

func (m *CacheShards) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "cache_shards_view".
func (*CacheShardsView) MessageType() string { return "cache_shards_view" }

func (m *CacheShardsView) fields(f *fields) {
	uintField(f, "shards", &m.Shards)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "shard_owners".
func (*ShardOwners) MessageType() string { return "shard_owners" }

func (m *ShardOwners) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "name", &m.Name)
	f.resourceKind("kind", &m.Kind)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "shard_owners_view".
func (*ShardOwnersView) MessageType() string { return "shard_owners_view" }

func (m *ShardOwnersView) fields(f *fields) {
	f.owners("owners", &m.Owners)
	uintField(f, "request_id", &m.RequestID)
}

func (o *ShardOwner) fields(f *fields) {
	uintField(f, "shard", &o.Shard)
	f.optStr("node_id", MaxNameBytes, &o.NodeID)
	f.optStr("addr", MaxNameBytes, &o.Addr)
	uintField(f, "generation", &o.Generation)
	f.optStr("unavailable", MaxNameBytes, &o.Unavailable)
}
