package client

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// GroupDeadLetters returns the offsets of the records of a shard that the group gave up on, lowest first. Their payloads are in
// the stream, as long as retention keeps them: see Read.
func (c *Client) GroupDeadLetters(ctx context.Context, namespace, stream string, shard uint32, group string) ([]id.Offset, error) {
	k := c.groupCall("list dead letters of", namespace, stream, shard, group)
	k.message = &wire.GroupDeadLetters{GroupTarget: k.target}
	k.require(wire.FeatureGroupDeadLetters, "group_dead_letters")
	answer, err := k.ask(ctx)
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*wire.GroupDeadLetterList)
	if !ok {
		return nil, k.refused(answer)
	}
	return list.Offsets, echoes(k.op, k.target.RequestID, list.RequestID)
}

// GroupDiscard forgets a dead letter. The record stays in the stream. Without an answer the error matches ErrOutcomeUnknown.
func (c *Client) GroupDiscard(ctx context.Context, namespace, stream string, shard uint32, group string, offset id.Offset) error {
	k := c.groupCall(fmt.Sprintf("discard dead letter %s of", offset), namespace, stream, shard, group)
	k.message, k.writes = &wire.GroupDiscard{GroupTarget: k.target, Offset: offset}, true
	k.require(wire.FeatureGroupDeadLetters, "group_discard")
	return k.settle(ctx)
}

// GroupRedrive hands a dead letter out again, as if for the first time. Without an answer the error matches ErrOutcomeUnknown.
func (c *Client) GroupRedrive(ctx context.Context, namespace, stream string, shard uint32, group string, offset id.Offset) error {
	k := c.groupCall(fmt.Sprintf("redrive dead letter %s of", offset), namespace, stream, shard, group)
	k.message, k.writes = &wire.GroupRedrive{GroupTarget: k.target, Offset: offset}, true
	k.require(wire.FeatureGroupDeadLetters, "group_redrive")
	return k.settle(ctx)
}

// GroupSeekOptions say when a group is moved.
type GroupSeekOptions struct {
	// IfNew moves a group only if it has no position and has handed nothing out: to choose where a new one begins.
	IfNew bool
}

// GroupPosition is where a group stands after GroupSeek.
type GroupPosition struct {
	Offset id.Offset
	Moved  bool // false when IfNew found the group
}

// GroupSeek moves a group on one shard, also backwards: the next poll begins there. What it has handed out is void: settling it
// is a *StaleClaimError. Dead letters stay. An offset that the shard does not have is refused, and the error matches
// ErrInvalidRequest. A time is asked for first, see OffsetForTime. Without an answer the error matches ErrOutcomeUnknown.
func (c *Client) GroupSeek(ctx context.Context, namespace, stream string, shard uint32, group string, to Start, o GroupSeekOptions) (GroupPosition, error) {
	k := c.groupCall("seek", namespace, stream, shard, group)
	if k.bad != nil {
		return GroupPosition{}, k.bad
	}
	if to.timed {
		at, found, err := c.OffsetForTime(ctx, namespace, stream, shard, to.since)
		if err != nil {
			return GroupPosition{}, err
		}
		if to = Latest(); found {
			to = At(at)
		}
	}
	k.message, k.writes = &wire.GroupSeek{GroupTarget: k.target, Start: to.start, IfNew: o.IfNew}, true
	k.require(wire.FeatureGroupAdmin, "group_seek")
	answer, err := k.ask(ctx)
	if err != nil {
		return GroupPosition{}, err
	}
	m, ok := answer.(*wire.GroupPosition)
	if !ok {
		return GroupPosition{}, k.refused(answer)
	}
	return GroupPosition{Offset: m.Offset, Moved: m.Moved}, echoes(k.op, k.target.RequestID, m.RequestID)
}

// GroupInfo is how far a group is on one shard.
type GroupInfo struct {
	// Committed is the offset below which everything is finished, with HasCommitted; without it the group has no position yet.
	Committed    id.Offset
	HasCommitted bool
	Tail         id.Offset // the next offset of the shard
	InFlight     uint64    // records handed out and not settled
	Owed         uint64    // records to be handed out again
	DeadLetters  uint64
}

// Lag is how many offsets lie between the end of the shard and what is finished up to. Offsets without a record count, and
// records above Committed that are finished already. It is what the shard holds when the group has no position.
func (i GroupInfo) Lag() uint64 {
	if i.Tail < i.Committed {
		return 0
	}
	return i.Tail.Since(i.Committed)
}

// GroupDescribe asks how far a group is on one shard. A group that nobody polled yet has no position.
func (c *Client) GroupDescribe(ctx context.Context, namespace, stream string, shard uint32, group string) (GroupInfo, error) {
	k := c.groupCall("describe", namespace, stream, shard, group)
	k.message = &wire.GroupDescribe{GroupTarget: k.target}
	k.require(wire.FeatureGroupAdmin, "group_describe")
	answer, err := k.ask(ctx)
	if err != nil {
		return GroupInfo{}, err
	}
	m, ok := answer.(*wire.GroupInfo)
	if !ok {
		return GroupInfo{}, k.refused(answer)
	}
	return GroupInfo{
		Committed: m.Committed.V, HasCommitted: m.Committed.Set, Tail: m.Tail,
		InFlight: m.InFlight, Owed: m.Owed, DeadLetters: m.DeadLetters,
	}, echoes(k.op, k.target.RequestID, m.RequestID)
}

// GroupDelete forgets a group on one shard: its position, its dead letters and what it has handed out. A later poll creates it
// anew. existed is false when there was none. Without an answer the error matches ErrOutcomeUnknown.
func (c *Client) GroupDelete(ctx context.Context, namespace, stream string, shard uint32, group string) (existed bool, err error) {
	k := c.groupCall("delete", namespace, stream, shard, group)
	k.message, k.writes = &wire.GroupDelete{GroupTarget: k.target}, true
	k.require(wire.FeatureGroupAdmin, "group_delete")
	answer, err := k.ask(ctx)
	if err != nil {
		return false, err
	}
	m, ok := answer.(*wire.GroupDeleted)
	if !ok {
		return false, k.refused(answer)
	}
	return m.Existed, echoes(k.op, k.target.RequestID, m.RequestID)
}
