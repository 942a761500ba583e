package client

import (
	"errors"
	"fmt"
	"io"

	"github.com/felixd/felixd/wire"
)

// read takes answers until the stream ends.
func (l *lane) read() {
	for {
		header, payload, err := l.control.frames.next()
		if err == nil {
			l.client.stats.framesIn.Add(1)
			err = l.take(header, payload)
		}
		if err == nil {
			continue
		}
		var frame *wire.FrameError
		if errors.As(err, &frame) {
			err = &ProtocolError{Op: l.op(), What: "bytes that are no frame", Err: err}
		} else if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the broker ended the stream: %w", err)
		}
		l.fail(err) // without effect on requests when none are under way
		return
	}
}

func (l *lane) op() string {
	if l.kind == cacheLane {
		return "cache"
	}
	return "publish"
}

// take gives one answer to its request. An error is the end of the lane.
func (l *lane) take(header wire.Header, payload []byte) error {
	if header.Flags != 0 {
		ack, err := wire.DecodePublishAck(header.Flags, payload)
		if err != nil || l.kind != publishLane {
			return &ProtocolError{Op: l.op(), What: fmt.Sprintf("a frame with flags 0x%04x", uint16(header.Flags)), Err: err}
		}
		return l.answer(ack.RequestID, reply{ack: ack})
	}
	m, err := l.control.decode.DecodeJSON(payload)
	if err != nil {
		return &ProtocolError{Op: l.op(), What: "a message that does not decode", Err: err}
	}
	if l.kind == publishLane {
		return l.takePublish(m)
	}
	return l.takeCache(m)
}

func (l *lane) takePublish(m wire.Message) error {
	switch m := m.(type) {
	case *wire.PublishOK:
		return l.answer(m.RequestID, reply{ack: wire.PublishAck{RequestID: m.RequestID, HasOffset: m.Offset.Set, Offset: m.Offset.V}})
	case *wire.PublishError:
		refusal := m.Refusal()
		return l.answer(m.RequestID, reply{ack: wire.PublishAck{RequestID: m.RequestID, Refusal: &refusal}})
	case *wire.PublishRefused:
		return l.answer(m.RequestID, reply{msg: m})
	case *wire.ErrorAnswer: // it names no publish, so none can be told what became of it
		return brokerError(l.op(), m.Refusal())
	}
	return refusalOf(l.op(), m)
}

func (l *lane) takeCache(m wire.Message) error {
	switch m := m.(type) {
	case *wire.CacheOK:
		return l.answer(m.RequestID, reply{msg: m})
	case *wire.CacheConditionResult:
		return l.answer(m.RequestID, reply{msg: m})
	case *wire.CounterValue:
		return l.answer(m.RequestID, reply{msg: m})
	case *wire.CacheValue:
		if m.RequestID.Set {
			return l.answer(m.RequestID.V, reply{msg: m})
		}
	case *wire.Unsupported:
		if m.RequestID.Set {
			return l.answer(m.RequestID.V, reply{msg: m})
		}
	case *wire.ErrorAnswer:
		return l.answerOldest(m)
	}
	return refusalOf(l.op(), m)
}

// answer ends the request with this id.
func (l *lane) answer(id uint64, a reply) error {
	r := l.claim(id)
	if r == nil {
		return &ProtocolError{Op: l.op(), What: fmt.Sprintf("an answer to request %d, whose turn it is not", id)}
	}
	if a.ack.Refusal != nil && a.ack.Refusal.Code == wire.CodeDraining {
		l.leave()
	}
	r.end(a, nil)
	return nil
}

// claim takes the request with this id out of those that wait for an answer; nil when there is none, or when an older one
// should have come first: the grant of a window promises order, and callers rely on the first failure being the earliest.
func (l *lane) claim(id uint64) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.pending.len() {
		r := l.pending.at(i)
		if r.id != id || r.silent {
			if !r.silent {
				l.unordered = true
			}
			continue
		}
		if l.unordered && l.kind == publishLane && l.control.window > 0 {
			return nil
		}
		l.pending.remove(i)
		l.finishOne()
		return r
	}
	return nil
}

// answerOldest ends the oldest request with an error that names none: brokers answer the requests of a stream in order.
// One that did not so far makes the error unassignable. An error without a code is the last thing a broker says on a
// stream.
func (l *lane) answerOldest(m *wire.ErrorAnswer) error {
	l.mu.Lock()
	if l.pending.len() == 0 || l.unordered && l.pending.len() > 1 {
		l.mu.Unlock()
		return brokerError(l.op(), m.Refusal())
	}
	r := l.pending.remove(0)
	l.finishOne()
	l.mu.Unlock()
	if m.Refusal().Code == wire.CodeDraining {
		l.leave()
	}
	r.end(reply{msg: m}, nil)
	if coded(m.Failure) {
		return nil
	}
	return brokerError(l.op(), m.Refusal())
}

// leave makes the next request go to another broker, or to a new connection: this one drains.
func (l *lane) leave() {
	l.retire()
	l.control.pool.passOver(l.control.link)
}
