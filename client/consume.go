package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/felixd/felixd/wire"
)

// Consume works on all shards of a stream as a member of a group: it claims records, calls handler for each, prolongs the claims
// while records are in hand, and settles them by what the handler returned. Any number of consumers, in any number of processes,
// share the records of a group. The group is created if need be, at the oldest record of each shard; see GroupSeek.
//
// A record is handed to a handler once or more: again when it failed, and when the answer to its ack was lost together with the
// broker's memory, or its consumer was cut off for longer than Visibility. Records come in no promised order. What is finished is
// finished: an ack counts as done only when the broker has made it durable and said so. Acks and extensions that go without an
// answer are sent again until there is one, since they may be done twice; so are nacks, which name their delivery and thus hit no
// other, and dead letters, whose list has each record once.
//
// It goes on by itself after lost connections, restarts and moves of shards. ctx bounds only the start; its values are passed on to
// the handlers. Close the consumer with Stop. It ends by itself, see Done and Err, when a broker refuses for good: a token that is
// not good any more, a stream that was deleted.
func (c *Client) Consume(ctx context.Context, namespace, stream, group string, handler Handler, o ConsumeOptions) (*Consumer, error) {
	op := fmt.Sprintf("consume group %q of %s/%s", group, namespace, stream)
	o, err := o.complete(op)
	if err != nil {
		return nil, err
	}
	if handler == nil {
		return nil, &ArgumentError{Op: op, Argument: "handler", Problem: "is nil; give a function"}
	}
	if problem := nameProblem(group); problem != "" {
		return nil, &ArgumentError{Op: op, Argument: "group", Problem: problem}
	}
	shards, err := c.StreamShards(ctx, namespace, stream)
	if err != nil {
		return nil, err
	}
	if most := consumeShardsMax * max(1, c.opts.CacheConns); int(shards.Count) > most {
		return nil, &LimitError{Op: op, Limit: "shards that a consumer may have without more Options.CacheConns", Most: most}
	}
	if o.Member == "" {
		o.Member = newMember()
	}
	k := newConsumer(c, op, handler, o, context.WithoutCancel(ctx))
	for shard := range shards.Count {
		k.addShard(namespace, stream, shard, group)
	}
	k.share()
	first := k.shards[0].polls
	err = c.repeat(ctx, op, untaken, func() error {
		return first.do(ctx, 0, func(*control) error { return nil }) // does the broker take us, and offer what is needed?
	})
	if err == nil && !k.start() {
		err = closedError(op)
	}
	if err != nil {
		k.abandon()
		return nil, err
	}
	return k, nil
}

// consumeShardsMax is how many shards a consumer has to a connection, at two streams each: half of the streams that a broker lets a
// connection have, should it own them all.
const consumeShardsMax = wire.MaxStreams / 4

// newMember is a name that nobody else has.
func newMember() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "go-" + hex.EncodeToString(b[:])
}

func newConsumer(c *Client, op string, handler Handler, o ConsumeOptions, values context.Context) *Consumer {
	k := &Consumer{
		client: c, op: op, handler: handler, opts: o, latePoll: stopPatience, kick: make(chan struct{}, 1),
		late: make(chan struct{}), done: make(chan struct{}), spawn: c.life.spawn,
	}
	inside := context.WithValue(context.WithValue(values, insideOf{c}, true), handlerOf{k}, true)
	k.handling, k.endHandling = context.WithCancelCause(inside)
	k.polling, k.endPolling = context.WithCancel(c.closing)
	k.settling, k.endSettling = context.WithCancel(c.closing)
	return k
}

func (k *Consumer) addShard(namespace, stream string, shard uint32, group string) {
	c := k.client
	s := &consumedShard{
		consumer: k, reclaim: true, held: make(map[offset]*delivery), finished: make(map[offset]struct{}), wake: make(chan struct{}, 1),
		target: wire.GroupTarget{TenantID: c.opts.TenantID, Namespace: namespace, Stream: stream, Shard: shard, Group: group},
	}
	way := c.streams.entry(namespace, stream).route(shard)
	open := func(try string) *groupStream {
		return &groupStream{
			client: c, route: way, op: groupOp(try, namespace, stream, shard, group),
			needs: wire.FeatureConsumerGroup | wire.FeatureGroupClaimControl, feature: "consumer groups with control of claims",
		}
	}
	s.polls, s.settles = open("poll"), open("settle for")
	k.shards = append(k.shards, s)
}

// start lets everything run; false when the client is closing.
func (k *Consumer) start() bool {
	runs := []func(){k.extend}
	for _, s := range k.shards {
		runs = append(runs, s.poll, s.settle)
	}
	k.work.Add(len(runs)) // before anybody can stop it: whoever does waits for all of them
	if !k.client.consumers.add(k) {
		return false
	}
	for i, run := range runs {
		if !k.spawn(func() { defer k.work.Done(); run() }) {
			k.work.Add(i - len(runs)) // for those that never run
			k.endPolling()
			k.endSettling()
			k.work.Wait()
			k.client.consumers.remove(k)
			return false
		}
	}
	return true
}

// abandon gives back what a consumer has that never ran.
func (k *Consumer) abandon() {
	k.endPolling()
	k.endSettling()
	k.endHandling(ErrClosed)
	k.shards[0].polls.close()
}
