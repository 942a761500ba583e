package client

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// claimedAnew has the first request of a type meet a broker that does not know its claim any more: the record comes to the same consumer
// anew, and only then is the request refused. forget makes the broker forget.
func claimedAnew[M wire.Message](t *testing.T, consumer *atomic.Pointer[Consumer], forget func()) func(*testbroker.Options) {
	var once sync.Once
	return func(o *testbroker.Options) {
		o.OnFrame = func(s *testbroker.Stream, f testbroker.Frame) (refused bool) {
			if !isA[M](f.Message()) {
				return false
			}
			once.Do(func() {
				refused = true
				forget()
				if !happens(func() bool { return consumer.Load() != nil && consumer.Load().Stats().Received == 2 }) {
					t.Error("the record did not come again")
				}
				s.Refuse(wire.Refuse(wire.CodeStaleClaim, "never handed out"))
			})
			return refused
		}
	}
}

// forgetting are the ways in which a broker forgets what it handed out: as at a restart, when a record's deliveries are counted on; and
// with the whole group, when they are counted anew.
func forgetting(t *testing.T, b **testbroker.Broker) map[string]func() {
	return map[string]func(){
		"claims": func() { (*b).ForgetClaims("ns/s", 0, "g") },
		"group": func() {
			if _, err := connect(t, *b).GroupDelete(within(t), "ns", "s", 0, "g"); err != nil {
				t.Error(err)
			}
		},
	}
}

func TestSettlementRefusedAsStaleFinishesTheNewerClaimOfItsRecord(t *testing.T) {
	for _, outcome := range []error{nil, ErrDeadLetter} {
		var b *testbroker.Broker
		for name, forget := range forgetting(t, &b) {
			t.Run(name, func(t *testing.T) {
				noLeaks(t)
				var consumer atomic.Pointer[Consumer]
				meets := claimedAnew[*wire.GroupAck](t, &consumer, forget)
				if outcome != nil {
					meets = claimedAnew[*wire.GroupDeadLetter](t, &consumer, forget)
				}
				b = queue(t, 1, 1, meets)
				var seen tally
				k := consume(t, connect(t, b), func(_ context.Context, m Message) error { seen.add(m); return outcome }, ConsumeOptions{
					Visibility: ConsumeVisibilityMax, PollWait: time.Millisecond})
				consumer.Store(k)
				until(t, "the end of the queue", func() bool { return k.Stats().Received == 2 && drained(b, 1) })
				stop(t, k)
				seen.wantEach(t, 1, 1)
				if s := k.Stats(); s.Acked+s.DeadLettered != 1 || s.Stale != 0 || s.Resent != 1 {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

func TestExtensionRefusedAsStaleEndsNoNewerClaimOfItsRecord(t *testing.T) {
	var b *testbroker.Broker
	for name, forget := range forgetting(t, &b) {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			var consumer atomic.Pointer[Consumer]
			b = queue(t, 1, 1, claimedAnew[*wire.GroupExtend](t, &consumer, forget))
			release := make(chan struct{})
			c, clock := virtual(t, b)
			k := consume(t, c, func(ctx context.Context, m Message) error {
				select {
				case <-release:
				case <-ctx.Done():
					t.Errorf("the handler was told that its claim is gone: %v", context.Cause(ctx))
				}
				return nil
			}, ConsumeOptions{PollWait: time.Millisecond})
			consumer.Store(k)
			until(t, "start", func() bool { return k.Stats().Running == 1 })
			later(k, clock, DefaultVisibility/3)
			until(t, "the refusal", func() bool { return k.Stats().Stale == 1 })
			until(t, "a plan to prolong the newer claim", func() bool {
				k.mu.Lock()
				defer k.mu.Unlock()
				return k.next.After(clock.now())
			})
			later(k, clock, DefaultVisibility/3)
			until(t, "prolongation", func() bool { return k.Stats().Extended == 1 })
			close(release)
			until(t, "the end of the queue", func() bool { return drained(b, 1) })
			stop(t, k)
		})
	}
}
