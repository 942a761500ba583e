package client

import (
	"context"
	"fmt"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// Change is one change of an entity's state.
type Change struct{ change wire.Change }

// Put sets a key. The value is not kept.
func Put(key string, value []byte) Change { return Change{wire.Change{Key: key, Value: value}} }

// Delete removes a key.
func Delete(key string) Change { return Change{wire.Change{Key: key, Delete: true}} }

// Commit appends an event to a durable stream and applies changes to the state of an entity, together or not at all, and
// returns the event's offset. The entity's key chooses the shard. Subscribers get the event like any other record. When no
// answer came, the error matches ErrOutcomeUnknown; it is never sent again then.
func (c *Client) Commit(ctx context.Context, namespace, stream string, entity, event []byte, changes ...Change) (id.Offset, error) {
	return c.commit(ctx, namespace, stream, entity, event, wire.Opt[id.Offset]{}, changes)
}

// CommitIf is Commit if the event gets the expected offset: if nothing was appended to the whole shard since the caller
// looked. Otherwise nothing is written and the error is an *OffsetMismatchError.
func (c *Client) CommitIf(ctx context.Context, namespace, stream string, expected id.Offset, entity, event []byte, changes ...Change) (id.Offset, error) {
	return c.commit(ctx, namespace, stream, entity, event, wire.Some(expected), changes)
}

func (c *Client) commit(ctx context.Context, namespace, stream string, entity, event []byte, expected wire.Opt[id.Offset], changes []Change) (id.Offset, error) {
	op := fmt.Sprintf("commit to %s/%s", namespace, stream)
	m := &wire.Commit{
		TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream, EntityKey: entity, Event: event,
		RequestID: c.requestID.Add(1), ExpectedOffset: expected,
	}
	if err := checkEntity(op, namespace, stream, entity); err != nil {
		return 0, err
	}
	for _, change := range changes {
		if problem := cacheKeyProblem(change.change.Key); problem != "" {
			return 0, &ArgumentError{Op: op, Argument: "key of a change", Problem: problem}
		}
		m.Changes = append(m.Changes, change.change)
	}
	q := &oneShot{op: op, needs: wire.FeatureAtomicCommit, feature: "commit", message: m, writes: true}
	if expected.Set {
		q.needs, q.feature = q.needs|wire.FeaturePublishConditional, "conditional commit"
	}
	answer, err := c.write(ctx, namespace, stream, entity, true, q)
	if err != nil {
		return 0, err
	}
	switch a := answer.(type) {
	case *wire.CommitOK:
		return a.Offset, echoes(op, m.RequestID, a.RequestID)
	case *wire.PublishRefused:
		return 0, conditionError(op, a, expected.V)
	}
	return 0, refusalOf(op, answer)
}

func checkEntity(op, namespace, stream string, entity []byte) error {
	if len(entity) > wire.MaxKeyBytes {
		return &ArgumentError{Op: op, Argument: "entity", Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(entity), wire.MaxKeyBytes)}
	}
	return checkNames(op, namespace, "stream", stream)
}

// State is one key of an entity's state.
type State struct {
	Value []byte // belongs to the receiver
	Found bool   // there is a value; an empty one is a value
	// Version is the offset of the commit that wrote the value, with Found.
	Version id.Offset
	// AsOf is the offset of the last commit that the answer reflects, with HasAsOf; without it the shard has seen no commit.
	AsOf    id.Offset
	HasAsOf bool
}

// StateGet reads one key of an entity's state. It reflects every commit whose offset was returned before the call.
func (c *Client) StateGet(ctx context.Context, namespace, stream string, entity []byte, key string) (State, error) {
	op := fmt.Sprintf("get state %q of %s/%s", key, namespace, stream)
	if err := checkEntity(op, namespace, stream, entity); err != nil {
		return State{}, err
	}
	if problem := cacheKeyProblem(key); problem != "" {
		return State{}, &ArgumentError{Op: op, Argument: "key", Problem: problem}
	}
	m := &wire.StateGet{
		TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream, EntityKey: entity, Key: key, RequestID: c.requestID.Add(1),
	}
	answer, err := c.write(ctx, namespace, stream, entity, true, &oneShot{op: op, needs: wire.FeatureAtomicCommit, feature: "state_get", message: m})
	if err != nil {
		return State{}, err
	}
	v, ok := answer.(*wire.StateValue)
	if !ok {
		return State{}, refusalOf(op, answer)
	}
	return State{
		Value: v.Value.V, Found: v.Value.Set, Version: v.Version.V, AsOf: v.AsOf.V, HasAsOf: v.AsOf.Set,
	}, echoes(op, m.RequestID, v.RequestID)
}
