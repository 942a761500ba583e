package client

import (
	"errors"
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// CursorError says that a subscription cannot start at the offset asked for.
type CursorError struct {
	Op        string
	Reason    wire.CursorReason
	Requested id.Offset
	Available id.Offset // nearest that can be had: the oldest record kept, or the end of the log
}

// Error gives both offsets.
func (e *CursorError) Error() string {
	if e.Reason == wire.CursorInFuture {
		return fmt.Sprintf("%s: offset %s is past the end, which is at %s", e.Op, e.Requested, e.Available)
	}
	return fmt.Sprintf("%s: offset %s is gone, the oldest record kept is %s", e.Op, e.Requested, e.Available)
}

// SubscriptionLostError says that the stream of a subscription broke: events may be missing after the last one received.
// It is never the end the broker chose, which is io.EOF.
type SubscriptionLostError struct {
	Op  string
	Err error
}

// Error gives the cause and what to do.
func (e *SubscriptionLostError) Error() string {
	advice := "subscribe again after the last event received"
	if errors.Is(e.Err, ErrNotFound) {
		advice = "what it read is gone, or another of its name is yet to be made"
	}
	return fmt.Sprintf("%s: subscription lost: %v: %s", e.Op, e.Err, advice)
}

// Unwrap gives the cause.
func (e *SubscriptionLostError) Unwrap() error { return e.Err }

// Is matches ErrConnectionLost.
func (e *SubscriptionLostError) Is(target error) bool { return target == ErrConnectionLost }

// SubscriptionLaggedError is the end of an event stream whose reader was too slow for the queue at the broker, or for the
// one of this client. Resume after the last event received; ResumeFrom is for a reader that received none.
type SubscriptionLaggedError struct {
	Op         string
	ResumeFrom id.Offset
	Local      bool // it was this client's queue
}

// Error says where to resume.
func (e *SubscriptionLaggedError) Error() string {
	whose := "the broker's"
	if e.Local {
		whose = "the client's"
	}
	return fmt.Sprintf("%s: the reader fell behind and %s queue was full: resume after the last event received, or from offset %s if there was none",
		e.Op, whose, e.ResumeFrom)
}

// ShardMovedError is the end of a subscription whose shard goes to another broker. All that the old owner had queued was
// delivered before it.
type ShardMovedError struct {
	Op         string
	ResumeFrom wire.Opt[id.Offset] // first offset not offered to this reader; unset on in-memory streams
	NodeID     string              // of the new owner, a hint; may be empty
	Addr       string              // "IP:port" of the new owner, a hint; may be empty
	Generation id.Generation
}

// Error names the new owner.
func (e *ShardMovedError) Error() string {
	if e.Addr == "" {
		return fmt.Sprintf("%s: the shard moved to another broker: subscribe again", e.Op)
	}
	return fmt.Sprintf("%s: the shard moved to broker %s at %s: subscribe again there", e.Op, e.NodeID, e.Addr)
}

// ShardError is an error of one shard of a merged subscription. The other shards go on.
type ShardError struct {
	Shard uint32
	Err   error
}

// Error names the shard.
func (e *ShardError) Error() string { return fmt.Sprintf("shard %d: %v", e.Shard, e.Err) }

// Unwrap gives the shard's error.
func (e *ShardError) Unwrap() error { return e.Err }

// SubscribeAllError says which shards of a whole stream could not be reached. None is read.
type SubscribeAllError struct {
	Op     string
	Shards []*ShardError // at least one, in shard order
}

// Error gives the first shard's error and counts the others.
func (e *SubscribeAllError) Error() string {
	if more := len(e.Shards) - 1; more > 0 {
		return fmt.Sprintf("%s: %v (and %d more shards failed)", e.Op, e.Shards[0], more)
	}
	return fmt.Sprintf("%s: %v", e.Op, e.Shards[0])
}

// Unwrap gives the errors of all shards.
func (e *SubscribeAllError) Unwrap() []error {
	errs := make([]error, len(e.Shards))
	for i, s := range e.Shards {
		errs[i] = s
	}
	return errs
}
