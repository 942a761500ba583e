package client

import (
	"fmt"
	"testing"

	"github.com/felixd/felixd/client/testbroker"
	"github.com/felixd/felixd/wire"
)

// depthOf publishes once and returns how many requests that lane may have under way.
func depthOf(t *testing.T, o testbroker.Options) int {
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
		"no window": {testbroker.Options{Features: testbroker.DefaultFeatures &^ wire.FeaturePublishPipeline}, laneDepth},
	} {
		if got := depthOf(t, row.options); got != row.want {
			t.Errorf("%s: %d requests, want %d", name, got, row.want)
		}
	}
}

func TestWhatIsRememberedOfStreamsIsBounded(t *testing.T) {
	var w widthCache
	for i := range 3 * widthsMax {
		if w.entry("ns", fmt.Sprint(i)); len(w.streams) > widthsMax {
			t.Fatalf("%d streams are remembered, the bound is %d", len(w.streams), widthsMax)
		}
	}
	first := w.entry("ns", "same")
	if again := w.entry("ns", "same"); again != first {
		t.Fatal("one stream has two entries")
	}
}
