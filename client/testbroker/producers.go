package testbroker

import (
	"bytes"
	"math/rand/v2"
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// remembered is how many batches of a producer a shard knows again.
const remembered = 64

// producer is what a shard knows of one.
type producer struct {
	next  uint64 // sequence
	known []sent // the last of them, up to next
}

type sent struct {
	first  id.Offset
	region wire.Region
}

// Forget makes a shard forget all producers, as an in-memory one does that moves.
func (b *Broker) Forget(stream string, shard uint32) {
	l := b.logs[stream][shard]
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.producers)
}

func producerInit(s *Stream, m *wire.ProducerInit) {
	s.Send(&wire.ProducerInitOK{RequestID: m.RequestID, ProducerID: rand.Uint64()})
}

// appendNumbered appends a batch that its producer numbered, once.
func (l *log) appendNumbered(p *wire.Publish) (first id.Offset, refused *wire.RefusedReason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.producers[p.ProducerID]
	if k == nil {
		if p.Sequence != 0 {
			return 0, &wire.RefusedReason{Kind: wire.RefusedUnknownProducer}
		}
		k = &producer{}
		l.producers[p.ProducerID] = k
	}
	switch age := k.next - p.Sequence; {
	case p.Sequence > k.next:
		return 0, &wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: k.next}
	case age > uint64(len(k.known)):
		return 0, &wire.RefusedReason{Kind: wire.RefusedSequenceExpired}
	case age > 0:
		old := k.known[uint64(len(k.known))-age]
		if !bytes.Equal(old.region, p.Region) {
			return 0, &wire.RefusedReason{Kind: wire.RefusedSequenceReused}
		}
		return old.first, nil
	}
	first = l.add(p.Region, time.Now())
	k.next++
	k.known = append(k.known, sent{first, p.Region})
	if len(k.known) > remembered {
		k.known = k.known[1:]
	}
	return first, nil
}

// publishNumbered serves a numbered publish, whose answers are JSON however it came.
func (b *Broker) publishNumbered(s *Stream, p *wire.Publish) {
	l, refusal := b.durable(p.Namespace, p.Stream, p.Key, p.Keyed)
	if refusal != nil {
		s.Raw(wire.AppendPublishAnswer(nil, &wire.PublishAck{RequestID: p.RequestID, Refusal: refusal}, s.Grant))
		return
	}
	first, refused := l.appendNumbered(p)
	switch {
	case b.options.OnAppended != nil && b.options.OnAppended(s, p):
	case refused != nil:
		s.Send(&wire.PublishRefused{RequestID: p.RequestID, Reason: *refused, Message: "refused by the test broker"})
	default:
		s.Send(&wire.PublishOK{RequestID: p.RequestID, Offset: wire.Some(first)})
	}
}

// publishIf serves a publish that is bound to an offset.
func (b *Broker) publishIf(s *Stream, m *wire.PublishIf) {
	p := m.Publish()
	l, refusal := b.durable(p.Namespace, p.Stream, p.Key, p.Keyed)
	if refusal != nil {
		s.Refuse(*refusal)
		return
	}
	l.mu.Lock()
	tail := l.tail
	if tail == m.ExpectedOffset {
		l.add(p.Region, time.Now())
	}
	l.mu.Unlock()
	switch {
	case b.options.OnAppended != nil && b.options.OnAppended(s, &p):
	case tail != m.ExpectedOffset:
		s.Send(mismatch(m.RequestID, tail))
	default:
		s.Send(&wire.PublishOK{RequestID: m.RequestID, Offset: wire.Some(tail)})
	}
}

func mismatch(requestID uint64, tail id.Offset) *wire.PublishRefused {
	return &wire.PublishRefused{RequestID: requestID, Message: "the offset is taken",
		Reason: wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: tail}}
}

// durable finds the log of a key, or says why there is none.
func (b *Broker) durable(namespace, stream, key []byte, keyed bool) (*log, *wire.Refusal) {
	logs := b.logs[string(namespace)+"/"+string(stream)]
	var refusal wire.Refusal
	switch {
	case len(logs) == 0:
		refusal = wire.Refuse(wire.CodeNotFound, "stream "+string(stream)+" is not known here")
	case !b.options.Durable:
		refusal = wire.Refuse(wire.CodeInvalidRequest, "an in-memory stream has no log")
	default:
		return logs[b.options.Routing.Shard(key, keyed, uint32(len(logs)))], nil
	}
	return nil, &refusal
}
