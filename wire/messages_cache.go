package wire

// Cache requests and their answers.

// CachePut writes a value.
type CachePut struct {
	TenantID, Namespace, Cache string
	Key                        string // at most MaxCacheKeyBytes
	Value                      []byte
	RequestID                  Opt[uint64] // unset: the answer is OK instead of CacheOK
	TTLMillis                  Opt[uint64] // milliseconds from the put; unset: no expiry. Written as null when unset
}

// CacheOK is the success of a put, and of the group requests that settle.
type CacheOK struct{ RequestID uint64 }

// CacheGet reads a value.
type CacheGet struct {
	TenantID, Namespace, Cache, Key string
	RequestID                       Opt[uint64]
}

// CacheDelete removes a value and returns it.
type CacheDelete struct {
	TenantID, Namespace, Cache, Key string
	RequestID                       Opt[uint64]
}

// CacheValue answers CacheGet and CacheDelete. It repeats names and key of the request.
type CacheValue struct {
	TenantID, Namespace, Cache, Key string
	Value                           Opt[[]byte] // unset: never written, deleted or expired; always written, as null then
	RequestID                       Opt[uint64]
	Version                         Opt[uint64] // of a get's hit, only to clients with FeatureCacheConditional
}

// MessageType returns "cache_put".
func (*CachePut) MessageType() string { return "cache_put" }

func (m *CachePut) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	f.bytes("value", &m.Value)
	optUint(f, "request_id", &m.RequestID)
	nullUint(f, "ttl_ms", &m.TTLMillis)
}

// MessageType returns "cache_ok".
func (*CacheOK) MessageType() string { return "cache_ok" }

func (m *CacheOK) fields(f *fields) { uintField(f, "request_id", &m.RequestID) }

// MessageType returns "cache_get".
func (*CacheGet) MessageType() string { return "cache_get" }

func (m *CacheGet) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	optUint(f, "request_id", &m.RequestID)
}

// MessageType returns "cache_delete".
func (*CacheDelete) MessageType() string { return "cache_delete" }

func (m *CacheDelete) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	optUint(f, "request_id", &m.RequestID)
}

// MessageType returns "cache_value".
func (*CacheValue) MessageType() string { return "cache_value" }

func (m *CacheValue) fields(f *fields) {
	f.names(&m.TenantID, &m.Namespace, "cache", &m.Cache)
	f.str("key", MaxCacheKeyBytes, &m.Key)
	f.nullBytes("value", &m.Value)
	optUint(f, "request_id", &m.RequestID)
	optUint(f, "version", &m.Version)
}
