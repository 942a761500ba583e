package queue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
)

// A consumer waits at an empty queue with a long poll when its broker is killed, or stopped in order, and started again. A record that is
// published then is in its hands within five seconds of its acknowledgement.
//
// field case QUE-04 (one broker, restarted)
func TestQUE04_ALongPollOutlivesItsBroker(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.createStream(jobs, 1)
	c := d.connect()
	got := make(chan string, 16)
	ctx, cancel := testkit.Within()
	defer cancel()
	k := must(c.Consume(ctx, namespace, jobs, workers, func(_ context.Context, m client.Message) error {
		got <- string(m.Payload)
		return nil
	}, client.ConsumeOptions{PollWait: 30 * time.Second}))(t)
	rounds, slowest := size("waiting_kills"), time.Duration(0)
	for n := range 2 * rounds {
		testkit.Eventually(t, "the poll waits", func() bool {
			return d.value(d.metrics(), "felix_group_polls_waiting") >= 1 || n > 0 && k.Stats().Polls > 0
		})
		if n%2 == 0 {
			d.kill()
		} else {
			d.stop()
			d.life.Add(1)
		}
		d.start()
		p, text := d.connect(), fmt.Sprint("job ", n)
		within, cancel := testkit.Within()
		if _, err := p.Publish(within, namespace, jobs, []byte(text)); err != nil {
			t.Fatal(err)
		}
		cancel()
		acknowledged := time.Now()
		select {
		case have := <-got:
			took := time.Since(acknowledged)
			if slowest = max(slowest, took); have != text || took > 5*time.Second {
				t.Errorf("round %d: %q after %v", n, have, took)
			}
		case <-time.After(testkit.Patience):
			t.Fatalf("round %d: it does not come: %+v", n, k.Stats())
		}
	}
	t.Logf("%d restarts; the slowest record took %v", 2*rounds, slowest)
	stop, cancel := testkit.Within()
	defer cancel()
	if err := k.Stop(stop); err != nil {
		t.Error(err)
	}
}
