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
// published then is in its hands within five seconds of its acknowledgement. A landing gives a busy machine longer, and never as long as a poll
// waits.
//
// field case QUE-04 (one broker, restarted); mission 356 (one broker: the client finds it again)
func TestQUE04_ALongPollOutlivesItsBroker(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "FELIX_GROUP_MAX_WAIT_MS=300000")
	d.CreateStream(jobs, 1)
	c := d.Connect()
	got := make(chan string, 16)
	ctx, cancel := testkit.Within()
	defer cancel()
	k := must(c.Consume(ctx, namespace, jobs, workers, func(_ context.Context, m client.Message) error {
		got <- string(m.Payload)
		return nil
	}, client.ConsumeOptions{PollWait: 5 * time.Minute}))(t)
	rounds, slowest := size("waiting_kills"), time.Duration(0)
	for n := range 2 * rounds {
		testkit.Eventually(t, "what came is settled, or it would come again, and the poll waits", func() bool {
			return k.Stats().Acked >= uint64(n) && d.value(d.Metrics(), "felix_group_polls_waiting") >= 1
		})
		if n%2 == 0 {
			d.Kill()
		} else {
			d.Stop()
		}
		d.Start()
		p, text := d.Connect(), fmt.Sprint("job ", n)
		within, cancel := testkit.Within()
		if _, err := p.Publish(within, namespace, jobs, []byte(text)); err != nil {
			t.Fatal(err)
		}
		cancel()
		acknowledged := time.Now()
		select {
		case have := <-got:
			took := time.Since(acknowledged)
			if slowest = max(slowest, took); have != text || took > testkit.Figure(5*time.Second) {
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
