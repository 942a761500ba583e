package main

import (
	"testing"
	"time"
)

// A time to live counts from the put, over a restart: what ended while nobody served is gone, what had not is there until its own end.
//
// mission 233
func TestATimeToLiveGoesOnWhileTheDaemonIsDown(t *testing.T) {
	t.Parallel()
	const short, long, down = 100 * time.Millisecond, 1500 * time.Millisecond, 500 * time.Millisecond
	r := start(t, t.TempDir())
	c := r.connect(t)
	putOnce(t, c, "users", "warm", "up")
	sent := time.Now()
	for key, ttl := range map[string]time.Duration{"short": short, "long": long} {
		if err := c.CachePut(t.Context(), devNamespace, "users", key, []byte("v"), ttl); err != nil {
			t.Fatal(err)
		}
	}
	answered := time.Now()
	stopped(t, r, c)
	pause(t.Context(), time.Until(answered.Add(down)))

	r = start(t, r.dir)
	c = r.connect(t)
	holds(t, c, "users", "short", "")
	got, found, err := c.CacheGet(t.Context(), devNamespace, "users", "long")
	if intime := time.Since(sent) < long; intime && (err != nil || !found || string(got) != "v") {
		t.Errorf("before its end there is %q, %v, %v", got, found, err)
	}
	pause(t.Context(), time.Until(answered.Add(long+2*time.Millisecond))) // half a second before it would end if it had begun anew
	holds(t, c, "users", "long", "")
	stopped(t, r, c)
}
