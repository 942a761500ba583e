package testbroker

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

type stateKey struct{ entity, key string }

type stateValue struct {
	value   []byte
	version id.Offset
}

func (b *Broker) commit(s *Stream, m *wire.Commit) {
	l, refusal := b.durable([]byte(m.Namespace), []byte(m.Stream), m.EntityKey, true)
	if refusal != nil {
		s.Refuse(*refusal)
		return
	}
	first, ok := l.commit(m)
	switch {
	case b.options.OnAppended != nil && b.options.OnAppended(s, &wire.Publish{RequestID: m.RequestID}):
	case !ok:
		s.Send(mismatch(m.RequestID, first))
	default:
		s.Send(&wire.CommitOK{RequestID: m.RequestID, Offset: first})
	}
}

// commit appends the event and applies the changes, or returns the tail and false.
func (l *log) commit(m *wire.Commit) (id.Offset, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.ExpectedOffset.Set && m.ExpectedOffset.V != l.tail {
		return l.tail, false
	}
	first := l.add(wire.AppendPayload(nil, m.Event), time.Now())
	for _, c := range m.Changes {
		key := stateKey{string(m.EntityKey), c.Key}
		if c.Delete {
			delete(l.state, key)
		} else {
			l.state[key] = stateValue{c.Value, first}
		}
	}
	l.asOf = wire.Some(first)
	return first, true
}

func (b *Broker) stateGet(s *Stream, m *wire.StateGet) {
	l, refusal := b.durable([]byte(m.Namespace), []byte(m.Stream), m.EntityKey, true)
	if refusal != nil {
		s.Refuse(*refusal)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := &wire.StateValue{RequestID: m.RequestID, AsOf: l.asOf}
	if v, ok := l.state[stateKey{string(m.EntityKey), m.Key}]; ok {
		answer.Value, answer.Version = wire.Some(v.value), wire.Some(v.version)
	}
	s.Send(answer)
}
