package sessionactor

import (
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// seconds is the time spent so far, by "path stage", and how often it was noted.
func (x *site) seconds() (sums map[string]float64, counts map[string]uint64) {
	x.t.Helper()
	sums, counts = map[string]float64{}, map[string]uint64{}
	for _, f := range must(x.registry.Gather())(x.t) {
		if f.GetName() == "felix_stage_seconds" {
			for _, m := range f.GetMetric() {
				name := label(m, "path") + " " + label(m, "stage")
				sums[name], counts[name] = m.GetHistogram().GetSampleSum(), m.GetHistogram().GetSampleCount()
			}
		}
	}
	return sums, counts
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// grewMost runs something and says which stage took most of the time, and checks that it was at least so many seconds.
func (x *site) grewMost(least float64, run func()) string {
	x.t.Helper()
	most, grown := x.grown(run)
	if grown < least {
		x.t.Errorf("%s grew by %v s, want at least %v", most, grown, least)
	}
	return most
}

// grown runs something and says which stage took most of the time, and how many seconds.
func (x *site) grown(run func()) (most string, seconds float64) {
	x.t.Helper()
	before, _ := x.seconds()
	run()
	after, _ := x.seconds()
	for _, stage := range []string{"wire", "queue", "storage", "transport"} {
		for _, path := range []string{"publish", "cache", "deliver"} {
			name := path + " " + stage
			if grown := after[name] - before[name]; most == "" || grown > after[most]-before[most] {
				most = name
			}
		}
	}
	return most, after[most] - before[most]
}

// mission 339: a log that is slow to append shows as storage.
func TestASlowLogShowsAsStorage(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock, timed: true, desired: streams("a")})
	l := dial(t, x.connect(), today())
	// The log rings its readers while it makes an append readable; this one takes 20 ms to hear.
	slow, _ := x.shardOf("a", 0).Log.Register(storage.CursorOptions{Start: storage.StartLatest, Capacity: 64, Ring: func() { clock.Advance(20 * time.Millisecond) }})
	defer slow.Release()
	if most := x.grewMost(0.19, func() {
		for range 10 {
			if _, err := slow.Take(t.Context(), 64, 1<<20, nil); err != nil || !slow.Arm(1, 1) {
				t.Fatalf("the slow reader does not wait: %v", err)
			}
			l.publish("a", "x")
		}
	}); most != "publish storage" {
		t.Errorf("%s grew most", most)
	}
}

// mission 339: a client that does not read its answers shows as transport of what it asks for, one that does not read its events as
// transport of deliveries.
func TestASlowReaderShowsAsTransport(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock, timed: true, desired: streams("a")})
	slow := x.connect(func(c *memConn) { c.window = 8 })
	l := dial(t, slow, today())
	if most := x.grewMost(9, func() {
		for i := range uint64(10) {
			l.raw(batchTo("a", i, wire.AckPerBatch, "x"))
			eventually(t, "the answer waits", func() bool { return x.opts.Answers.Used() > 0 })
			clock.Advance(time.Second)
			l.next()
			eventually(t, "it has left", func() bool { _, n := x.seconds(); return n["publish transport"] == i+1 })
		}
	}); most != "publish transport" {
		t.Errorf("%s grew most", most)
	}
	c := x.connect(func(c *memConn) { c.window = 256 })
	s := dial(t, c, today()).subscribe(c, subscribeTo("a", wire.StartLatest))
	if most := x.grewMost(4.9, func() {
		l.raw(batchTo("a", 10, wire.AckPerBatch, strings.Repeat("x", 1000)))
		l.next()
		eventually(t, "its answer has left", func() bool { _, n := x.seconds(); return n["publish transport"] == 11 })
		eventually(t, "the event waits", func() bool { return s.h.unread() == 256 })
		clock.Advance(5 * time.Second)
		s.events(1)
		eventually(t, "it has left", func() bool { _, n := x.seconds(); return n["deliver transport"] > 0 })
	}); most != "deliver transport" {
		t.Errorf("%s grew most", most)
	}
}

