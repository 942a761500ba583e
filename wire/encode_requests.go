package wire

// How each message of a client becomes text. Each type repeats these lines with a direct call of its own fields method:
// through an interface or a type parameter the state of the walk would escape to the heap for every message written.

func (m *Auth) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Extension) appendJSON(dst []byte) []byte {
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

func (m *PublishIdempotent) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *PublishIf) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ProducerInit) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Subscribe) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *OffsetForTime) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StreamRead) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CachePut) appendJSON(dst []byte) []byte {
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

func (m *CachePutIf) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheDeleteIf) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheWatch) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CounterAdd) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CounterGet) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Commit) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StateGet) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupPoll) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupAck) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupNack) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupExtend) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupDeadLetter) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupDeadLetters) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupDiscard) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupRedrive) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupSeek) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupDescribe) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *GroupDelete) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *Topology) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *StreamShards) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *CacheShards) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ShardOwners) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *ShardInspect) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}

func (m *SubscriptionsList) appendJSON(dst []byte) []byte {
	f := writeObject(dst, m.MessageType())
	m.fields(&f)
	return f.close()
}
