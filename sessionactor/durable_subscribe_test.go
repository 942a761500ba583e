package sessionactor

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

func subscribeAt(name string, o id.Offset) *wire.Subscribe {
	return &wire.Subscribe{TenantID: tenant, Namespace: namespace, Stream: name, Start: wire.Some(wire.Start{Kind: wire.StartOffset, Offset: o})}
}

// STR-07: below what is kept and above the tail there is no start, and both answers say what there is. Byte by byte.
func TestAStartThatCannotBeServedSaysWhatCan(t *testing.T) {
	x, _ := durable(t, setting{ringBatches: 2, ringBytes: 1 << 20})
	c := x.connect()
	l := dial(t, c, today())
	for _, r := range []string{"a", "b", "c", "d"} { // 0 and 1 leave the ring
		l.publish("orders", r)
	}
	for o, want := range map[id.Offset]string{
		0: `{"type":"subscribe_cursor_error","reason":"too_old","requested":0,"available":2}`,
		1: `{"type":"subscribe_cursor_error","reason":"too_old","requested":1,"available":2}`,
		5: `{"type":"subscribe_cursor_error","reason":"in_future","requested":5,"available":4}`,
	} {
		if f := l.ask(subscribeAt("orders", o)); string(f.payload) != want {
			t.Errorf("start at %d was answered %s", o, f.payload)
		}
	}
	for start := id.Offset(2); start <= 4; start++ { // at the tail it waits
		s := l.subscribe(c, subscribeAt("orders", start))
		if got, _, _ := s.events(int(4 - start)); len(got) > 0 && got[0] != []string{"a", "b", "c", "d"}[start] {
			t.Errorf("from %d on: %q", start, got)
		}
	}
}

// Where it begins and where history ends, for those who read offsets, whatever they asked for. Byte by byte.
func TestSubscribedSaysWhereItBeginsAndWhereItIsLive(t *testing.T) {
	x, _ := durable(t, setting{})
	c := x.connect()
	dial(t, c, today()).publish("orders", "a", "b", "c", "d", "e")
	for i, q := range []struct {
		auth *wire.Auth
		ask  *wire.Subscribe
		want string
	}{
		{today(), subscribeTo("orders", wire.StartEarliest), `"start_offset":0,"live_offset":5`},
		{today(), subscribeAt("orders", 3), `"start_offset":3,"live_offset":5`},
		{today(), subscribeTo("orders", wire.StartLatest), `"start_offset":5,"live_offset":5`},
		{today(), &wire.Subscribe{TenantID: tenant, Namespace: namespace, Stream: "orders"}, `"start_offset":5,"live_offset":5`},
		{flags(wire.FlagEventBatchShared), subscribeTo("orders", wire.StartEarliest), ``},
		{nothing(), subscribeTo("orders", wire.StartEarliest), ``},
		{today(), subscribeTo("wide", wire.StartEarliest), ``}, // ephemeral
	} {
		want := fmt.Sprintf(`{"type":"subscribed","subscription_id":%d`, i+1)
		if q.want != "" {
			want += "," + q.want
		}
		if f := dial(t, c, q.auth).ask(q.ask); string(f.payload) != want+"}" {
			t.Errorf("%+v was answered %s, want %s}", q.ask, f.payload, want)
		}
	}
}

// The first event is the one that was asked for, also inside of what was published as one.
func TestASubscriptionBeginsExactlyAtTheOffsetItAskedFor(t *testing.T) {
	x, _ := durable(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	l.publish("orders", "a", "b", "c", "d", "e")
	for start := range id.Offset(5) {
		s := l.subscribe(c, subscribeAt("orders", start))
		f := s.next()
		e, err := wire.DecodeEventBatch(f.flags, f.payload)
		if err != nil || !e.HasOffset || e.BaseOffset != start || e.Count != uint32(5-start) {
			t.Errorf("from %d on: %v, %d events from %d", start, err, e.Count, e.BaseOffset)
		}
		if p, _, _ := e.Next(); !bytes.Equal(p, []byte("abcde")[start:start+1]) {
			t.Errorf("from %d on: %q", start, p)
		}
	}
}

// STR-07: what changes between the look and the registration is told as well, and by type.
func TestASubscribeThatFindsNoPlaceInTheLogSaysWhy(t *testing.T) {
	x, log := durable(t, setting{})
	l := dial(t, x.connect(), today())
	log.fail(&storage.TooOldError{Requested: 0, Oldest: 9})
	if f := l.ask(subscribeAt("orders", 0)); string(f.payload) != `{"type":"subscribe_cursor_error","reason":"too_old","requested":0,"available":9}` {
		t.Errorf("answered %s", f.payload)
	}
	for err, want := range map[error]wire.Code{&storage.ClosedError{Reason: storage.ClosedFailed}: wire.CodeShardUnavailable, errDisk: wire.CodeStorage} {
		log.fail(err)
		if r := refused(t, l.ask(subscribeTo("orders", wire.StartLatest))); r.Code != want || r.Retry != wire.RetryRetry {
			t.Errorf("%v was answered %+v", err, r)
		}
	}
	eventually(t, "no subscription is left", func() bool { return x.metric("felix_subscribers") == 0 })
}
