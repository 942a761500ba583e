package sessionactor

import (
	"testing"

	"github.com/felixd/felixd/storage"
	"github.com/felixd/felixd/wire"
)

// A client may send a publish and a subscribe one after the other. Under block the answer of the publish may wait for a slow reader; if the
// subscription began all the same, its client, which knows nothing of it yet, would be the next slow reader, and the publish that its
// answer waits for might wait for it.
func TestASubscriptionBeginsWhenItsAnswerCanLeave(t *testing.T) {
	x := open(t, setting{policy: storage.Block})
	slow := x.stalled(asking("orders", wire.StartLatest, 1))
	c := x.connect()
	l := dial(t, c, today())
	records := numbered(0, 3)
	l.publish("orders", records[0])
	l.raw(batchTo("orders", 2, wire.AckPerBatch, records[1])) // waits for the slow reader
	l.send(asking("orders", wire.StartLatest, 1))
	l.send(asking("orders", wire.StartLatest, 1))
	eventually(t, "both are being set up", func() bool { return x.metric("felix_subscribers") == 3 })
	dial(t, x.connect(), today()).raw(batchTo("orders", 3, wire.AckPerBatch, records[2]))
	eventually(t, "two publishes wait", func() bool { n, _ := x.opts.Admission.InUse(); return n == 2 })
	if n := len(x.log().Cursors(0, 9)); n != 1 {
		t.Fatalf("%d readers, want the slow one alone", n)
	}
	slow.events(3)
	if f := l.next(); f.ack.RequestID != 2 || f.ack.Refusal != nil {
		t.Fatalf("the publish was answered %+v", f.ack)
	}
	for range 2 {
		if f := l.next(); f.message.MessageType() != "subscribed" {
			t.Fatalf("the subscribe was answered %q", f.payload)
		}
	}
	l.publish("orders", "both")
	for range 2 {
		h := want(t, c.toClient, "an event stream")
		s := subscription{line: &line{t: t, s: h, h: h}}
		s.next()
		if got, _, _ := s.events(1); got[0] != "both" {
			t.Errorf("got %.6q", got)
		}
	}
}

// STR-06: what became of the shard while a subscribe waited is what counts when its turn comes.
func TestASubscribeIsServedByWhatTheShardIsWhenItsTurnComes(t *testing.T) {
	x := open(t, setting{policy: storage.Block})
	x.stalled(asking("orders", wire.StartLatest, 1))
	c := x.connect()
	one, two := dial(t, c, today()), dial(t, c, today())
	one.publish("orders", numbered(0, 1)[0])
	for _, l := range []*line{one, two} {
		l.raw(batchTo("orders", 2, wire.AckPerBatch, "waits"))
		l.send(asking("orders", wire.StartLatest, 1))
	}
	eventually(t, "both are being set up", func() bool { return x.metric("felix_subscribers") == 3 })
	x.crash("shards/1") // answers the publishes as unknown; another incarnation takes its place
	for _, l := range []*line{one, two} {
		if f := refused(t, l.next()); f.Retry != wire.RetryOutcomeUnknown {
			t.Errorf("the publish was answered %+v", f)
		}
		for f := l.next(); f.message.MessageType() != "subscribed"; f = l.ask(asking("orders", wire.StartLatest, 1)) {
			if r := refused(t, f); r.Code != wire.CodeShardUnavailable || r.Reason != wire.ReasonNotReady {
				t.Fatalf("the subscribe was answered %+v", r)
			}
		}
	}
	dial(t, x.connect(), today()).publish("orders", "of the next one")
	for heard := 0; heard < 2; heard++ {
		h := want(t, c.toClient, "an event stream")
		s := subscription{line: &line{t: t, s: h, h: h}}
		if _, err := s.read(); err != nil { // of a subscribe that was refused
			heard--
			continue
		}
		if got, _, _ := s.events(1); got[0] != "of the next one" {
			t.Errorf("got %.20q", got)
		}
	}
}

// Nobody hears the answer of a subscribe whose stream has gone: there is no subscription that nobody knows of.
func TestASubscribeWhoseStreamIsGoneBeforeItsTurnIsNoSubscription(t *testing.T) {
	x := open(t, setting{policy: storage.Block})
	slow := x.stalled(asking("orders", wire.StartLatest, 1))
	c := x.connect()
	l := dial(t, c, today())
	l.publish("orders", numbered(0, 1)[0])
	l.raw(batchTo("orders", 2, wire.AckPerBatch, "waits"))
	l.send(asking("orders", wire.StartLatest, 1))
	eventually(t, "it is being set up", func() bool { return x.metric("felix_subscribers") == 2 })
	l.w.CancelWrite()
	eventually(t, "it is no subscription", func() bool { return x.metric("felix_subscribers") == 1 })
	slow.events(2)
	if n := len(x.log().Cursors(0, 9)); n != 1 {
		t.Errorf("%d readers, want the slow one alone", n)
	}
	x.balanced()
}
