package sessionactor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/wire"
)

// laneOf is the broker's end of a stream.
func laneOf(x *site, l *line) (found *lane) {
	answer := func(f func(m *shardactor.Publish) shardactor.Answer) {
		x.sabotage.mu.Lock()
		defer x.sabotage.mu.Unlock()
		x.sabotage.answer = f
	}
	answer(func(m *shardactor.Publish) shardactor.Answer {
		found = m.Reply.(*lane)
		return shardactor.Answer{}
	})
	l.publish("orders", "who are you?")
	answer(nil)
	return found
}

// gatherers is a connection with streams that do not rest, and its gathering. The test itself is about to flush for it.
func gatherers(t *testing.T, streams int) (x *site, c *memConn, lines []*line, g *session) {
	x = open(t, setting{clock: actors.NewManualClock(time.Unix(1_700_000_000, 0))})
	c = x.connect()
	for range streams {
		lines = append(lines, dial(t, c, today()))
	}
	l := laneOf(x, lines[0])
	g = l.session
	if !g.gathering.Join(l) {
		t.Fatal("somebody flushes although all answers have come")
	}
	return x, c, lines, g
}

// gathered is how many lanes of a session wait for the test with so many bytes of answers each.
func (s *session) gathered(bytes int) (n int) {
	s.mu.Lock()
	lanes := slices.Clone(s.lanes)
	s.mu.Unlock()
	for _, l := range lanes {
		l.mu.Lock()
		if l.gathered && l.core.Pending() == bytes {
			n++
		}
		l.mu.Unlock()
	}
	return n
}

// flushAll does what the first that gathers does.
func (s *session) flushAll() int { return s.gathering.Flush((*lane).flushGathered) }

func ask(id uint64) (request, miss []byte) {
	get := &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "none", RequestID: wire.Some(id)}
	value := &wire.CacheValue{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "none", RequestID: wire.Some(id)}
	return wire.AppendJSONFrame(nil, get), wire.AppendJSONFrame(nil, value)
}

// mission 190
func TestAnswersOfStreamsThatGatherLeaveTogetherEachStreamsInOrder(t *testing.T) {
	const streams, requests = 4, 3
	x, _, lines, g := gatherers(t, streams)
	bytes := 0
	for id := range uint64(requests) {
		request, miss := ask(id)
		bytes += len(miss)
		for _, l := range lines {
			l.raw(request)
		}
	}
	eventually(t, "all streams have all their answers", func() bool { return g.gathered(bytes) == streams })
	if n := g.flushAll(); n != 1+streams {
		t.Errorf("%d lanes were there, want the test's and one for each of %d streams", n, streams)
	}
	for i, l := range lines {
		for id := range uint64(requests) {
			if m, ok := l.next().message.(*wire.CacheValue); !ok || m.RequestID != wire.Some(id) {
				t.Errorf("stream %d: answer %d is %+v", i, id, m)
			}
		}
	}
	x.balanced()
}

func TestALargeAnswerAndOneOfAShardWaitForNoOtherStream(t *testing.T) {
	x, _, lines, g := gatherers(t, 2)
	value := make([]byte, gatherMost)
	l := lines[1]
	if _, ok := l.ask(&wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: value}).message.(*wire.OK); !ok {
		t.Error("the put failed")
	}
	if m, ok := l.ask(&wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k"}).message.(*wire.CacheValue); !ok || len(m.Value.V) != len(value) {
		t.Errorf("got %+v", m)
	}
	g.flushAll()
	x.balanced()
}

func TestTheOnlyStreamInUseGathersWithNobody(t *testing.T) {
	x, _, lines, _ := gatherers(t, 1)
	request, _ := ask(1)
	lines[0].raw(request)
	if m, ok := lines[0].next().message.(*wire.CacheValue); !ok || m.RequestID != wire.Some(uint64(1)) {
		t.Errorf("got %+v", m)
	}
	x.balanced()
}

// A connection that is gone, and one stream that ends: who flushes later finds nothing to do, and no permit is lost.
func TestStreamsMayEndWhileTheirAnswersGather(t *testing.T) {
	for name, end := range map[string]func(c *memConn, l *line){
		"the connection": func(c *memConn, _ *line) { c.leave() },
		"the stream":     func(_ *memConn, l *line) { l.raw([]byte("no frame of this protocol")) },
	} {
		t.Run(name, func(t *testing.T) {
			x, c, lines, g := gatherers(t, 3)
			request, miss := ask(1)
			for _, l := range lines {
				l.raw(request)
			}
			eventually(t, "all streams have their answer", func() bool { return g.gathered(len(miss)) == len(lines) })
			end(c, lines[1])
			eventually(t, fmt.Sprintf("%s ends", name), func() bool { return g.gathered(len(miss)) < len(lines) })
			g.flushAll()
			x.balanced()
		})
	}
}
