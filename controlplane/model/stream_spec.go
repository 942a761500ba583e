package model

// StreamSpec is the body that creates a stream. Absent and null fields take the defaults of Record. TenantID and
// Namespace may be left out; where given they must repeat the path.
type StreamSpec struct {
	TenantID          string         `json:"tenant_id,omitempty"`
	Namespace         string         `json:"namespace,omitempty"`
	Stream            string         `json:"stream"`
	Kind              *StreamKind    `json:"kind,omitempty"`
	Shards            *uint32        `json:"shards,omitempty"`
	ReplicationFactor *uint32        `json:"replication_factor,omitempty"`
	Retention         *RetentionSpec `json:"retention,omitempty"`
	Consistency       *Consistency   `json:"consistency,omitempty"`
	Delivery          *Delivery      `json:"delivery,omitempty"`
	Durable           *bool          `json:"durable,omitempty"`
	Region            *string        `json:"region,omitempty"`
	Routing           *Routing       `json:"routing,omitempty"`
	Compress          *bool          `json:"compress,omitempty"`
}

// Record returns the stream asked for within tenant and namespace, or what is wrong with the request as a *NameError
// or *FieldError. Defaults: kind Stream, one shard, one copy, the broker's retention, consistency Leader, delivery
// AtLeastOnce, not durable, any region, not compressed. Routing stays empty unless named; the store fills in modulo.
func (s StreamSpec) Record(tenant, namespace string, i Incarnation) (Stream, error) {
	if err := repeats("tenant_id", s.TenantID, tenant); err != nil {
		return Stream{}, err
	}
	if err := repeats("namespace", s.Namespace, namespace); err != nil {
		return Stream{}, err
	}
	retention, err := s.Retention.record()
	if err != nil {
		return Stream{}, err
	}
	if s.Region != nil && *s.Region == "" {
		return Stream{}, &FieldError{Field: "region", Problem: "is empty", Advice: "name a region, or leave it out for any"}
	}
	r := Stream{
		TenantID:          tenant,
		Namespace:         namespace,
		Stream:            s.Stream,
		Incarnation:       i,
		Kind:              orDefault(s.Kind, StreamKindStream),
		Shards:            orDefault(s.Shards, 1),
		ReplicationFactor: orDefault(s.ReplicationFactor, 1),
		Retention:         retention,
		Consistency:       orDefault(s.Consistency, ConsistencyLeader),
		Delivery:          orDefault(s.Delivery, DeliveryAtLeastOnce),
		Durable:           orDefault(s.Durable, false),
		Region:            orDefault(s.Region, ""),
		Routing:           orDefault(s.Routing, ""),
		Compress:          orDefault(s.Compress, false),
	}
	return r, r.Validate()
}
