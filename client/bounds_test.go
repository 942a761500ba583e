package client

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// grantedDepth publishes once and returns how many requests that lane may have under way.
func grantedDepth(t *testing.T, o testbroker.Options) int {
	t.Helper()
	o.Streams = map[string]uint32{"ns/s": 1}
	c := connect(t, testbroker.New(t, o))
	if _, err := c.Publish(within(t), "ns", "s", nil); err != nil {
		t.Fatal(err)
	}
	return cap(laneOf(t, c).slots)
}

func TestRequestsUnderWayAreBoundedWhateverTheBrokerGrants(t *testing.T) {
	for name, row := range map[string]struct {
		options testbroker.Options
		want    int
	}{
		"window per stream": {testbroker.Options{Window: 100}, 100},
		"absurd window":     {testbroker.Options{Window: 1<<32 - 1}, laneDepthMax},
		"window of the connection": {testbroker.Options{
			Window: 80, Features: testbroker.DefaultFeatures &^ wire.FeatureStreamPublishWindow}, 80 / DefaultPublishStreams},
		"tiny window of the connection": {testbroker.Options{
			Window: 2, Features: testbroker.DefaultFeatures &^ wire.FeatureStreamPublishWindow}, 1},
		"no window": {testbroker.Options{Features: testbroker.DefaultFeatures &^ wire.FeaturePublishPipeline}, DefaultPublishQueueDepth},
	} {
		if got := grantedDepth(t, row.options); got != row.want {
			t.Errorf("%s: %d requests, want %d", name, got, row.want)
		}
	}
}

func TestEventStreamsAndSubscriptionsThatWaitForEachOtherAreBounded(t *testing.T) {
	noLeaks(t)
	const most = 2
	strays := make(chan *testbroker.Events, most+1)
	opened := 0
	b := scripted(t, func(s *testbroker.Stream, _ *wire.Subscribe) {
		if opened++; opened <= most {
			strays <- s.OpenEvents() // whose, nobody will say
			s.Refuse(wire.Refuse(wire.CodeForbidden, "no"))
			return
		}
		e := s.OpenEventsSilently()
		s.Send(&wire.Subscribed{SubscriptionID: e.ID})
	})
	c := connect(t, b, func(o *Options) { o.EventRouterMaxPending = most })
	for want := 1; want <= most; want++ {
		_, err := c.Subscribe(within(t), "ns", "s", SubscribeOptions{})
		wantIs(t, err, ErrForbidden)
		until(t, "arrival of the hello", func() bool { return waitingFor(c) == want })
	}
	_, err := c.Subscribe(within(t), "ns", "s", SubscribeOptions{})
	wantIs(t, err, ErrLimitExceeded)
	if e := wantAs[*LimitError](t, err); e.Most != most {
		t.Fatalf("%+v", e)
	}
}

func TestRoutesOfAStreamAreBoundedByTheShardsItMayHave(t *testing.T) {
	s := streams{seed: maphash.MakeSeed()}
	e := s.entry("ns", "s")
	for shard := range uint32(3 * wire.MaxShardOwners) {
		e.route(shard)
	}
	if len(e.routes) != wire.MaxShardOwners {
		t.Fatalf("%d routes are remembered", len(e.routes))
	}
}

func TestWhatIsRememberedOfStreamsIsBounded(t *testing.T) {
	s := streams{seed: maphash.MakeSeed()}
	busy := s.entry("ns", "busy")
	if _, err := busy.route(3).enter(within(t), &target{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * streamsMax {
		if s.entry("ns", fmt.Sprint(i)); len(s.byName) > streamsMax {
			t.Fatalf("%d streams are remembered, the bound is %d", len(s.byName), streamsMax)
		}
	}
	if s.entry("ns", "busy") != busy {
		t.Fatal("a stream with a publish under way was forgotten, and with it the order of what follows")
	}
}
