package client

import (
	"context"
	"errors"
	"time"
)

// delivery is a record in hand. Its fields but the first two are under the consumer's lock.
type delivery struct {
	shard *consumedShard
	m     Message

	place      int // in Consumer.all
	state      deliveryState
	end        settleKind // with settling
	claim      uint32     // how often it was handed to us: an answer may be about one that does not stand any more
	attempts   uint32     // the delivery that stands, which may be later than the one the handler was given; a broker may count anew
	until      time.Time  // the claim stands up to here, as far as is known
	extendAt   time.Time
	extending  bool
	gone       error                   // why the claim is gone: the broker said so, or it is superseded
	superseded bool                    // another record is at the offset by now
	cancel     context.CancelCauseFunc // of the handler, while working
}

type deliveryState uint8

const (
	waiting  deliveryState = iota // for a worker
	working                       // a handler has it
	settling                      // until its settlement is answered
)

// recordBytes is what a record takes besides its payload, about.
const recordBytes = 256

func (d *delivery) bytes() int64 { return int64(len(d.m.Payload)) + recordBytes }

// share divides what may be in hand: half of it belongs to the shards in equal parts, so that an idle shard always has a poll at
// the broker, and the rest is there for those that have work.
func (k *Consumer) share() {
	shards := len(k.shards)
	total := max(k.opts.MaxInHand, shards)
	k.own = max(1, total/(2*shards))
	k.shared = total - k.own*shards
}

// use changes how many records a shard has in hand. The lock is held.
func (s *consumedShard) use(n int) {
	k := s.consumer
	k.borrowed -= max(0, s.used-k.own)
	s.used += n
	k.borrowed += max(0, s.used-k.own)
	if n < 0 {
		k.freed.ring()
	}
}

// reserve waits for room and returns how many records to ask for, and how long the broker may wait for them. ok is false when the
// consumer stops.
func (s *consumedShard) reserve() (n int, wait time.Duration, ok bool) {
	k := s.consumer
	for {
		k.mu.Lock()
		n, wait = s.room()
		if n > 0 && !k.stopping {
			s.use(n)
			clear(s.finished)
			k.mu.Unlock()
			return n, wait, true
		}
		freed := k.freed.wait()
		k.mu.Unlock()
		select {
		case <-freed:
		case <-k.polling.Done():
			return 0, 0, false
		}
	}
}

// room is how much a shard may ask for now. One whose last poll was answered in full asks for more, and only for what is there at
// once: a poll that waits keeps its room from others. The lock is held.
func (s *consumedShard) room() (n int, wait time.Duration) {
	k := s.consumer
	own, free := max(0, k.own-s.used), k.shared-k.borrowed
	switch {
	case k.bytes >= k.opts.MaxInHandBytes:
		return 0, 0
	case s.hot && len(k.shards) > 1:
		n = own + (free+1)/2
	case s.hot:
		n = own + free
	default:
		n, wait = own, k.opts.PollWait
		if own == 0 {
			n = min(1, free)
		}
	}
	return min(n, k.client.pollMax(n), GroupPollMax), wait
}

// arrived takes the answer of a poll that asked for n records: into hand, or back at once when the consumer stops meanwhile. now is
// when it came.
func (s *consumedShard) arrived(n int, messages []Message, now time.Time) {
	k := s.consumer
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Polls++
	k.stats.Received += uint64(len(messages))
	s.hot = len(messages) == n
	fresh := 0
	for _, m := range messages {
		if m.Attempts > 1 {
			k.stats.Redelivered++
		}
		if _, done := s.finished[m.Offset]; done {
			continue
		}
		switch d := s.held[m.Offset]; {
		case d == nil:
		case d.otherThan(m):
			d.supersede()
		case d.goesOn():
			d.claimed(m.Attempts, now)
			continue
		}
		fresh++
		s.take(m, now)
	}
	s.use(fresh - n)
	k.startWorkers()
}

// goesOn reports whether a record that is handed to us again is still being worked on here: then what it comes to counts for the new
// delivery. It does not where the old one was given back, or the handler was told that it is gone.
func (d *delivery) goesOn() bool {
	return d.gone == nil && !(d.state == settling && (d.end == nackIt || d.end == giveBackIt))
}

// otherThan reports whether what is handed to us at the offset of a record in hand is another record: that of a stream that was deleted and made
// again, or one in the place of a record that a power cut took. The payload in hand may have been changed by its handler, but for its length.
func (d *delivery) otherThan(m Message) bool {
	return len(d.m.Payload) != len(m.Payload) || !d.m.Timestamp.IsZero() && !m.Timestamp.IsZero() && !d.m.Timestamp.Equal(m.Timestamp)
}

// errSuperseded is why nothing is said to the broker about a record that is not there any more.
var errSuperseded = errors.New("another record is at its offset: the stream was made again, or lost it")

// supersede ends a record in hand whose offset is another record's by now: whatever comes of it is not that one's outcome. The lock is held.
func (d *delivery) supersede() {
	d.superseded = true
	d.gone = staleClaim(d.shard.target.Shard, d.m.Offset, d.attempts, errSuperseded)
	if d.state == working {
		d.cancel(d.gone)
	}
}

// forget takes a superseded record out of hand when nothing is done with it any more. The lock is held.
func (d *delivery) forget() {
	d.shard.consumer.stats.Stale++
	d.drop()
}

// take puts a record in hand. The lock is held.
func (s *consumedShard) take(m Message, now time.Time) {
	k := s.consumer
	d := &delivery{shard: s, m: m, place: len(k.all)}
	k.all = append(k.all, d)
	s.held[m.Offset] = d
	k.bytes += d.bytes()
	d.claimed(m.Attempts, now)
	if k.stopping {
		d.settle(giveBackIt, 0)
	} else {
		k.ready.push(d)
	}
}

// firstExtendMax is when a claim is first prolonged at the latest: until then it is not known whether the broker grants as much as
// was asked for.
const firstExtendMax = 10 * time.Second

// claimed says that a delivery of the record to us stands from now on. The lock is held.
func (d *delivery) claimed(attempts uint32, now time.Time) {
	k := d.shard.consumer
	d.claim++
	d.attempts, d.until = attempts, now.Add(k.opts.Visibility)
	d.planExtend(now.Add(min(k.opts.Visibility/3, firstExtendMax)))
}

// drop takes a record out of hand: it was settled, or is not ours any more. The lock is held.
func (d *delivery) drop() {
	s, k := d.shard, d.shard.consumer
	last := k.all[len(k.all)-1]
	k.all[d.place], last.place = last, d.place
	k.all[len(k.all)-1] = nil
	k.all = k.all[:len(k.all)-1]
	if s.held[d.m.Offset] == d { // a later delivery may have taken its place
		delete(s.held, d.m.Offset)
	}
	k.bytes -= d.bytes()
	s.use(-1)
}
