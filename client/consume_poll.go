package client

import (
	"context"
	"errors"
	"time"

	"github.com/felixd/felixd/wire"
)

// poll claims records of a shard until the consumer stops.
func (s *consumedShard) poll() {
	defer s.polls.close()
	k := s.consumer
	var trouble setbacks
	idle := 0 // polls in a row that came back empty long before their time
	for {
		n, wait, ok := s.reserve()
		if !ok {
			return
		}
		began := k.client.now()
		messages, err := s.pollOnce(n, wait)
		now := k.client.now()
		if err != nil && messages == nil { // what came is taken, also when the stream was given up meanwhile
			s.unanswered(n)
			if k.polling.Err() != nil {
				return
			}
			if !k.bear(&trouble, s.polls.op, err) {
				k.fail(err)
				return
			}
			continue
		}
		trouble.clear()
		s.arrived(n, messages, now)
		if len(messages) > 0 || wait == 0 || now.Sub(began) >= min(wait/2, shortPoll) {
			idle = 0
			continue
		}
		idle++ // the shard moves, or too much is in flight: no reason to ask all the time
		if k.client.sleep(k.polling, k.client.pause(idle, nil)) != nil {
			return
		}
	}
}

// shortPoll is how soon an empty answer to a poll that may wait is no proof that the broker waited.
const shortPoll = 100 * time.Millisecond

// pollOnce is one poll. Its wait is cut where the broker is in no hurry to answer, not here.
func (s *consumedShard) pollOnce(n int, wait time.Duration) ([]Message, error) {
	k, c := s.consumer, s.consumer.client
	var messages []Message
	ctx, cancel := k.pollContext(wait)
	defer cancel()
	err := s.polls.do(ctx, wait, func(control *control) error {
		call := groupCall{client: c, target: s.target}
		call.target.RequestID = c.requestID.Add(1)
		o := GroupPollOptions{Max: n, Wait: wait, Visibility: k.opts.Visibility}
		if control.grant.Features.Has(wire.FeatureGroupConsumer) {
			o.Member, o.Reclaim = k.opts.Member, s.reclaim
		}
		m := c.groupPoll(&call, &o)
		if err := control.send(m); err != nil {
			return err
		}
		answer, err := control.receive(s.polls.op)
		if err != nil {
			return err
		}
		records, ok := answer.(*wire.GroupRecords)
		if !ok {
			return refusalOf(s.polls.op, answer)
		}
		if err := echoes(s.polls.op, call.target.RequestID, records.RequestID); err != nil {
			return err
		}
		messages, err = messagesOf(s.polls.op, m, records)
		return err
	})
	s.reclaim = err != nil && (s.reclaim || !decided(err))
	return messages, err
}

// stopPatience is how long Stop lets a poll that does not wait go on: its answer is under way, and what it claims is given back.
const stopPatience = time.Second

// pollContext bounds a poll by Stop.
func (k *Consumer) pollContext(wait time.Duration) (context.Context, context.CancelFunc) {
	if wait > 0 {
		return context.WithCancel(k.polling)
	}
	ctx, cancel := context.WithCancel(k.settling)
	stop := context.AfterFunc(k.polling, func() {
		late := time.AfterFunc(k.latePoll, cancel)
		context.AfterFunc(ctx, func() { late.Stop() })
	})
	return ctx, func() { stop(); cancel() }
}

// unanswered gives back the room of a poll that brought nothing.
func (s *consumedShard) unanswered(n int) {
	k := s.consumer
	k.mu.Lock()
	defer k.mu.Unlock()
	s.hot = false
	s.use(-n)
}

// setbacks are what a stream of a consumer has been through since its last success.
type setbacks struct {
	tries   int
	missing time.Time // not_found since; zero: that is not it
}

func (t *setbacks) clear() { t.tries, t.missing = 0, time.Time{} }

// bear pauses after a failure that may pass; false when it will not.
func (k *Consumer) bear(t *setbacks, op string, err error) bool {
	c := k.client
	now := c.now()
	switch {
	case !errors.Is(err, ErrNotFound):
		t.missing = time.Time{}
	case t.missing.IsZero():
		t.missing = now
	case now.Sub(t.missing) > notFoundGrace:
		return false
	}
	if !mayPass(err) {
		return false
	}
	t.tries++
	pause := c.pause(t.tries, err)
	c.stats.retries.Add(1)
	c.opts.Hooks.retrying(Retry{Op: op, Try: t.tries, Pause: pause, Err: err})
	k.tell(nil, err)
	_ = c.sleep(k.settling, pause) // who is told to end looks by itself
	return true
}

// mayPass reports whether something that may be done twice is worth another try.
func mayPass(err error) bool {
	return repeatable(err) || errors.Is(err, ErrNotLeader) || errors.Is(err, ErrOutcomeUnknown)
}
