package hosting

import (
	"testing"
	"time"
)

func TestRestartPolicy(t *testing.T) {
	var r Restarts
	now := time.UnixMilli(0)
	want := []struct {
		after       time.Duration
		wait        time.Duration
		quarantined bool
	}{
		{0, 0, false}, {time.Second, 0, false}, {time.Second, time.Minute, true},
		{time.Minute, 0, false}, {0, 0, false}, {0, 2 * time.Minute, true},
		{2 * time.Minute, 0, false}, {61 * time.Second, 0, false}, {61 * time.Second, 0, false}, // spread out: never quarantined
	}
	for i, x := range want {
		now = now.Add(x.after)
		at, quarantined := r.Failed(now)
		if at.Sub(now) != x.wait || quarantined != x.quarantined {
			t.Fatalf("failure %d: wait %s, quarantined %v; want %s, %v", i, at.Sub(now), quarantined, x.wait, x.quarantined)
		}
	}
	for range 30 {
		r.Failed(now)
	}
	if at, _ := func() (time.Time, bool) { r.Failed(now); r.Failed(now); return r.Failed(now) }(); at.Sub(now) > QuarantineMax {
		t.Fatalf("a quarantine of %s", at.Sub(now))
	}
}
