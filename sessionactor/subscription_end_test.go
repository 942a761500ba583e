package sessionactor

import (
	"testing"

	"github.com/felixd/felixd/wire"
)

// The table of Subscription promises it: its pump must not go on without the actor that supervises it.
func TestASubscriptionThatFailsEndsItsEventStream(t *testing.T) {
	x := open(t, setting{})
	c := x.connect()
	l := dial(t, c, today())
	s := l.subscribe(c, subscribeTo("orders", wire.StartLatest))
	if err := x.sys.Faults().Crash("sessions/1/sub/1"); err != nil {
		t.Fatal(err)
	}
	if f, err := s.read(); err == nil {
		t.Fatalf("the event stream goes on with %q", f.payload)
	}
	eventually(t, "no subscription is counted", func() bool { return x.metric("felix_subscribers") == 0 })
	l.publish("orders", "after")
	again := l.subscribe(c, subscribeTo("orders", wire.StartEarliest))
	if got, _, _ := again.events(1); got[0] != "after" {
		t.Errorf("got %q", got)
	}
	if c.ctx.Err() != nil {
		t.Error("the connection was closed for it")
	}
}
