package client

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// answering is a broker whose n-th publish gets the n-th answer, and later ones the last: a refusal, nil for taken, or no
// answer and a lost connection.
type publishAnswer struct {
	refusal *wire.Refusal
	lose    bool
}

func answering(t *testing.T, answers ...publishAnswer) (b *testbroker.Broker, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	b = testbroker.New(t, testbroker.Options{Streams: map[string]uint32{"ns/s": 1}, Durable: true, OnFrame: func(s *testbroker.Stream, f testbroker.Frame) bool {
		p, ok := f.Publish()
		if !ok {
			return false
		}
		a := answers[min(int(asked.Add(1)), len(answers))-1]
		switch {
		case a.lose:
			transport.Close(s.Conn, transport.CloseOverload)
		case a.refusal != nil:
			s.Ack(wire.PublishAck{RequestID: p.RequestID, Refusal: a.refusal})
		default:
			return false
		}
		return true
	}})
	return b, asked
}

func refusal(code wire.Code) publishAnswer {
	r := wire.Refuse(code, "no")
	return publishAnswer{refusal: &r}
}

var (
	taken = publishAnswer{}
	lost  = publishAnswer{lose: true}
)

// The table of retry classes: who is repeated, and what the caller gets in the end.
func TestRetryClassesArePlayedByTheTable(t *testing.T) {
	for name, row := range map[string]struct {
		answers      []publishAnswer
		plain, again int64 // publishes the broker saw
		plainErr     error
		againErr     error
	}{
		"taken":                     {[]publishAnswer{taken}, 1, 1, nil, nil},
		"fatal":                     {[]publishAnswer{refusal(wire.CodeForbidden)}, 1, 1, ErrForbidden, ErrForbidden},
		"retry":                     {[]publishAnswer{refusal(wire.CodeShardUnavailable), taken}, 1, 2, ErrUnavailable, nil},
		"redirect":                  {[]publishAnswer{refusal(wire.CodeNotLeader), taken}, 1, 2, ErrNotLeader, nil},
		"retry after":               {[]publishAnswer{refusal(wire.CodeOverloaded), taken}, 1, 2, ErrOverloaded, nil},
		"outcome unknown":           {[]publishAnswer{refusal(wire.CodeQuorumTimeout), taken}, 1, 2, ErrOutcomeUnknown, nil},
		"connection lost":           {[]publishAnswer{lost, taken}, 1, 2, ErrOutcomeUnknown, nil},
		"unavailable for good":      {[]publishAnswer{refusal(wire.CodeShardUnavailable)}, 1, DefaultAttempts, ErrUnavailable, ErrUnavailable},
		"draining":                  {[]publishAnswer{refusal(wire.CodeDraining), taken}, 1, 2, ErrDraining, nil},
		"unknown, then fatal":       {[]publishAnswer{lost, refusal(wire.CodeForbidden)}, 1, 2, ErrOutcomeUnknown, ErrOutcomeUnknown},
		"unknown, then unavailable": {[]publishAnswer{lost, refusal(wire.CodeShardUnavailable)}, 1, DefaultAttempts, ErrOutcomeUnknown, ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			check := func(err, want error, asked, wantAsked int64) {
				t.Helper()
				if want == nil && err != nil || want != nil && !errors.Is(err, want) {
					t.Fatalf("%v, want %v", err, want)
				}
				if asked != wantAsked {
					t.Fatalf("the broker saw %d publishes, want %d", asked, wantAsked)
				}
			}
			b, asked := answering(t, row.answers...)
			_, err := connect(t, b).Publish(within(t), "ns", "s", []byte("x"))
			check(err, row.plainErr, asked.Load(), row.plain)
			if errors.Is(row.plainErr, ErrOutcomeUnknown) == Retryable(err) && err != nil && !errors.Is(err, ErrForbidden) {
				t.Fatalf("%v: retryable is %v", err, Retryable(err))
			}
			b, asked = answering(t, row.answers...)
			r, err := connect(t, b).PublishAtLeastOnce(within(t), "ns", "s", [][]byte{[]byte("x")})
			check(err, row.againErr, asked.Load(), row.again)
			if err == nil && !r.HasOffset {
				t.Fatal("the offset got lost")
			}
			if row.again == DefaultAttempts {
				if g := wantAs[*GaveUpError](t, err); g.Tries != DefaultAttempts {
					t.Fatalf("%d tries", g.Tries)
				}
			}
		})
	}
}

