package shardcore

import (
	"time"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// role is what a replica is at the moment. Each role has only the state it needs, and answers for itself what a write
// gets. Roles that hold keep the data lane closed; what reaches them all the same (it was in the turn that closed it)
// waits in held, for a bounded time.
//
//sumtype:decl
type role interface {
	name() string
	// refusal is what a write gets in this role; nil means it is claimed, or held if holds() says so.
	refusal() *wire.Refusal
	holds() bool
}

// opening waits for its logs to be opened, and then for its generation to be saved: save is the number of that Save, and retry when it
// is tried again after it failed; zero each if it is not so.
type opening struct {
	generation id.Generation
	recovered  bool
	save       uint64
	retry      time.Duration
}

// leading claims, answers and serves.
type leading struct{ generation id.Generation }

// draining finishes what was claimed and takes nothing more; done is set once Drained was said.
type draining struct{ done bool }

// following takes records from a leader. It serves nothing.
type following struct{ leader string }

// fencing waits for its predecessors to be out of the way before it may lead.
type fencing struct{}

// waitingForDisk holds writes while the disk does not answer, and shows what is committed; generation is the one it goes on leading at.
type waitingForDisk struct{ generation id.Generation }

// damaged refuses: what it holds is known to be bad.
type damaged struct{ reason string }

// failed refuses: its log acknowledges nothing any more, until it is opened anew.
type failed struct{ reason string }

// closed refuses: this replica is over.
type closed struct{ reason string }

func (opening) name() string        { return "opening" }
func (leading) name() string        { return "leading" }
func (draining) name() string       { return "draining" }
func (following) name() string      { return "following" }
func (fencing) name() string        { return "fencing" }
func (waitingForDisk) name() string { return "waiting_for_disk" }
func (damaged) name() string        { return "damaged" }
func (failed) name() string         { return "failed" }
func (closed) name() string         { return "closed" }

func (opening) holds() bool        { return true }
func (leading) holds() bool        { return false }
func (draining) holds() bool       { return false }
func (following) holds() bool      { return false }
func (fencing) holds() bool        { return true }
func (waitingForDisk) holds() bool { return true }
func (damaged) holds() bool        { return false }
func (failed) holds() bool         { return false }
func (closed) holds() bool         { return false }

func (opening) refusal() *wire.Refusal { return nil }
func (leading) refusal() *wire.Refusal { return nil }
func (draining) refusal() *wire.Refusal {
	return unavailable("moving", "the shard is being handed over; repeat the request")
}
func (r following) refusal() *wire.Refusal {
	f := wire.Refuse(wire.CodeNotLeader, "this replica follows "+r.leader+"; send the request there")
	return &f
}
func (fencing) refusal() *wire.Refusal        { return nil }
func (waitingForDisk) refusal() *wire.Refusal { return nil }
func (r damaged) refusal() *wire.Refusal {
	return unavailable("not_ready", "the shard's data is damaged and must be repaired by an operator: "+r.reason)
}
func (r failed) refusal() *wire.Refusal {
	f := wire.Refuse(wire.CodeStorage, "the shard's log failed and takes no writes until it is opened anew, nothing was written: "+r.reason)
	f.Retry = wire.RetryAfter
	f.RetryAfterMS = fullRetryMS
	return &f
}
func (r closed) refusal() *wire.Refusal {
	return unavailable("not_ready", "the shard is closed: "+r.reason)
}

// overloaded refuses because a bound of the shard is reached; nothing was done.
func overloaded(message string) *wire.Refusal {
	f := wire.Refuse(wire.CodeOverloaded, message)
	f.Reason, f.RetryAfterMS = wire.ReasonPublishQueueFull, 50
	return &f
}

// unavailable refuses for now; nothing was done.
func unavailable(reason, message string) *wire.Refusal {
	f := wire.Refuse(wire.CodeShardUnavailable, message)
	f.Reason = reason
	return &f
}
