package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

const (
	// spread is the stretch of time around a failure in which the subscribes of STR-06 begin.
	spread = 100 * time.Millisecond
)

// silence is how long a subscriber of STR-06 may hear nothing. At a landing none may be left silent, however slow the machine is.
func silence() time.Duration {
	if effort.Full() {
		return 10 * time.Second
	}
	return 2 * time.Minute
}

// field case STR-06: subscribes around the failure of their shard. Each is refused by type, or gets a record within ten seconds, or
// sees its subscription end and asks again. None is left silent: not when the shard comes back at once, not when it stays away because it
// has failed too often, and not when the route table is the last to hear of it.
func TestSTR06_SubscribesAroundAFailureAreRefusedOrServed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		crashes int           // of the shard
		held    time.Duration // how long the route table stays as it was before the last of them
		away    bool          // the shard is away afterwards
	}{
		{"back at once", 1, 0, false}, {"table held", 1, 2 * time.Second, false}, {"quarantined", 3, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := start(t, testkit.Setup{Breaks: true})
			n := testkit.Size("subscribes_at_failure")
			over := bystander(t, b.Client(t, once), orders)
			s := seek(t, b, n, orders, func() {
				for i := range c.crashes {
					if i == c.crashes-1 && c.held > 0 {
						b.Fault(testkit.Fault{Do: "pause", For: c.held})
					}
					b.Fault(testkit.Fault{Do: "crash", Stream: orders})
					if i < c.crashes-1 {
						b.Counts("felix_shard_restarts_total", float64(i+1))
					}
				}
			})
			t.Logf("%d subscribes: %s", n, s)
			b.Counts("felix_shard_contents_lost_total", float64(c.crashes)) // the host may be paused, and the last to hear of it
			if lost := b.Metric("felix_shard_contents_lost_total"); lost != float64(c.crashes) {
				t.Errorf("the shard failed %v times, want %d", lost, c.crashes)
			}
			if c.away {
				b.Counts("felix_shards_quarantined", 1)
			}
			if away := b.Metric("felix_shards_quarantined") == 1; away != c.away {
				t.Errorf("that the shard is away is %v, want %v", away, c.away)
			}
			if err := <-over; !errors.Is(err, io.EOF) {
				t.Errorf("who was subscribed all along heard %v of the failure, want the end", err)
			}
		})
	}
}

// field case STR-06: subscribes around the moment when their stream comes into being.
func TestSTR06_SubscribesWhileAStreamIsMadeAreRefusedOrServed(t *testing.T) {
	t.Parallel()
	const fresh = "fresh"
	b := start(t, testkit.Setup{})
	c := b.Client(t, once)
	if served, _, err := attend(patient(t), c, fresh); served || !typed(err) {
		t.Errorf("who came too early was served: %v, %v", served, err)
	}
	n := testkit.Size("subscribes_at_failure")
	s := seek(t, b, n, fresh, func() {
		b.Assign([]testkit.Resource{{Name: orders, Shards: 1}, {Name: fresh, Shards: 1}, {Name: wide, Shards: 8}})
		subscribe(t, c, fresh, client.SubscribeOptions{}) // who comes now is not too early
	})
	t.Logf("%d subscribes: %s", n, s)
}

// outcomes is what became of subscribers. ended counts subscriptions, each followed by another try of the same subscriber.
type outcomes struct{ served, refused, ended int }

func (o outcomes) String() string {
	return fmt.Sprintf("%d served, %d refused, %d ended before and asked again", o.served, o.refused, o.ended)
}

// seek lets n subscribers come to a stream within a short stretch of time, with an event in its middle, while records are published.
func seek(t *testing.T, b *testkit.Broker, n int, stream string, event func()) (all outcomes) {
	t.Helper()
	ctx, stop := context.WithCancel(patient(t))
	defer stop()
	keepPublishing(ctx, t, b.Client(t, once), stream)
	clients := []*client.Client{b.Client(t, once), b.Client(t, once), b.Client(t, once), b.Client(t, once)}
	var mu sync.Mutex
	var subscribers sync.WaitGroup
	begin := time.Now()
	for i := range n {
		subscribers.Go(func() {
			testkit.After(time.Until(begin.Add(spread * time.Duration(i) / time.Duration(n))))
			served, ended, err := attend(ctx, clients[i%len(clients)], stream)
			mu.Lock()
			defer mu.Unlock()
			all.ended += ended
			switch {
			case served:
				all.served++
			case typed(err):
				all.refused++
			default:
				t.Errorf("a subscriber was left with: %v", err)
			}
		})
	}
	testkit.After(spread / 2)
	event()
	subscribers.Wait()
	return all
}

// bystander is subscribed before the event and reads until its subscription ends.
func bystander(t *testing.T, c *client.Client, stream string) (over <-chan error) {
	t.Helper()
	ctx := patient(t)
	s := must(c.Subscribe(ctx, namespace, stream, client.SubscribeOptions{Resume: client.ResumeNever}))(t)
	ended := make(chan error, 1)
	go func() {
		defer s.Close()
		for {
			if _, err := s.Next(ctx); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// attend subscribes, again each time the subscription ends, until a record comes or a refusal.
func attend(ctx context.Context, c *client.Client, stream string) (served bool, ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, silence())
	defer cancel()
	for {
		s, err := c.Subscribe(ctx, namespace, stream, client.SubscribeOptions{})
		if err != nil {
			return false, ended, err
		}
		_, err = s.Next(ctx)
		s.Close()
		switch {
		case err == nil:
			return true, ended, nil
		case !errors.Is(err, io.EOF):
			return false, ended, err
		}
		ended++
	}
}

// typed reports whether an error is the broker's own word that the shard cannot be had.
func typed(err error) bool {
	var refused *client.BrokerError
	return errors.As(err, &refused) && (refused.Code == wire.CodeShardUnavailable || refused.Code == wire.CodeNotFound)
}

// keepPublishing publishes a record every 20 ms until ctx ends, whatever becomes of it: seldom enough that some subscribers wait at any time.
func keepPublishing(ctx context.Context, t testing.TB, c *client.Client, stream string) {
	var publisher sync.WaitGroup
	publisher.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(0); ; n++ {
			select {
			case <-tick.C:
				_, _ = c.Publish(ctx, namespace, stream, record(n, 8)) // the shard may be away
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(publisher.Wait)
}
