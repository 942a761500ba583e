package client

import (
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
	return fmt.Sprintf("%s: subscription lost: %v: subscribe again after the last event received", e.Op, e.Err)
}

// Unwrap gives the cause.
func (e *SubscriptionLostError) Unwrap() error { return e.Err }

// Is matches ErrConnectionLost.
func (e *SubscriptionLostError) Is(target error) bool { return target == ErrConnectionLost }

// SubscriptionLaggedError is the end of a subscription whose reader was too slow for the broker's queue. Resume after the
// last event received; ResumeFrom is for a reader that received none.
type SubscriptionLaggedError struct {
	Op         string
	ResumeFrom id.Offset
}

// Error says where to resume.
func (e *SubscriptionLaggedError) Error() string {
	return fmt.Sprintf("%s: the reader fell behind and the broker ended the subscription: resume after the last event received, or from offset %s if there was none",
		e.Op, e.ResumeFrom)
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