func TestOverloadedBrokerGetsThePauseItAsksFor(t *testing.T) {
	r := wire.Refuse(wire.CodeOverloaded, "later").WithReason(wire.ReasonTenantQuota, 700)
	b, _ := answering(t, publishAnswer{refusal: &r}, publishAnswer{refusal: &r}, taken)
	clock := newClock()
	c := connectWith(t, b, func(c *Client) { c.now, c.sleep = clock.now, clock.sleep })
	if _, err := c.PublishAtLeastOnce(within(t), "ns", "s", [][]byte{nil}); err != nil {
		t.Fatal(err)
	}
	if p := clock.slept(); len(p) != 2 || p[0] != 700*time.Millisecond || p[1] != 700*time.Millisecond {
		t.Fatalf("pauses %v", p)
	}
}

func TestNotFoundIsBelievedAfterFiveSecondsFromTheFirst(t *testing.T) {
	b, asked := answering(t, refusal(wire.CodeShardUnavailable), refusal(wire.CodeNotFound))
	clock := newClock()
	c := connectWith(t, b, func(c *Client) {
		c.now, c.sleep, c.jitter = clock.now, clock.sleep, func(d time.Duration) time.Duration { return d }
	}, func(o *Options) { o.Attempts = 100 })
	began := clock.now()
	_, err := c.PublishAtLeastOnce(within(t), "ns", "s", [][]byte{nil})
	wantIs(t, err, ErrNotFound)
	// 200 ms after the other refusal, then 400, 800, 1600 and 2000 from the first not_found on: 4.8 s; 2 s more is too long.
	if took := clock.now().Sub(began); took != 5*time.Second || asked.Load() != 6 {
		t.Fatalf("%d tries in %v: pauses %v", asked.Load(), took, clock.slept())
	}
}

func TestAtLeastOnceTakesNoKeyAndNeedsAnAnswer(t *testing.T) {
	b, asked := answering(t, taken)
	c := connect(t, b)
	for argument, option := range map[string]PublishOption{"key": WithKey(nil), "ack": WithAck(AckNone)} {
		_, err := c.PublishAtLeastOnce(within(t), "ns", "s", [][]byte{nil}, option)
		if e := wantAs[*ArgumentError](t, err); e.Argument != argument {
			t.Errorf("%s: %v", argument, err)
		}
	}
	if asked.Load() != 0 {
		t.Fatal("something was sent")
	}
}

func TestPublishThatMeetsADrainingBrokerMakesTheNextOneGoElsewhere(t *testing.T) {
	noLeaks(t)
	b, _ := answering(t, refusal(wire.CodeDraining))
	other := testbroker.New(t, testbroker.Options{Share: b})
	c := connect(t, b, func(o *Options) { o.Addrs = []string{b.Addr(), other.Addr()} })
	ctx := within(t)
	reading := subscribe(t, c, SubscribeOptions{}) // keeps the connection busy
	_, err := c.Publish(ctx, "ns", "s", []byte("x"))
	wantIs(t, err, ErrDraining)
	if _, err := c.Publish(ctx, "ns", "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if b.Connections() != 1 || other.Connections() != 1 {
		t.Fatalf("%d and %d connections", b.Connections(), other.Connections())
	}
	wantPayload(t, reading, "x") // what is under way on the old connection goes on
}
