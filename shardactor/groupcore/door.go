package groupcore

import (
	"fmt"
	"slices"
	"time"

	"github.com/felixd/felixd/wire"
)

// Door is what lies between the requests of all groups of one shard and these groups, with the logs that they share: it decides when the logs
// are opened and when again after a failure, which group at rest is let go of, who is let in, and who waits for that and until when. It is not
// safe for concurrent use: the shard's actor owns it.
//
//  1. somebody waits only while the logs are being opened, or for a group that was let go of to be over: the next one answers;
//  2. at most MaxWaiting wait, for whatever, and what they take is at most MaxBytes, unless it is one alone;
//  3. whoever waits is answered at the moment named for it at the latest: no end of a wait is before due.
type Door struct {
	opts    DoorOptions
	stage   doorStage
	waiting []visitor // in the order they came
	bytes   int       // that they take
	due     time.Duration
	reason  string        // why the logs are not open, the last time
	lasting bool          // and nothing that this process does will help
	again   time.Duration // when they are opened again after a failure; never otherwise
	tries   int           // failures since they were open, as far as they lengthen the pause
	groups  map[string]*running
	leaving int // of groups, those that were let go of
}

// DoorOptions bounds who waits in front of a Door.
type DoorOptions struct {
	// MaxWaiting and MaxBytes bound the requests that wait; one beyond either is refused as overloaded.
	MaxWaiting int
	MaxBytes   int
	// Patience is how long a request waits that names no time of its own; MaxWait is the most that a poll waits which does.
	Patience time.Duration
	MaxWait  time.Duration
	// Retry is the pause after the first failed opening; it doubles with each that follows, up to MaxRetry.
	Retry    time.Duration
	MaxRetry time.Duration
}

// DefaultDoorOptions are the bounds of a shard: 1024 requests or 1 MiB, which is what the mailbox of one group holds, since all of them may
// be for one and are let in at once. 2 s is the patience that a shard has with a role that passes. What is in the way of an opening, a full
// disk say, is nothing that goes by in an instant.
func DefaultDoorOptions() DoorOptions {
	return DoorOptions{
		MaxWaiting: 1024, MaxBytes: 1 << 20, Patience: 2 * time.Second, MaxWait: 30 * time.Second, Retry: time.Second, MaxRetry: time.Minute,
	}
}

type doorStage uint8

const (
	doorShut doorStage = iota // nobody asked yet
	doorOpening
	doorOpen
	doorFailed
)

// Visit is a request in front of a Door. Request is the shell's, and is not looked into.
type Visit struct {
	Request any
	Bytes   int // what it takes in memory
	Group   string
	// Conn and Wait are those of a poll. After it was let in, Wait is what is left of it.
	Poll bool
	Conn Conn
	Wait time.Duration
}

type visitor struct {
	Visit
	until time.Duration
}

// Admission is what becomes of a Visit: it is let in, or refused, or it waits. Open asks for the logs to be opened; Opened or Failed is the
// answer.
type Admission struct {
	In      bool
	Refusal *wire.Refusal
	Open    bool
}

// NewDoor returns the door of a shard whose logs nobody has opened yet.
func NewDoor(o DoorOptions) *Door {
	if o.MaxWaiting < 1 || o.MaxBytes < 1 || o.Patience <= 0 || o.MaxWait < 0 || o.Retry <= 0 || o.MaxRetry < o.Retry {
		panic("groupcore: the options of a door are out of range")
	}
	return &Door{opts: o, due: never, again: never}
}

// Open reports whether requests are let in.
func (d *Door) Open() bool { return d.stage == doorOpen }

// Began says that the logs are being opened, although nobody asked: they are there, and are opened with the shard.
func (d *Door) Began() {
	if d.stage == doorShut {
		d.stage = doorOpening
	}
}

// Visit takes a request at the monotonic time now.
func (d *Door) Visit(now time.Duration, v Visit) Admission {
	switch {
	case d.stage == doorOpen && !d.leaves(v.Group):
		return Admission{In: true}
	case d.stage == doorFailed:
		f := d.failure(now)
		return Admission{Refusal: &f}
	case len(d.waiting) >= d.opts.MaxWaiting || d.bytes+v.Bytes > d.opts.MaxBytes && len(d.waiting) > 0:
		f := wire.Refuse(wire.CodeOverloaded, "too many requests wait for groups of this shard to be brought up; repeat the request").
			WithReason(wire.ReasonPublishQueueFull, doorPause)
		return Admission{Refusal: &f}
	}
	x := visitor{Visit: v, until: now + d.opts.Patience}
	if v.Poll && v.Wait > 0 {
		x.until = now + min(v.Wait, d.opts.MaxWait)
	}
	d.waiting = append(d.waiting, x)
	d.bytes += v.Bytes
	d.due = min(d.due, x.until)
	begin := d.stage == doorShut
	if begin {
		d.stage = doorOpening
	}
	return Admission{Open: begin}
}

// doorPause is how long a request that found no room is told to wait, in milliseconds.
const doorPause = 50

