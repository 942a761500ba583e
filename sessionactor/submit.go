package sessionactor

import (
	"context"
	"errors"

	"github.com/felixd/felixd/actors"
	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/shardactor"
	"github.com/felixd/felixd/wire"
)

// Why a request found no room, beside actors.ErrFull: its shard's queue is full.
var (
	errOverHalf = errors.New("its shard has half of what the connection may have under way")
	errNoRoom   = errors.New("the node has enough of the tenant's requests under way")
)

// errDraining says that nothing more gets under way, because the node stops.
var errDraining = errors.New("the broker is shutting down")

// noRoom reports whether err says that there is no room now, and that there will be.
func noRoom(err error) bool {
	return errors.Is(err, actors.ErrFull) || errors.Is(err, errOverHalf) || errors.Is(err, errNoRoom)
}

// submit lets an open request through to its shard, or refuses it; it waits for room if the request may. true says that the shard
// has it. m costs size bytes in the shard's mailbox. mu is held, but not while it waits.
func (l *lane) submit(ctx context.Context, t sessioncore.Token, h *shardactor.Handle, m shardactor.Message, size int) bool {
	l.demand.Shard, l.demand.Bytes = h.Number, l.core.Bytes(t)
	err := l.offer(t, h, m, size)
	if noRoom(err) && l.mayWait(t) {
		err = l.await(ctx, t, h, m, size, err)
	}
	if err != nil {
		l.notTaken(t, err)
	}
	return err == nil
}

// offer lets an open request through to its shard if there is room now.
func (l *lane) offer(t sessioncore.Token, h *shardactor.Handle, m shardactor.Message, size int) error {
	switch l.session.opts.Admission.admit(&l.demand) {
	case sessioncore.LetIn:
	case sessioncore.OverHalf:
		return errOverHalf
	case sessioncore.NoRoom:
		return errNoRoom
	case sessioncore.ShardFull:
		return actors.ErrFull
	case sessioncore.Draining:
		return errDraining
	}
	if err := h.Ref.TrySend(m, size); err != nil {
		l.session.opts.Admission.withdraw(&l.demand)
		return err
	}
	l.core.Admitted(t, h.Number)
	return nil
}

// notTaken answers a request that did not reach its shard: nothing happened.
func (l *lane) notTaken(t sessioncore.Token, err error) {
	switch {
	case errors.Is(err, actors.ErrFull):
		l.queueFull(t, "the shard's queue is full; repeat the request after a pause")
	case errors.Is(err, errOverHalf):
		l.queueFull(t, "one shard has half of what this connection may have under way; repeat the request after a pause")
	case errors.Is(err, errNoRoom):
		l.queueFull(t, "the node has enough of this tenant's requests under way; repeat the request after a pause")
	case errors.Is(err, errDraining):
		l.refuse(t, draining())
	default:
		l.refuse(t, unavailable(wire.ReasonNotReady, "the shard is being replaced; repeat the request"))
	}
}

func draining() wire.Refusal {
	return wire.Refuse(wire.CodeDraining, "the broker is shutting down; connect again or use another one")
}

// queueFull sheds a request: answered with a time to wait, or dropped and counted if it wants no answer.
func (l *lane) queueFull(t sessioncore.Token, message string) {
	action := "refused"
	if l.core.Silent(t) {
		action = "dropped"
	}
	l.session.opts.Metrics.QueueFull.count(l.tenant.name, action)
	l.refuse(t, wire.Refuse(wire.CodeOverloaded, message).WithReason(wire.ReasonPublishQueueFull, queueFullPause))
}

// queueFullPause is how long a refused publisher is told to wait, in milliseconds: a full queue is worked off in less.
const queueFullPause = 20
