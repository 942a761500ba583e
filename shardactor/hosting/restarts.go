package hosting

import "time"

// Restarts decides when a failed shard comes up again. It is told the time and keeps none of its own.
//
// A shard that fails is brought up at once: its state is gone or on disk, and its clients wait. Three failures within a
// minute mean that it will fail again, so it is quarantined and tried after 1, 2, 4 ... 30 minutes.
type Restarts struct {
	failures []time.Time
	strikes  int
}

const (
	restartWindow   = time.Minute
	restartFailures = 3
	quarantineFirst = time.Minute
	// QuarantineMax is the longest that a shard is left alone.
	QuarantineMax = 30 * time.Minute
)

// Failed notes a failure and returns when to bring the shard up again: at now, or later when it is quarantined.
func (r *Restarts) Failed(now time.Time) (at time.Time, quarantined bool) {
	recent := r.failures[:0]
	for _, f := range r.failures {
		if now.Sub(f) < restartWindow {
			recent = append(recent, f)
		}
	}
	r.failures = append(recent, now)
	if len(r.failures) < restartFailures {
		return now, false
	}
	r.failures = r.failures[:0]
	wait := min(quarantineFirst<<r.strikes, QuarantineMax)
	if wait < QuarantineMax {
		r.strikes++
	}
	return now.Add(wait), true
}
