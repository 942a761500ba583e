package clientguide

import "testing"

// The same programs run on connections apart for publishes, events and cache requests.
//
// mission 355
func TestWhatTheGuideShowsRunsOnPooledConnections(t *testing.T) {
	s := begin(t)
	s.options = s.options.Pooled()
	c := s.client()
	sub, err := readWhatIsNew(s.ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if _, err := c.Publish(s.ctx, "default", "ticks", []byte("now")); err != nil {
		t.Fatal(err)
	}
	if e, err := sub.Next(s.ctx); err != nil || string(e.Payload) != "now" {
		t.Errorf("read %q, %v", e.Payload, err)
	}
	for name, f := range map[string]func() error{
		"publish one": func() error { return publishOne(s.ctx, c) }, "publish many": func() error { return publishMany(s.ctx, c, [][]byte{[]byte("a"), []byte("b")}) },
		"cache": func() error { return useCache(s.ctx, c) },
	} {
		if err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := s.broker.Metric("felix_client_connections"); err != nil || n < 3 {
		t.Errorf("%v connections are open, %v; want one at least for each of the three", n, err)
	}
}
