package wire

// Conditional cache writes, for clients with FeatureCacheConditional. A condition that does not hold is an answer, not
// an error.

// CacheCondition is what a conditional put asks of the key.
type CacheCondition struct {
	Version Opt[uint64] // set: the key has a live value of this version; unset: it has no live value
}

// CachePutIf writes a value if the condition holds.
type CachePutIf struct {
	TenantID, Namespace, Cache string
	Key                        string // at most MaxCacheKeyBytes
	Value                      []byte
	TTLMillis                  Opt[uint64] // milliseconds from the put; unset: no expiry
	Condition                  CacheCondition
	RequestID                  uint64
}

// CacheDeleteIf removes a value if it has the version.
type CacheDeleteIf struct {
	TenantID, Namespace, Cache string
	Key                        string // at most MaxCacheKeyBytes
	Version                    uint64
	RequestID                  uint64
}

// CacheConditionResult answers both.
type CacheConditionResult struct {
	Applied   bool
	Version   Opt[uint64] // that an applied put wrote, or else that the key has now; unset: it has no live value
	RequestID uint64
}

// MessageType returns "cache_put_if".
func (*CachePutIf) MessageType() string { return "cache_put_if" }

func (m *CachePutIf) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	f.bytes("value", &m.Value)
	optUint(f, "ttl_ms", &m.TTLMillis)
	f.condition("condition", &m.Condition)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "cache_delete_if".
func (*CacheDeleteIf) MessageType() string { return "cache_delete_if" }

func (m *CacheDeleteIf) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	uintField(f, "version", &m.Version)
	uintField(f, "request_id", &m.RequestID)
}

// MessageType returns "cache_condition_result".
func (*CacheConditionResult) MessageType() string { return "cache_condition_result" }

func (m *CacheConditionResult) fields(f *fields) {
	f.boolField("applied", &m.Applied)
	optUint(f, "version", &m.Version)
	uintField(f, "request_id", &m.RequestID)
}
