package wire

// How each message of a broker becomes text, see encode_requests.go.

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

func (m *ErrorAnswer) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishOK) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishError) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishRefused) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ProducerInitOK) appendJSON(dst []byte) []byte {
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

func (m *OffsetValue) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StreamRecords) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheOK) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheValue) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheConditionResult) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheWatchStarted) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheEvent) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheWatchLagged) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CounterValue) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CommitOK) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StateValue) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupRecords) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupDeadLetterList) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupExtended) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupPosition) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupInfo) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupDeleted) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *NotLeader) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *TopologyView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StreamShardsView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheShardsView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ShardOwnersView) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ShardInspectInfo) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *SubscriptionsListInfo) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}
