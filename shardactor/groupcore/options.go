package groupcore

import "time"

// Options bounds one group of one shard.
type Options struct {
	Group string // at most MaxGroupBytes
	// Visibility is how long a claim stands when a poll names no time, MaxVisibility the most a poll, an extend or a delay may ask for.
	Visibility    time.Duration
	MaxVisibility time.Duration // not below Visibility
	MaxWait       time.Duration // the most a poll waits
	// MaxInFlight is how many records may be claimed, delayed or reserved; at it polls get nothing. New records are handed out only when
	// none is owed, so that it bounds what is unfinished, too.
	MaxInFlight int
	// Rationed says that more than FreeClaims records are in play only as far as Granted has room for them, see Claims.
	Rationed bool
	// Counted says that what the group keeps is held within a budget of the node, see NewKept.
	Counted bool
	// MaxAttempts is how many failures a record may have before it is a dead letter, and the highest number in an answer. 0: no limit.
	MaxAttempts uint32
	// BackOff is the pause after the first failure, the second and so on; the last one is for all that follow. Empty: none.
	BackOff []time.Duration
	// MaxDeadLetters bounds what the group gave up on. A record that would be one more is parked and tried again after each ParkedRetry;
	// a request to give up on one is refused.
	MaxDeadLetters int
	ParkedRetry    time.Duration
	// MaxPolls bounds the polls that wait or whose records are being read.
	MaxPolls int
	// MaxUnwritten bounds the changed keys that wait for a Persist, and the settlements that wait for an answer.
	MaxUnwritten int
	// WriteRetry is the pause after a Persist that failed. Meanwhile nothing is handed out or settled.
	WriteRetry time.Duration
	// IdleAfter is how long a group is untouched before the effect Idle.
	IdleAfter time.Duration
}

// DefaultOptions are the settings of a group, as a broker without other settings has them. 10,000 in flight cost about 2 MiB; as many dead
// letters as ten times that are 18 MiB, with their keys. 16,384 polls are the waits of a thousand workers with a few shards each, about 4 MiB.
// 8192 unwritten keys make a batch of at most 2.5 MiB with the longest name.
func DefaultOptions(group string) Options {
	return Options{
		Group: group, Visibility: 30 * time.Second, MaxVisibility: 12 * time.Hour, MaxWait: 30 * time.Second,
		MaxInFlight: 10_000, MaxAttempts: 5, BackOff: []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second},
		MaxDeadLetters: 100_000, ParkedRetry: time.Minute, MaxPolls: 16_384, MaxUnwritten: 8192, WriteRetry: time.Second,
		IdleAfter: 10 * time.Minute,
	}
}

// verify panics on options that no broker has: whoever reads settings refuses those first.
func (o *Options) verify() {
	if len(o.Group) > MaxGroupBytes || o.Visibility <= 0 || o.MaxVisibility < o.Visibility || o.MaxInFlight < 1 || o.MaxPolls < 1 ||
		o.MaxUnwritten < 1 || o.WriteRetry <= 0 || o.ParkedRetry <= 0 || o.IdleAfter <= 0 || o.MaxDeadLetters < 0 || o.MaxWait < 0 {
		panic("groupcore: options out of range")
	}
}

// backOff is the pause after so many failures.
func (o *Options) backOff(failures uint32) time.Duration {
	if len(o.BackOff) == 0 || failures == 0 {
		return 0
	}
	return o.BackOff[min(int(failures), len(o.BackOff))-1]
}

// visible is how long a claim stands for which d was asked for.
func (o *Options) visible(d time.Duration) time.Duration {
	if d <= 0 {
		d = o.Visibility
	}
	return min(d, o.MaxVisibility)
}
