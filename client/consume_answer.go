package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/felixd/felixd/wire"
)

// answered takes the answer to a request that was sent at a time. An error says that it is to be sent again.
func (s *consumedShard) answered(one *settlement, id uint64, answer wire.Message, sent time.Time) error {
	switch m := answer.(type) {
	case *wire.CacheOK:
		if one.kind != extendIt {
			return s.confirmed(one, echoes(one.op(), id, m.RequestID))
		}
	case *wire.GroupExtended:
		if one.kind == extendIt {
			return s.extended(one, sent, milliseconds(m.VisibleMillis), echoes(one.op(), id, m.RequestID))
		}
	}
	err := refusalOf(one.op(), answer)
	if !s.final(one, err) {
		return err
	}
	s.refused(one, staleClaim(s.target.Shard, one.d.m.Offset, one.attempts, err))
	return nil
}

// confirmed takes a record that was settled out of hand.
func (s *consumedShard) confirmed(one *settlement, err error) error {
	if err != nil {
		return err
	}
	k := s.consumer
	k.mu.Lock()
	defer k.mu.Unlock()
	switch one.kind {
	case ackIt:
		k.stats.Acked++
	case nackIt:
		k.stats.Nacked++
	case deadLetterIt:
		k.stats.DeadLettered++
	case giveBackIt:
		k.stats.GivenBack++
	}
	if one.kind == ackIt || one.kind == deadLetterIt {
		s.finished[one.d.m.Offset] = struct{}{}
	}
	one.d.drop()
	return nil
}

// extended notes how long a claim stands.
func (s *consumedShard) extended(one *settlement, sent time.Time, granted time.Duration, err error) error {
	if err != nil {
		return err
	}
	k, d := s.consumer, one.d
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Extended++
	next := d.extendAt
	if d.claim == one.claim {
		d.until, next = sent.Add(granted), sent.Add(granted/3)
	}
	d.extended(next)
	return nil
}

// final reports whether a refusal is the last word on a request.
func (s *consumedShard) final(one *settlement, err error) bool {
	var refused *BrokerError
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) {
		return true
	}
	if !errors.As(err, &refused) || refused.Retry == 0 { // not the broker's word on this request
		return false
	}
	if errors.Is(err, ErrNotFound) {
		now := s.consumer.client.now()
		if one.missing.IsZero() {
			one.missing = now
		}
		return now.Sub(one.missing) > notFoundGrace
	}
	return !mayPass(err)
}

// refused ends a request that will not be granted. A record that could not be settled is left to the broker, unless it came to us anew
// since the work on it ended: then what was refused is not the claim that stands, and nobody else would finish that one.
func (s *consumedShard) refused(one *settlement, err error) {
	k, d := s.consumer, one.d
	k.mu.Lock()
	stale := errors.Is(err, ErrStaleClaim)
	if stale && one.kind != extendIt && d.claim != one.claim {
		one.claim, one.attempts = d.claim, d.attempts
		s.send(one)
		k.mu.Unlock()
		return
	}
	if stale {
		k.stats.Stale++
	} else {
		k.stats.Refused++
	}
	switch {
	case one.kind != extendIt:
		d.drop()
	case d.state == settling || d.claim != one.claim:
		d.extended(d.extendAt)
	case stale:
		d.extending, d.gone = false, err
		if d.state == working {
			d.cancel(err)
		}
	default:
		d.extended(k.client.now().Add(k.opts.Visibility / 3))
	}
	m := d.m
	k.mu.Unlock()
	k.tell(&m, fmt.Errorf("%s: %w", k.op, err))
}
