package client

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// chance is luck that several goroutines share.
type chance struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (c *chance) oneIn(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n) == 0
}

// Workers fail, panic, stall past their visibility, give up and end, answers and connections get lost: each record is finished once or
// a dead letter of its own doing, and nothing stays behind.
func TestStormLeavesNoRecordBehind(t *testing.T) {
	noLeaks(t)
	const shards, each, workers = 2, 150, 3
	luck := &chance{random: rand.New(rand.NewPCG(7, 7))}
	var one *testbroker.Broker
	trouble := func(o *testbroker.Options) {
		o.GroupMaxAttempts = 1000 // laps and lost answers are failures too: only what is given up on is a dead letter here
		o.OnGroupAnswer = func(s *testbroker.Stream, _, answer wire.Message) bool {
			lost := luck.oneIn(15)
			if lost && luck.oneIn(4) {
				transport.Close(s.Conn, transport.CloseShutdown)
			} else if lost {
				s.Reset()
			}
			if luck.oneIn(60) {
				go one.ForgetClaims("ns/s", 0, "g")
			}
			return lost
		}
	}
	one = queue(t, shards, each, trouble)
	c := connect(t, one)
	var seen tally
	handler := func(ctx context.Context, m Message) error {
		times := seen.add(m)
		switch {
		case m.Offset%50 == 7:
			return ErrDeadLetter
		case luck.oneIn(10):
			return RetryAfter(time.Millisecond, ErrClosed)
		case luck.oneIn(40), m.Offset%50 == 9 && times == 1: // at least
			panic("storm")
		case luck.oneIn(40):
			runtime.Goexit()
		case luck.oneIn(50): // until the claim is gone, or for longer than it stands
			select {
			case <-ctx.Done():
			case <-time.After(150 * time.Millisecond):
			}
		}
		return nil
	}
	o := ConsumeOptions{Concurrency: 6, Visibility: 100 * time.Millisecond, RetryDelay: soon, PollWait: 50 * time.Millisecond}
	var all []*Consumer
	for range workers {
		all = append(all, consume(t, c, handler, o))
	}
	until(t, "some work", func() bool { return one.Group("ns/s", 0, "g").Cursor > each/3 })
	stop(t, all[0])
	all[0] = consume(t, c, handler, o)
	until(t, "the end of the queue", func() bool { return drained(one, shards) })
	var total ConsumerStats
	for _, k := range all {
		stop(t, k)
		s := k.Stats()
		total.Acked, total.DeadLettered, total.Resent, total.Panics = total.Acked+s.Acked, total.DeadLettered+s.DeadLettered, total.Resent+s.Resent, total.Panics+s.Panics
	}
	for shard := range uint32(shards) {
		for _, at := range one.Group("ns/s", shard, "g").DeadLetters {
			if at%50 != 7 {
				t.Errorf("offset %s of shard %d is a dead letter", at, shard)
			}
		}
		if n := len(one.Group("ns/s", shard, "g").DeadLetters); n != each/50 {
			t.Errorf("shard %d has %d dead letters", shard, n)
		}
	}
	if total.Resent == 0 || total.Panics == 0 {
		t.Errorf("it was no storm: %+v", total)
	}
}
