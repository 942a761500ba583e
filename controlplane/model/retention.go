package model

import "fmt"

const (
	// RetentionSecondsMax is the longest age a stream may ask for, about 292 years: the most whole seconds that still
	// fit a signed 64-bit count of nanoseconds.
	RetentionSecondsMax = 9_223_372_036
	// RetentionBytesMax is the largest size per shard a stream may ask for: file sizes are signed 64-bit.
	RetentionBytesMax = 1<<63 - 1
)

// Retention overrides the broker's bounds for one stream, one bound at a time. Zero means the bound is not set and the
// broker's applies; a request can therefore not ask for zero.
type Retention struct {
	MaxAgeSeconds uint64 `json:"max_age_seconds,omitempty"` // 0 (unset), or 1..RetentionSecondsMax
	MaxSizeBytes  uint64 `json:"max_size_bytes,omitempty"`  // per shard; 0 (unset), or 1..RetentionBytesMax
}

func (r Retention) validate() error {
	if r.MaxAgeSeconds > RetentionSecondsMax {
		return tooLong("retention.max_age_seconds", r.MaxAgeSeconds, RetentionSecondsMax)
	}
	if r.MaxSizeBytes > RetentionBytesMax {
		return tooLong("retention.max_size_bytes", r.MaxSizeBytes, RetentionBytesMax)
	}
	return nil
}

func tooLong(field string, v, most uint64) error {
	return &FieldError{Field: field, Problem: fmt.Sprintf("is %d", v), Advice: fmt.Sprintf("use 1 to %d", most)}
}

// RetentionSpec asks for retention bounds at creation. A bound that is absent or null is the broker's.
type RetentionSpec struct {
	MaxAgeSeconds *uint64 `json:"max_age_seconds,omitempty"`
	MaxSizeBytes  *uint64 `json:"max_size_bytes,omitempty"`
}

func (s *RetentionSpec) record() (Retention, error) {
	if s == nil {
		return Retention{}, nil
	}
	if err := notZero("retention.max_age_seconds", s.MaxAgeSeconds); err != nil {
		return Retention{}, err
	}
	if err := notZero("retention.max_size_bytes", s.MaxSizeBytes); err != nil {
		return Retention{}, err
	}
	return Retention{MaxAgeSeconds: orDefault(s.MaxAgeSeconds, 0), MaxSizeBytes: orDefault(s.MaxSizeBytes, 0)}, nil
}

// notZero refuses an explicit zero. It could mean "keep nothing" or "no bound", and whoever guesses wrong loses data.
func notZero(field string, v *uint64) error {
	if v == nil || *v != 0 {
		return nil
	}
	return &FieldError{Field: field, Problem: "is 0", Advice: "use a positive number, or leave it out for the broker's bound"}
}
