package wire

// The list of messages. Each type repeats appendJSON with a direct call of its own fields method: through an interface
// or a type parameter the state of the walk would escape to the heap for every message written.

// newMessage returns an empty message of a type; nil for a type without one.
func newMessage(typ []byte) Message {
	switch string(typ) {
	case "auth":
		return &Auth{}
	case "auth_ok":
		return &AuthOK{}
	case "ok":
		return &OK{}
	case "unsupported":
		return &Unsupported{}
	case "extension":
		return &Extension{}
	case "error":
		return &ErrorAnswer{}
	case "publish_error":
		return &PublishError{}
	case "publish":
		return &PublishMessage{}
	case "publish_batch":
		return &PublishBatchMessage{}
	case "publish_ok":
		return &PublishOK{}
	case "subscribe":
		return &Subscribe{}
	case "subscribed":
		return &Subscribed{}
	case "subscribe_cursor_error":
		return &SubscribeCursorError{}
	case "event_stream_hello":
		return &EventStreamHello{}
	case "event":
		return &EventMessage{}
	case "event_batch":
		return &EventBatchMessage{}
	case "shard_moved":
		return &ShardMoved{}
	case "subscription_lagged":
		return &SubscriptionLagged{}
	case "cache_put":
		return &CachePut{}
	case "cache_ok":
		return &CacheOK{}
	case "cache_get":
		return &CacheGet{}
	case "cache_delete":
		return &CacheDelete{}
	case "cache_value":
		return &CacheValue{}
	case "not_leader":
		return &NotLeader{}
	case "topology":
		return &Topology{}
	case "topology_view":
		return &TopologyView{}
	case "stream_shards":
		return &StreamShards{}
	case "stream_shards_view":
		return &StreamShardsView{}
	case "cache_shards":
		return &CacheShards{}
	case "cache_shards_view":
		return &CacheShardsView{}
	case "shard_owners":
		return &ShardOwners{}
	case "shard_owners_view":
		return &ShardOwnersView{}
	}
	return nil
}

func (m *Auth) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *AuthOK) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *OK) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Unsupported) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Extension) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ErrorAnswer) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishError) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishMessage) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishBatchMessage) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishOK) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Subscribe) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Subscribed) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *SubscribeCursorError) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *EventStreamHello) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *EventMessage) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *EventBatchMessage) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ShardMoved) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *SubscriptionLagged) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CachePut) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheOK) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheGet) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheDelete) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheValue) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *NotLeader) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Topology) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *TopologyView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StreamShards) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StreamShardsView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheShards) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheShardsView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ShardOwners) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ShardOwnersView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}
