package client

import "github.com/felixd/felixd/wire"

// Ack says what answer a publish waits for.
type Ack uint8

const (
	// AckRecord waits until the broker has taken the record. It is the default.
	AckRecord Ack = iota
	// AckBatch waits until the broker has taken the whole batch.
	AckBatch
	// AckNone waits only until the record is on its way. It may be lost without anybody noticing.
	AckNone
)

// mode is the word for it on the wire.
func (a Ack) mode() wire.AckMode {
	switch a {
	case AckRecord:
		return wire.AckPerMessage
	case AckBatch:
		return wire.AckPerBatch
	}
	return wire.AckNone
}

// PublishOption adjusts one publish.
type PublishOption func(*publishSettings)

type publishSettings struct {
	key   []byte
	keyed bool
	ack   Ack
}

// WithKey routes the record, or all records of a batch, by a key: same key, same shard, same order. An empty key is a key.
// Without one records go to shard 0. At most 65535 bytes; not kept.
func WithKey(key []byte) PublishOption {
	return func(s *publishSettings) { s.key, s.keyed = key, true }
}

// WithAck sets what to wait for; AckRecord is the default.
func WithAck(ack Ack) PublishOption {
	return func(s *publishSettings) { s.ack = ack }
}
