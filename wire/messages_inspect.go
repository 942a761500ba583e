package wire

import "github.com/felixd/felixd/wire/id"

// What one broker knows of one shard, for operators (FeatureHiInspect). Words such as role and phase are kept as the
// text that came, so that those of a later version survive.

// ShardInspect asks a broker for its own view of a shard.
type ShardInspect struct {
	TenantID, Namespace, Name string
	Kind                      ResourceKind
	Shard                     uint32
	RequestID                 uint64
}

// ShardInspectInfo answers ShardInspect.
type ShardInspectInfo struct {
	View      ShardView
	RequestID uint64
}

// ShardView is a shard as one broker sees it. What does not apply is unset.
type ShardView struct {
	NodeID             string // empty outside a cluster
	Shards             uint32 // of the stream or cache; 0: not known
	Role               string // "leader", "follower" or "none"
	Phase              string // "unassigned", "opening", "fencing", "active", "draining", "closed" or "failed"
	Serving            bool   // takes writes; if not, Reason says why
	Reason             Opt[string]
	Detail             Opt[string] // prose
	Generation         Opt[id.Generation]
	Assignment         Opt[AssignmentView]
	Fence              Opt[FenceView]
	Lease              Opt[LeaseView]
	Tail               Opt[id.Offset] // of the broker's own copy of the log
	Committed          Opt[id.Offset] // what a majority holds, as its leader knows it
	AcceptedGeneration Opt[id.Generation]
	Replicas           []ReplicaView // the other replicas, as the leader sees them; at most MaxShardReplicas
}

// AssignmentView is who is to serve the shard.
type AssignmentView struct {
	Generation id.Generation
	Leader     string
	Replicas   []string // at most MaxShardReplicas
	Draining   bool
	Successor  Opt[string]
}

// FenceView is how far a new leader is with binding its replicas to its generation.
type FenceView struct {
	Took        []string // at most MaxShardReplicas, like the next one
	Pending     []string
	Attempts    uint32
	RetryMillis Opt[uint64] // until the next attempt, in milliseconds
}

// LeaseView is the right to serve.
type LeaseView struct {
	Held            bool
	RemainingMillis Opt[uint64]
}

// ReplicaView is one other replica.
type ReplicaView struct {
	NodeID     string
	Role       string         // "follower" or "learner"
	NextOffset Opt[id.Offset] // that the leader sends next
	Lag        Opt[uint64]    // records behind the tail
	Fence      bool           // is bound to the generation
	State      Opt[string]    // "shipping", "stalled", "copying", "rebuilding", "fencing" or "halted"
	Halted     Opt[string]    // why
}

// MessageType returns "shard_inspect".
func (*ShardInspect) MessageType() string { return "shard_inspect" }

func (m *ShardInspect) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "name", &m.Name)
	f.resourceKind("kind", &m.Kind)
	uintField(f, "shard", &m.Shard)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "shard_inspect_info".
func (*ShardInspectInfo) MessageType() string { return "shard_inspect_info" }

func (m *ShardInspectInfo) fields(f *fields) {
	f.shardView("view", &m.View)
	uintField(f, "request_id", &m.RequestID)
}

func (v *ShardView) fields(f *fields) {
	f.str("node_id", MaxNameBytes, &v.NodeID)
	uintField(f, "shards", &v.Shards)
	f.str("role", MaxNameBytes, &v.Role)
	f.str("phase", MaxNameBytes, &v.Phase)
	f.boolField("serving", &v.Serving)
	f.optStr("reason", MaxNameBytes, &v.Reason)
	f.optStr("detail", unlimited, &v.Detail)
	optUint(f, "generation", &v.Generation)
	f.assignment("assignment", &v.Assignment)
	f.fence("fence", &v.Fence)
	f.lease("lease", &v.Lease)
	optUint(f, "tail", &v.Tail)
	optUint(f, "committed", &v.Committed)
	optUint(f, "accepted_generation", &v.AcceptedGeneration)
	f.replicas("replicas", &v.Replicas)
}

func (a *AssignmentView) fields(f *fields) {
	uintField(f, "generation", &a.Generation)
	f.str("leader", MaxNameBytes, &a.Leader)
	f.nodes("replicas", &a.Replicas)
	f.defBool("draining", &a.Draining)
	f.optStr("successor", MaxNameBytes, &a.Successor)
}

func (v *FenceView) fields(f *fields) {
	f.nodes("took", &v.Took)
	f.nodes("pending", &v.Pending)
	defUint(f, "attempts", &v.Attempts)
	optUint(f, "retry_in_ms", &v.RetryMillis)
}

func (l *LeaseView) fields(f *fields) {
	f.boolField("held", &l.Held)
	optUint(f, "remaining_ms", &l.RemainingMillis)
}

func (r *ReplicaView) fields(f *fields) {
	f.str("node_id", MaxNameBytes, &r.NodeID)
	f.str("role", MaxNameBytes, &r.Role)
	optUint(f, "next_offset", &r.NextOffset)
	optUint(f, "lag", &r.Lag)
	f.defBool("fence", &r.Fence)
	f.optStr("state", MaxNameBytes, &r.State)
	f.optStr("halted", MaxNameBytes, &r.Halted)
}