// mission 339: a shard that is slow to take its turns shows as queueing, of publishes and of cache writes, and so does waiting for room.
func TestAFullQueueShowsAsQueueing(t *testing.T) {
	clock := manual()
	x := open(t, setting{clock: clock, timed: true, desired: streams("a"), change: func(o *Options) { oneSlot(o); o.QueueWait = time.Hour }})
	c := x.connect()
	one, two := dial(t, c, today()), dial(t, c, today())
	shard := x.shardOf("a", 0).Ref.Path()
	if err := x.sys.Faults().Slow(shard, 100*time.Millisecond, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if most := x.grewMost(2.9, func() {
		for i := range uint64(10) {
			one.raw(batchTo("a", i, wire.AckPerBatch, "x"))
			eventually(t, "the first has its place", func() bool { n, _ := x.opts.Admission.InUse(); return n == 1 })
			two.raw(batchTo("a", i, wire.AckPerBatch, "x"))
			x.counts("felix_publish_queue_waits_total", float64(i+1))
			for _, l := range []*line{one, two} { // the turn begins to wait when the publish has come; no time passes behind it
				eventually(t, "a turn has waited long enough", func() bool {
					if x.queued(shard) > 0 {
						clock.Advance(100 * time.Millisecond)
					}
					return l.h.unread() > 0
				})
			}
			one.next()
			two.next()
		}
	}); most != "publish queue" {
		t.Errorf("%s grew most", most)
	}
}

// mission 339: JSON shows as work on the bytes.
func TestAHeavyJSONLoadShowsAsWire(t *testing.T) {
	x := open(t, setting{timed: true})
	l := dial(t, x.connect(), today())
	payload := []byte(strings.Repeat("x", 64<<10))
	m := &wire.PublishBatchMessage{TenantID: tenant, Namespace: namespace, Stream: "orders", RequestID: wire.Some(uint64(1)), Ack: wire.AckPerBatch, Count: 4}
	for range m.Count {
		m.Records = wire.AppendPayload(m.Records, payload)
	}
	requests := 100
	if effort.Raced && !effort.Full() {
		requests /= 5
	}
	// A machine that lets one of the others wait for once shows that instead.
	eventually(t, "the work on the bytes grows most, by a millisecond at least", func() bool {
		most, seconds := x.grown(func() {
			for range requests {
				if f := l.ask(m); f.message.MessageType() != "publish_ok" {
					t.Fatalf("answered %q", f.payload)
				}
			}
		})
		return most == "publish wire" && seconds >= 0.001
	})
}

// Each request that is timed is noted once in each stage it passes, whatever becomes of it.
func TestEachStageIsNotedOnceForEachRequest(t *testing.T) {
	x := open(t, setting{timed: true})
	c := x.connect()
	l := dial(t, c, today())
	for range 5 {
		l.publish("orders", "x")
	}
	l.raw(batchTo("no such stream", 1, wire.AckPerBatch, "x"))
	l.next()
	l.raw(batchTo("orders", 0, wire.AckNone, "x"))
	x.counts("felix_published_records_total", 6)
	x.balanced() // a lane times one request at a time
	put := &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: []byte("v")}
	for range 3 {
		l.ask(put)
	}
	l.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k"})
	l.ask(&wire.Topology{})
	_, got := x.seconds()
	for name, want := range map[string]uint64{
		"publish wire": 7, "publish queue": 6, "publish storage": 6, "publish transport": 6,
		"cache wire": 4, "cache queue": 3, "cache storage": 3, "cache transport": 4,
	} {
		if got[name] != want {
			t.Errorf("%s was noted %d times, want %d", name, got[name], want)
		}
	}
}

func TestTimingsThatAreOffLeaveNoSeries(t *testing.T) {
	x := open(t, setting{})
	dial(t, x.connect(), today()).publish("orders", "x")
	if sums, _ := x.seconds(); len(sums) != 0 {
		t.Errorf("noted: %v", sums)
	}
}