// failure is what a request gets while the logs can't be used. Nothing was done for it.
func (d *Door) failure(now time.Duration) wire.Refusal {
	f := wire.Refuse(wire.CodeStorage, "the groups' logs can't be used, nothing was done, the stream itself goes on: "+d.reason)
	f.Retry, f.RetryAfterMS = wire.RetryAfter, uint64(doorFailedPause.Milliseconds())
	if d.again != never {
		f.RetryAfterMS = uint64(max(d.again-now, doorPause*time.Millisecond).Milliseconds())
	}
	return f
}

// doorFailedPause is how long a request is told to wait when only an operator, or a new process, can help.
const doorFailedPause = time.Second

// Opened says that the logs can be used. It returns who waited for that, in the order they came, to be let in.
func (d *Door) Opened(now time.Duration) (list []Visit) {
	if d.stage == doorOpen {
		return nil
	}
	d.stage, d.reason, d.lasting, d.again, d.tries = doorOpen, "", false, never, 0
	return letIn(now, d.take(func(x *visitor) bool { return !d.leaves(x.Group) }))
}

// letIn is what there is to be done for visitors now, with what is left of the waits of polls.
func letIn(now time.Duration, list []visitor) []Visit {
	out := visits(list)
	for i := range out {
		if v := &out[i]; v.Poll {
			v.Wait = max(0, min(v.Wait, list[i].until-now))
		}
	}
	return out
}

// Failed says that the logs could not be opened, or that one that was open has failed; lasting, that nothing which this process does will
// help. It returns who waited, and what they are refused with.
func (d *Door) Failed(now time.Duration, reason string, lasting bool) ([]Visit, wire.Refusal) {
	d.reason, d.lasting = reason, d.lasting || lasting
	if d.stage != doorFailed {
		d.again = now + min(d.opts.Retry<<d.tries, d.opts.MaxRetry)
		if d.opts.Retry<<d.tries < d.opts.MaxRetry {
			d.tries++
		}
	}
	if d.stage = doorFailed; d.lasting {
		d.again = never
	}
	return visits(d.takeAll()), d.failure(now)
}

// Wake does what is due: it returns whose wait is over, what they are refused with, and whether the logs are to be opened again.
func (d *Door) Wake(now time.Duration) (over []Visit, f wire.Refusal, open bool) {
	if d.stage == doorFailed && d.again <= now {
		d.stage, d.again, open = doorOpening, never, true
	}
	if d.due > now {
		return nil, f, open
	}
	over = visits(d.take(func(x *visitor) bool { return x.until <= now }))
	f = wire.Refuse(wire.CodeShardUnavailable, "the group was not brought up in time, nothing was done; repeat the request")
	f.Reason = wire.ReasonNotReady
	return over, f, open
}

// Deadline is when Wake has to be called at the latest; false if never.
func (d *Door) Deadline() (at time.Duration, ok bool) {
	at = min(d.due, d.again)
	return at, at != never
}

// Gone says that a connection that polled a group is closed. It returns its polls that waited.
func (d *Door) Gone(group string, conn Conn) []Visit {
	return visits(d.take(func(x *visitor) bool { return x.Poll && x.Conn == conn && x.Group == group }))
}

// Close returns everybody who waits: the shard ends.
func (d *Door) Close() []Visit { return visits(d.takeAll()) }

func (d *Door) takeAll() []visitor { return d.take(func(*visitor) bool { return true }) }

// take takes those out that which says.
func (d *Door) take(which func(*visitor) bool) (out []visitor) {
	kept := d.waiting[:0]
	d.due = never
	for i := range d.waiting {
		if x := d.waiting[i]; which(&x) {
			out = append(out, x)
			d.bytes -= x.Bytes
		} else {
			kept = append(kept, x)
			d.due = min(d.due, x.until)
		}
	}
	clear(d.waiting[len(kept):])
	if d.waiting = kept; len(kept) == 0 {
		d.waiting = nil // a burst is over
	}
	return out
}

func visits(list []visitor) []Visit {
	out := make([]Visit, len(list))
	for i := range list {
		out[i] = list[i].Visit
	}
	return slices.Clip(out)
}

// check verifies the invariants.
func (d *Door) check() error {
	bytes, due := 0, never
	for i := range d.waiting {
		bytes += d.waiting[i].Bytes
		due = min(due, d.waiting[i].until)
	}
	switch n := len(d.waiting); {
	case n > 0 && d.stage != doorOpening && slices.ContainsFunc(d.waiting, func(x visitor) bool { return !d.leaves(x.Group) }):
		return fmt.Errorf("%d wait in stage %d, not all of them for groups that were let go of", n, d.stage)
	case d.leaving > len(d.groups):
		return fmt.Errorf("%d of %d groups were let go of", d.leaving, len(d.groups))
	case bytes != d.bytes || n > d.opts.MaxWaiting || n > 1 && bytes > d.opts.MaxBytes:
		return fmt.Errorf("%d wait with %d bytes, %d are counted", n, bytes, d.bytes)
	case due != d.due:
		return fmt.Errorf("the first wait ends at %v, not at %v", due, d.due)
	case d.again != never && (d.stage != doorFailed || d.lasting):
		return fmt.Errorf("an opening is due in stage %d, lasting %v", d.stage, d.lasting)
	case d.stage == doorFailed && d.again == never && !d.lasting:
		return fmt.Errorf("a failure that may pass is not tried again")
	}
	return nil
}
