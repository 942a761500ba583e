package queue

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/internal/testkit"
)

// resident is the daemon's memory as the system counts it, in bytes.
func (d *daemon) resident() int64 {
	d.t.Helper()
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", d.Pid())))(d.t)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	return must(strconv.ParseInt(strings.Fields(rest)[0], 10, 64))(d.t) << 10
}

// cpu is how long the daemon has run on a processor, to 10 ms.
func (d *daemon) cpu() time.Duration {
	d.t.Helper()
	text := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.Pid())))(d.t))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	user, system := must(strconv.Atoi(fields[11]))(d.t), must(strconv.Atoi(fields[12]))(d.t)
	return time.Duration(user+system) * 10 * time.Millisecond // a hundred ticks a second, wherever Linux tells them to programs
}

// idleShare is how much of a processor a daemon may take whose clients all wait.
const idleShare = 0.05

// idles measures such a stretch, again if it was more than that, so many times at most: what is left of the work before, as a collection, is in
// some of them, and what is done all the time in all. It returns how long the daemon was on a processor in the last one.
func (d *daemon) idles(stretch time.Duration, tries int) (busy time.Duration) {
	d.t.Helper()
	for range tries {
		before := d.cpu()
		testkit.After(stretch)
		if busy = d.cpu() - before; busy.Seconds()/stretch.Seconds() <= idleShare {
			break
		}
	}
	return busy
}

// Thousands of polls wait on ten connections. They cost the daemon little memory and no time, and each gets its record when there are as many.
// Ten thousand are below 100 MiB: far below on a hundred streams, and with a stream of its own for each, which costs a QUIC stream, a lane and
// the smallest stack.
//
// mission 245; field case OPS-11 (groups)
func TestThousandsOfWaitingPollsCostLittleAndAreAllServed(t *testing.T) {
	for name, c := range map[string]struct {
		onStream int
		bytes    int64 // that one may cost
	}{
		"a hundred on a stream": {100, 4 << 10},
		"one on a stream":       {1, 9 << 10},
	} {
		t.Run(name, func(t *testing.T) { waitingPolls(t, size("waiting_polls"), c.onStream, c.bytes) })
	}
}

func waitingPolls(t *testing.T, n, onStream int, bytes int64) {
	const connections = 10
	env := []string{"FELIX_GROUP_MAX_WAIT_MS=600000"}
	if !effort.Full() {
		env = append(env, testkit.CollectOften) // garbage does not matter among ten thousand, and does among a few
	}
	d := newDaemon(t, env...)
	d.CreateStream(jobs, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 4*testkit.Patience)
	defer cancel()
	publisher := d.Connect()
	worker{Client: publisher, t: t, group: workers}.poll(client.GroupPollOptions{}) // the group is up
	var conns []*quic.Conn
	for range connections {
		conns = append(conns, d.rawDial())
	}
	held, resident, began := d.Footprint(), d.resident(), time.Now()
	var streams []*quic.Stream
	for started := 0; started < n; started += onStream {
		s := must(d.signIn(ctx, conns[len(streams)%connections]))(t)
		if err := d.sendPolls(s, min(onStream, n-started), 9*time.Minute); err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	waiting := func() float64 { return d.value(d.Metrics(), "felix_group_polls_waiting") }
	testkit.Eventually(t, "all polls wait", func() bool { return waiting() == float64(n) })
	settled := time.Since(began)
	length := time.Duration(size("waiting_millis")) * time.Millisecond
	busy := d.idles(length, 5)
	resident = d.resident() - resident
	now := d.Footprint()
	more := int64(now.Memory - held.Memory)
	t.Logf("%d polls on %d streams wait after %v: %d bytes more in heap and stacks, %d each, %.1f MiB more resident; %.0f goroutines more; %v on a processor in %v",
		n, len(streams), settled, more, more/int64(n), float64(resident)/(1<<20), now.Goroutines-held.Goroutines, busy, length)
	if bound := int64(n)*bytes + 8<<20; more > bound || effort.Full() && resident > bound {
		t.Errorf("%d waiting polls cost %d bytes, %d as the system counts them, and %d are allowed", n, more, resident, bound)
	}
	if share := busy.Seconds() / length.Seconds(); share > idleShare {
		t.Errorf("they take %.0f %% of a processor", 100*share)
	}
	for left := n; left > 0; left -= 500 {
		var list [][]byte
		for i := range min(left, 500) {
			list = append(list, []byte(fmt.Sprint(left-i)))
		}
		if _, err := publisher.PublishBatch(ctx, namespace, jobs, list); err != nil {
			t.Fatal(err)
		}
	}
	var reads sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for i, s := range streams {
		reads.Go(func() {
			_ = s.SetReadDeadline(time.Now().Add(testkit.Patience))
			err := readPolls(s, min(onStream, n-i*onStream), func(payload string) {
				mu.Lock()
				defer mu.Unlock()
				if seen[payload] {
					t.Errorf("%s came twice", payload)
				}
				seen[payload] = true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	reads.Wait()
	if len(seen) != n {
		t.Errorf("%d of %d polls got a record", len(seen), n)
	}
	testkit.Eventually(t, "none waits", func() bool { return waiting() == 0 })
}
