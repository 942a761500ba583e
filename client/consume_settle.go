package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// settleKind is what is asked about a record in hand.
type settleKind uint8

const (
	ackIt settleKind = iota
	nackIt
	deadLetterIt
	giveBackIt // a nack of something that was not worked on to the end
	extendIt
)

// settlement is a request about a record in hand, until it was answered.
type settlement struct {
	d        *delivery
	kind     settleKind
	claim    uint32 // of the record, as are
	attempts uint32
	delay    time.Duration
	sent     bool // before
	missing  time.Time
}

const (
	// settleBatchRecords and settleBatchBytes bound one write of settlements, and with it what a broker is asked for at once: half of
	// the requests that a stream may have unanswered (wire.PublishWindow), and what fits a stream's initial window many times over.
	settleBatchRecords = wire.PublishWindow / 2
	settleBatchBytes   = 64 << 10
)

// settle ends the work on a record. It stays in hand until the broker has answered. What waits to be sent is bounded by what is in
// hand: one of these, and one extension, for each. The consumer's lock is held.
func (d *delivery) settle(kind settleKind, delay time.Duration) {
	d.state, d.end = settling, kind
	d.shard.send(&settlement{d: d, kind: kind, claim: d.claim, attempts: d.attempts, delay: delay})
}

// send queues a request. The lock is held.
func (s *consumedShard) send(one *settlement) {
	s.queue.push(one)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// settle sends what is asked about the records of a shard, until Stop ends it. What went without an answer is sent again, first.
func (s *consumedShard) settle() {
	defer s.settles.close()
	k := s.consumer
	var batch []*settlement
	var trouble setbacks
	for {
		if batch = s.fill(batch); len(batch) == 0 {
			select {
			case <-s.wake:
				continue
			case <-k.settling.Done():
				return
			}
		}
		err := s.settles.do(k.settling, 0, func(control *control) (err error) {
			batch, err = s.exchange(control, batch)
			return err
		})
		switch {
		case k.settling.Err() != nil:
			return
		case err == nil:
			trouble.clear()
		case !k.bear(&trouble, s.settles.op, err):
			k.fail(err) // what is in hand is still tried, until Stop gives up
			_ = k.client.sleep(k.settling, longestPause)
		}
	}
}

// fill takes from the queue what the next write has room for. Extensions that are not of use any more are left out.
func (s *consumedShard) fill(batch []*settlement) []*settlement {
	k := s.consumer
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := batch[:0]
	for _, one := range batch {
		if !one.idle() {
			kept = append(kept, one)
		}
	}
	for s.queue.len() > 0 && len(kept) < settleBatchRecords {
		if one := s.queue.remove(0); !one.idle() {
			kept = append(kept, one)
		}
	}
	return kept
}

// idle says that an extension is not needed any more: the record was settled, or is another claim by now; and of any request that another record is
// in the place of its own, which is out of hand then. The lock is held.
func (one *settlement) idle() bool {
	d := one.d
	if d.superseded && one.kind != extendIt {
		d.forget()
		return true
	}
	if one.kind != extendIt || d.state != settling && d.claim == one.claim {
		return false
	}
	d.extended(d.extendAt)
	return true
}

// exchange writes requests and takes the answers, which come in the same order. It returns those to be sent again, with the reason.
func (s *consumedShard) exchange(control *control, batch []*settlement) ([]*settlement, error) {
	k := s.consumer
	var frames []byte
	ids := make([]uint64, 0, len(batch))
	for _, one := range batch {
		if len(ids) > 0 && len(frames) >= settleBatchBytes {
			break
		}
		id := k.client.requestID.Add(1)
		ids = append(ids, id)
		frames = wire.AppendJSONFrame(frames, one.message(id))
	}
	now := k.client.now()
	s.sending(batch[:len(ids)])
	if _, err := control.stream.Write(frames); err != nil {
		return batch, err
	}
	var again []*settlement
	var worst error
	for i, id := range ids {
		answer, err := control.receive(s.settles.op)
		if err != nil {
			return append(again, batch[i:]...), err
		}
		err = s.answered(batch[i], id, answer, now)
		if err == nil {
			continue
		}
		if !goesOn(err) { // nothing more comes on this stream
			return append(again, batch[i:]...), err
		}
		again = append(again, batch[i])
		if worst == nil || errors.Is(err, ErrNotLeader) {
			worst = err
		}
	}
	return append(again, batch[len(ids):]...), worst
}

// sending counts what is sent not for the first time.
func (s *consumedShard) sending(batch []*settlement) {
	k := s.consumer
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range batch {
		if one.sent {
			k.stats.Resent++
		}
		one.sent = true
	}
}

// message is the request.
func (one *settlement) message(id uint64) wire.Message {
	k := one.d.shard.consumer
	target, offset := one.d.shard.target, one.d.m.Offset
	target.RequestID = id
	switch one.kind {
	case ackIt:
		return &wire.GroupAck{GroupTarget: target, Offset: offset}
	case deadLetterIt:
		return &wire.GroupDeadLetter{GroupTarget: target, Offset: offset}
	case extendIt:
		return &wire.GroupExtend{GroupTarget: target, Offset: offset, Attempts: one.attempts, ExtendMillis: roundUpMillis(k.opts.Visibility)}
	}
	return &wire.GroupNack{GroupTarget: target, Offset: offset, Attempts: one.attempts, DelayMillis: roundUpMillis(one.delay)}
}

// op is what is tried, in words.
func (one *settlement) op() string {
	try := [...]string{"ack", "nack", "give up on", "give back", "extend"}[one.kind]
	t := &one.d.shard.target
	return groupOp(fmt.Sprintf("%s offset %s for", try, one.d.m.Offset), t.Namespace, t.Stream, t.Shard, t.Group)
}
