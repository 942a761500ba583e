package client

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/felixd/felixd/wire"
	"github.com/felixd/felixd/wire/id"
)

// groupCall is one request about a group of one shard, to whoever owns the shard.
type groupCall struct {
	client *Client
	oneShot
	target wire.GroupTarget
	route  *route
	claim  wire.Opt[id.Offset] // what a settlement names, for its error
	stands uint32              // the delivery it names; 0 for none
	bad    error               // why it cannot be sent
}

// groupCall begins a request; the caller sets its message. try is what is tried, in words.
func (c *Client) groupCall(try, namespace, stream string, shard uint32, group string) *groupCall {
	op := groupOp(try, namespace, stream, shard, group)
	k := &groupCall{
		client:  c,
		oneShot: oneShot{op: op, needs: wire.FeatureConsumerGroup, feature: "consumer groups"},
		target: wire.GroupTarget{
			TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream, Shard: shard, Group: group, RequestID: c.requestID.Add(1),
		},
	}
	k.bad = checkNames(op, namespace, "stream", stream)
	if problem := nameProblem(group); k.bad == nil && problem != "" {
		k.bad = &ArgumentError{Op: op, Argument: "group", Problem: problem}
	}
	if k.bad == nil {
		k.route = c.streams.entry(namespace, stream).route(shard)
		k.seat = &k.route.seat
	}
	return k
}

func groupOp(try, namespace, stream string, shard uint32, group string) string {
	return fmt.Sprintf("%s group %q of %s/%s shard %d", try, group, namespace, stream, shard)
}

// require adds something that the broker has to offer.
func (k *groupCall) require(needs wire.Features, feature string) {
	k.needs, k.feature = k.needs|needs, feature
}

// settles says which record and delivery the request is about.
func (k *groupCall) settles(offset id.Offset, attempts uint32) {
	k.claim, k.stands = wire.Some(offset), attempts
}

// ask sends the request and returns the answer.
func (k *groupCall) ask(ctx context.Context) (wire.Message, error) {
	if k.bad != nil {
		return nil, k.bad
	}
	answer, err := k.client.askOwner(ctx, k.route, &k.oneShot)
	return answer, k.named(err)
}

// settle sends a request that is answered by no more than that it took effect.
func (k *groupCall) settle(ctx context.Context) error {
	answer, err := k.ask(ctx)
	if err != nil {
		return err
	}
	m, ok := answer.(*wire.CacheOK)
	if !ok {
		return k.refused(answer)
	}
	return echoes(k.op, k.target.RequestID, m.RequestID)
}

// refused is the error of an answer that is none to this request. What it did is not known, if it does something.
func (k *groupCall) refused(answer wire.Message) error {
	if k.writes {
		return k.named(unlessUnknown(k.op, answer))
	}
	return refusalOf(k.op, answer)
}

// named turns the refusal of a claim into a *StaleClaimError that names the record.
func (k *groupCall) named(err error) error {
	if !k.claim.Set {
		return err
	}
	return staleClaim(k.target.Shard, k.claim.V, k.stands, err)
}

// staleClaim is a *StaleClaimError if err refuses a claim, and err if not.
func staleClaim(shard uint32, offset id.Offset, attempts uint32, err error) error {
	var refused *BrokerError
	if !errors.As(err, &refused) || !errors.Is(refused, ErrStaleClaim) {
		return err
	}
	return &StaleClaimError{Shard: shard, Offset: offset, Attempts: attempts, Err: err}
}

// memberProblem says what is wrong with the name of a member; empty for nothing.
func memberProblem(name string) string {
	switch {
	case len(name) > GroupMemberMaxBytes:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), GroupMemberMaxBytes)
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	}
	return ""
}

// roundUpMillis is a time as it travels. It is not negative.
func roundUpMillis(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d-1)/time.Millisecond) + 1
}
