package wire

// Counters, for clients with FeatureCounters.

// CounterAdd adds to a counter and asks for the sum.
type CounterAdd struct {
	TenantID, Namespace, Cache string
	Key                        string // at most MaxCacheKeyBytes
	Delta                      int64
	RequestID                  uint64
}

// CounterGet reads a counter.
type CounterGet struct {
	TenantID, Namespace, Cache string
	Key                        string // at most MaxCacheKeyBytes
	RequestID                  uint64
}

// CounterValue answers both.
type CounterValue struct {
	Value     Opt[int64] // unset: never written; always set after an add
	RequestID uint64
}

// MessageType returns "counter_add".
func (*CounterAdd) MessageType() string { return "counter_add" }

func (m *CounterAdd) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	f.intField("delta", &m.Delta)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "counter_get".
func (*CounterGet) MessageType() string { return "counter_get" }

func (m *CounterGet) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "counter_value".
func (*CounterValue) MessageType() string { return "counter_value" }

func (m *CounterValue) fields(f *fields) {
	f.optInt("value", &m.Value)
	uintField(f, "request_id", &m.RequestID)
}
