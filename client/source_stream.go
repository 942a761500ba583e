package client

import "github.com/felixd/felixd/wire"

// streamTopic is a shard of a stream.
type streamTopic struct {
	message wire.Subscribe // without its start
}

func (t *streamTopic) request(from wire.Start) opening {
	message := t.message
	if from.Kind != wire.StartLatest {
		message.Start = wire.Some(from)
	}
	o := opening{message: &message, bytes: len(message.Namespace) + len(message.Stream)}
	if message.QueueCapacity.Set {
		o.needs, o.feature = wire.FeatureSubscribeQueue, "a queue capacity on subscribe"
	}
	return o
}

func (t *streamTopic) accept(op string, _ wire.Start, answer wire.Message) (wire.Subscribed, *snapshot, error) {
	m, ok := answer.(*wire.Subscribed)
	if !ok {
		return wire.Subscribed{}, nil, refusalOf(op, answer)
	}
	return *m, nil, nil
}

func (t *streamTopic) take(s *source, o *opened, header wire.Header, payload []byte) (piece, bool, error) {
	b, err := decodeEvents(s.op, o.events.id, header, payload)
	if err == nil {
		err = s.place(&b)
	}
	return piece{batch: b}, err == nil, err
}
