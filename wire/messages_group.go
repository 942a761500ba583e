package wire

import "github.com/felixd/felixd/wire/id"

// Consumer groups: taking records and settling them. All for clients with FeatureConsumerGroup; further features are
// named where they are needed.

// GroupTarget is what every group request begins with: which group of which shard, and the id of the request.
type GroupTarget struct {
	TenantID, Namespace, Stream string
	Shard                       uint32
	Group                       string // at most MaxNameBytes
	RequestID                   uint64
}

// GroupPoll asks for records nobody else is working on. Answered by GroupRecords.
type GroupPoll struct {
	GroupTarget
	MaxRecords       uint32
	WaitMillis       uint64      // how long the broker may look for records, in milliseconds
	Consumer         Opt[string] // name of a member that keeps its claims, needs FeatureGroupConsumer
	Reclaim          bool        // hand out again what the member had on older connections
	VisibilityMillis uint64      // how long the records stay claimed, 0: the broker's default; needs FeatureGroupClaimControl
}

// GroupAck finishes a record. Answered by CacheOK, like the next one.
type GroupAck struct {
	GroupTarget
	Offset id.Offset
}

// GroupNack gives a record back.
type GroupNack struct {
	GroupTarget
	Offset      id.Offset
	DelayMillis uint64 // not before this many milliseconds, needs FeatureGroupClaimControl
	Attempts    uint32 // only if this delivery still stands, 0: whichever does; needs FeatureGroupClaimControl
}

// GroupExtend prolongs one delivery, needs FeatureGroupClaimControl. Answered by GroupExtended.
type GroupExtend struct {
	GroupTarget
	Offset       id.Offset
	Attempts     uint32 // the delivery
	ExtendMillis uint64 // from now, in milliseconds; 0 is refused by whoever serves it
}

func (g *GroupTarget) target(f *fields) {
	f.names(&g.TenantID, &g.Namespace, "stream", &g.Stream)
	uintField(f, "shard", &g.Shard)
	f.str("group", MaxNameBytes, &g.Group)
	uintField(f, "request_id", &g.RequestID)
}

// MessageType returns "group_poll".
func (*GroupPoll) MessageType() string { return "group_poll" }

func (m *GroupPoll) fields(f *fields) {
	m.target(f)
	uintField(f, "max_records", &m.MaxRecords)
	defUint(f, "wait_ms", &m.WaitMillis)
	f.optStr("consumer", MaxNameBytes, &m.Consumer)
	f.flag("reclaim", &m.Reclaim)
	countUint(f, "visibility_ms", &m.VisibilityMillis)
}

// MessageType returns "group_ack".
func (*GroupAck) MessageType() string { return "group_ack" }

func (m *GroupAck) fields(f *fields) {
	m.target(f)
	uintField(f, "offset", &m.Offset)
}

// MessageType returns "group_nack".
func (*GroupNack) MessageType() string { return "group_nack" }

func (m *GroupNack) fields(f *fields) {
	m.target(f)
	uintField(f, "offset", &m.Offset)
	countUint(f, "delay_ms", &m.DelayMillis)
	countUint(f, "attempts", &m.Attempts)
}

// MessageType returns "group_extend".
func (*GroupExtend) MessageType() string { return "group_extend" }

func (m *GroupExtend) fields(f *fields) {
	m.target(f)
	uintField(f, "offset", &m.Offset)
	uintField(f, "attempts", &m.Attempts)
	uintField(f, "extend_ms", &m.ExtendMillis)
}
