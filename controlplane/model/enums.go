package model

import "strings"

// StreamKind says what a stream was made for. Both kinds are the same log; the kind is recorded and shown.
type StreamKind string

// The kinds of a stream.
const (
	StreamKindStream StreamKind = "Stream"
	StreamKindQueue  StreamKind = "Queue"
)

// Consistency says what an acknowledgement of a write waits for: the leader alone, or a majority of the voters.
type Consistency string

// The levels of consistency.
const (
	ConsistencyLeader Consistency = "Leader"
	ConsistencyQuorum Consistency = "Quorum"
)

// Delivery says what a subscription of a stream promises.
type Delivery string

// The delivery promises.
const (
	DeliveryAtLeastOnce Delivery = "AtLeastOnce"
	DeliveryAtMostOnce  Delivery = "AtMostOnce"
)

// Routing names the function that maps a key to a shard. It never changes after creation, because changing it would
// send the keys of old records to other shards.
type Routing string

// The routing functions.
const (
	RoutingModulo   Routing = "modulo"
	RoutingJumpHash Routing = "jump_hash"
)

// IsZero makes encoders leave the routing out where it is the default, which is what readers take its absence for.
func (r Routing) IsZero() bool { return r == "" || r == RoutingModulo }

// UnmarshalText accepts a kind in either case and keeps its canonical spelling.
func (k *StreamKind) UnmarshalText(text []byte) error {
	return readEnum(k, "kind", text, StreamKindStream, StreamKindQueue)
}

// UnmarshalText accepts a level in either case and keeps its canonical spelling. An unknown level is an error, so
// that a broker older than the level refuses the stream rather than weakening it.
func (c *Consistency) UnmarshalText(text []byte) error {
	return readEnum(c, "consistency", text, ConsistencyLeader, ConsistencyQuorum)
}

// UnmarshalText accepts a promise in either case and keeps its canonical spelling.
func (d *Delivery) UnmarshalText(text []byte) error {
	return readEnum(d, "delivery", text, DeliveryAtLeastOnce, DeliveryAtMostOnce)
}

// UnmarshalText accepts a routing function in either case and keeps its canonical spelling.
func (r *Routing) UnmarshalText(text []byte) error {
	return readEnum(r, "routing", text, RoutingModulo, RoutingJumpHash)
}

// readEnum sets dst to the one of allowed that text spells, whatever its case, or returns a *FieldError.
func readEnum[E ~string](dst *E, field string, text []byte, allowed ...E) error {
	for _, v := range allowed {
		if strings.EqualFold(string(text), string(v)) {
			*dst = v
			return nil
		}
	}
	return unknownValue(field, string(text), allowed...)
}

// checkEnum returns a *FieldError unless v is one of allowed in its canonical spelling.
func checkEnum[E ~string](field string, v E, allowed ...E) error {
	for _, a := range allowed {
		if v == a {
			return nil
		}
	}
	return unknownValue(field, string(v), allowed...)
}

func unknownValue[E ~string](field, got string, allowed ...E) error {
	names := make([]string, len(allowed))
	for i, v := range allowed {
		names[i] = quote(string(v))
	}
	return &FieldError{Field: field, Problem: quote(got) + " is not known", Advice: "use " + strings.Join(names, " or ")}
}

// orDefault returns *v, or d where nothing was asked.
func orDefault[T any](v *T, d T) T {
	if v == nil {
		return d
	}
	return *v
}
