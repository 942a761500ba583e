package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Bounds of a sharded resource.
const (
	// ShardsMax bounds the shards of one stream or cache: a shard is a log, a mailbox and a line in the routing table of
	// every client, and the count can never be lowered.
	ShardsMax = 1024
	// ReplicationFactorMax bounds the copies of a shard, leader included; beyond it a majority only gets slower.
	ReplicationFactorMax = 15
)

// Stream is the stored definition of a stream. It is comparable; two equal values are the same stream.
type Stream struct {
	TenantID          string      `json:"tenant_id"` // key, with Namespace and Stream
	Namespace         string      `json:"namespace"`
	Stream            string      `json:"stream"`
	Incarnation       Incarnation `json:"incarnation"`        // never zero in a store; immutable
	Kind              StreamKind  `json:"kind"`               // immutable
	Shards            uint32      `json:"shards"`             // 1..ShardsMax; immutable
	ReplicationFactor uint32      `json:"replication_factor"` // 1..ReplicationFactorMax; immutable
	Retention         Retention   `json:"retention"`
	Consistency       Consistency `json:"consistency"`
	Delivery          Delivery    `json:"delivery"`
	Durable           bool        `json:"durable"`          // false: memory only
	Region            string      `json:"region,omitempty"` // empty: anywhere; immutable
	// Routing is immutable. Empty only in a record on its way to a store, where it means that the request did not name
	// one; a stored record always names it. Encoded only when it is not modulo.
	Routing Routing `json:"routing,omitzero"`
	// Compress keeps the records of a durable stream compressed once their segment is sealed. Mutable; encoded only when set.
	Compress bool `json:"compress,omitempty"`
	// Logs is the identity of each shard's log, LogIDBytes each in the order of the shards: zero for a shard whose log was
	// never reported, empty when none was. It is no configuration: brokers report it, and requests and answers of the API do
	// not have it. Read it with Log.
	Logs string `json:"-"`
}

// RecordKind is KindStreams.
func (Stream) RecordKind() Kind { return KindStreams }

// Key is the stream's full name.
func (s Stream) Key() ResourceName { return ResourceName{s.TenantID, s.Namespace, s.Stream} }

func (Stream) record() {}

// UnmarshalJSON reads a record as the API sends it: unknown fields are ignored, since the protocol is additive, and a
// missing routing is modulo. It does not validate.
func (s *Stream) UnmarshalJSON(data []byte) error {
	type plain Stream
	p := plain{Routing: RoutingModulo}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*s = Stream(p)
	return nil
}

// Validate returns a *NameError or *FieldError for the first rule a stored record breaks, else nil. An empty Routing
// passes: see the field.
func (s Stream) Validate() error {
	if err := checkShape(s.Key(), "stream", s.Incarnation, s.Shards, s.ReplicationFactor); err != nil {
		return err
	}
	if err := checkEnum("kind", s.Kind, StreamKindStream, StreamKindQueue); err != nil {
		return err
	}
	if err := s.Retention.validate(); err != nil {
		return err
	}
	if err := checkEnum("consistency", s.Consistency, ConsistencyLeader, ConsistencyQuorum); err != nil {
		return err
	}
	if err := checkEnum("delivery", s.Delivery, DeliveryAtLeastOnce, DeliveryAtMostOnce); err != nil {
		return err
	}
	if s.Region != "" {
		if err := CheckName("region", s.Region); err != nil {
			return err
		}
	}
	if err := checkEnum("routing", s.Routing, RoutingModulo, RoutingJumpHash, ""); err != nil {
		return err
	}
	return checkLogs(s.logs())
}

// Differences lists the JSON names of the fields in which the configuration asked differs from the stored s, in the
// order of the record. Incarnations and logs are not configuration, and an empty asked.Routing asks for nothing.
func (s Stream) Differences(asked Stream) []string {
	var d []string
	note := func(differs bool, field string) {
		if differs {
			d = append(d, field)
		}
	}
	note(s.Kind != asked.Kind, "kind")
	note(s.Shards != asked.Shards, "shards")
	note(s.ReplicationFactor != asked.ReplicationFactor, "replication_factor")
	note(s.Retention != asked.Retention, "retention")
	note(s.Consistency != asked.Consistency, "consistency")
	note(s.Delivery != asked.Delivery, "delivery")
	note(s.Durable != asked.Durable, "durable")
	note(s.Region != asked.Region, "region")
	note(asked.Routing != "" && s.Routing != asked.Routing, "routing")
	note(s.Compress != asked.Compress, "compress")
	return slices.Clip(d)
}

// checkShape holds the rules streams and caches share.
func checkShape(n ResourceName, field string, i Incarnation, shards, copies uint32) error {
	if err := CheckName("tenant_id", n.Tenant); err != nil {
		return err
	}
	if err := CheckName("namespace", n.Namespace); err != nil {
		return err
	}
	if err := CheckName(field, n.Name); err != nil {
		return err
	}
	if i == 0 || i > incarnationMask {
		return &FieldError{Field: "incarnation", Problem: fmt.Sprintf("is %d", i), Advice: "draw one with NewIncarnation"}
	}
	if err := within("shards", shards, ShardsMax); err != nil {
		return err
	}
	return within("replication_factor", copies, ReplicationFactorMax)
}

func within(field string, v, most uint32) error {
	if v >= 1 && v <= most {
		return nil
	}
	return &FieldError{Field: field, Problem: fmt.Sprintf("is %d", v), Advice: fmt.Sprintf("use 1 to %d", most)}
}
