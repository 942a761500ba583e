package model

import (
	"bytes"
	"encoding/json"
)

// StreamPatch changes the mutable fields of a stream. A field that is absent or null keeps its value, except for the
// two bounds inside Retention: see Bound. Durable may only say what is so already: a durable stream that became ephemeral
// would lose records that were acknowledged.
type StreamPatch struct {
	Consistency *Consistency    `json:"consistency,omitempty"`
	Delivery    *Delivery       `json:"delivery,omitempty"`
	Durable     *bool           `json:"durable,omitempty"`
	Retention   *RetentionPatch `json:"retention,omitempty"`
	Compress    *bool           `json:"compress,omitempty"`
}

// RetentionPatch changes retention bounds one at a time.
type RetentionPatch struct {
	MaxAgeSeconds Bound `json:"max_age_seconds,omitzero"`
	MaxSizeBytes  Bound `json:"max_size_bytes,omitzero"`
}

// Bound is a retention bound in a patch and has three states: the zero Bound keeps the stored bound, SetBound sets it,
// and ClearBound (null in JSON) hands it back to the broker.
type Bound struct {
	given bool
	value *uint64
}

// SetBound asks for v. Zero is refused when the patch is applied.
func SetBound(v uint64) Bound { return Bound{given: true, value: &v} }

// ClearBound hands the bound back to the broker.
func ClearBound() Bound { return Bound{given: true} }

// IsZero reports whether the bound keeps its stored value; encoders leave it out then.
func (b Bound) IsZero() bool { return !b.given }

// MarshalJSON renders the number, or null for ClearBound.
func (b Bound) MarshalJSON() ([]byte, error) { return json.Marshal(b.value) }

// UnmarshalJSON reads a number as SetBound and null as ClearBound.
func (b *Bound) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*b = ClearBound()
		return nil
	}
	var v uint64
	if err := json.Unmarshal(data, &v); err != nil {
		return &FieldError{Field: "retention", Problem: "has the bound " + quote(string(data)),
			Advice: "use a positive whole number, or null for the broker's bound"}
	}
	*b = SetBound(v)
	return nil
}

// apply returns stored, changed as the patch asks.
func (b Bound) apply(field string, stored uint64) (uint64, error) {
	if !b.given {
		return stored, nil
	}
	return orDefault(b.value, 0), notZero(field, b.value)
}

// Apply returns s with the patch applied and validated; s itself does not change. A patch that asks for what is
// already so returns s and no error.
func (p StreamPatch) Apply(s Stream) (Stream, error) {
	if p.Durable != nil && *p.Durable != s.Durable {
		return Stream{}, &FieldError{Field: "durable", Problem: "cannot be changed", Advice: "delete the stream and create it again, which gives up its records"}
	}
	s.Consistency = orDefault(p.Consistency, s.Consistency)
	s.Delivery = orDefault(p.Delivery, s.Delivery)
	s.Compress = orDefault(p.Compress, s.Compress)
	if p.Retention != nil {
		var err error
		if s.Retention.MaxAgeSeconds, err = p.Retention.MaxAgeSeconds.apply("retention.max_age_seconds", s.Retention.MaxAgeSeconds); err != nil {
			return Stream{}, err
		}
		if s.Retention.MaxSizeBytes, err = p.Retention.MaxSizeBytes.apply("retention.max_size_bytes", s.Retention.MaxSizeBytes); err != nil {
			return Stream{}, err
		}
	}
	if err := s.Validate(); err != nil {
		return Stream{}, err
	}
	return s, nil
}

// Validate returns the *FieldError that Apply would return for every stream, so that a request can be refused before it
// is known whether the stream exists.
func (p StreamPatch) Validate() error {
	_, err := p.Apply(Stream{TenantID: "t", Namespace: "n", Stream: "s", Incarnation: 1, Kind: StreamKindStream,
		Shards: 1, ReplicationFactor: 1, Consistency: ConsistencyLeader, Delivery: DeliveryAtLeastOnce, Routing: RoutingModulo,
		Durable: orDefault(p.Durable, false)})
	return err
}
