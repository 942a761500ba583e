package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixd/felixd/client"
)

// ClientPlan is a publisher that uses the Go client of felixd, the way a program would.
type ClientPlan struct {
	Options           client.Options // connections and streams are set from below
	Namespace, Stream string
	Shape             Shape
	Conns             int      // connections
	Keys              [][]byte // one for each stream of the connection; a single nil key publishes without one. See ShardKeys
	InFlight          int      // batches that may be unanswered, all streams together; at least 1
	PerRecord         bool     // acknowledgements per record, for batches of one
}

// ShardKeys finds a key for each of the first n shards of a stream, so that publishes with them travel on n streams of their own. For n = 1
// it is no key at all. It fails when the stream has fewer shards.
func ShardKeys(ctx context.Context, c *client.Client, namespace, stream string, n int) ([][]byte, error) {
	if n <= 1 {
		return make([][]byte, 1), nil
	}
	shards, err := c.StreamShards(ctx, namespace, stream)
	if err != nil {
		return nil, err
	}
	if uint32(n) > shards.Count {
		return nil, &StreamsError{Stream: namespace + "/" + stream, Streams: n, Shards: int(shards.Count)}
	}
	keys := make([][]byte, n)
	for i, found := 0, 0; found < n; i++ {
		key := fmt.Appendf(nil, "bench-%d", i)
		if at := shards.Routing.Shard(key, true, shards.Count); at < uint32(n) && keys[at] == nil {
			keys[at] = key
			found++
		}
	}
	return keys, nil
}

// StreamsError says that publishes cannot be spread over so many streams of a connection: those of one shard keep to one.
type StreamsError struct {
	Stream          string
	Streams, Shards int
}

// Error says what to do.
func (e *StreamsError) Error() string {
	return fmt.Sprintf("stream %s has %d shards, and publishes of a shard travel on one stream of the connection: %d streams need a stream with at least %d shards",
		e.Stream, e.Shards, e.Streams, e.Streams)
}

// OpenClient connects. ctx is the life of the publisher's calls.
func OpenClient(ctx context.Context, p ClientPlan) (*Publisher, error) {
	o := p.Options
	o.PublishConns, o.PublishStreams = p.Conns, len(p.Keys)
	o.PublishInflightBytes = max(client.DefaultPublishInflightBytes, 2*int64(p.InFlight)*int64(p.Shape.Bytes()))
	c, err := client.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	pub := &Publisher{Close: c.Close}
	for _, key := range p.Keys {
		lane := &clientLane{client: c, plan: &p, records: newRecords(p.Shape), pending: make(chan *client.PendingPublish, unanswered+p.InFlight)}
		if key != nil {
			lane.silent = append(lane.silent, client.WithKey(key))
		}
		lane.acked = append(lane.acked, lane.silent...)
		lane.silent = append(lane.silent, client.WithAck(client.AckNone))
		lane.acked = append(lane.acked, client.WithAck(ackOf(p)))
		pub.Lanes = append(pub.Lanes, lane)
	}
	return pub, nil
}

func ackOf(p ClientPlan) client.Ack {
	if p.PerRecord {
		return client.AckRecord
	}
	return client.AckBatch
}

// clientLane publishes under one key. Publishes of a key keep their order in the client.
type clientLane struct {
	client        *client.Client
	plan          *ClientPlan
	records       *records
	silent, acked []client.PublishOption
	pending       chan *client.PendingPublish // acked and unanswered, oldest first
}

// Send implements Lane.
func (l *clientLane) Send(ctx context.Context, b Batch) error {
	options := l.silent
	if b.Acked {
		options = l.acked
	}
	payloads := l.records.fill(b)
	var pending *client.PendingPublish
	var err error
	if len(payloads) == 1 {
		pending, err = l.client.PublishAsync(ctx, l.plan.Namespace, l.plan.Stream, payloads[0], options...)
	} else {
		pending, err = l.client.PublishBatchAsync(ctx, l.plan.Namespace, l.plan.Stream, payloads, options...)
	}
	if err != nil {
		return err
	}
	if !b.Acked {
		return nil
	}
	select {
	case l.pending <- pending:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Flush implements Lane: the client writes at once, or joins what came while it wrote.
func (l *clientLane) Flush(context.Context) error { return nil }

// Settle implements Lane.
func (l *clientLane) Settle(ctx context.Context) error {
	select {
	case p := <-l.pending:
		_, err := p.Wait(ctx)
		return orRefusal(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// orRefusal makes a *RefusedError of a broker's no.
func orRefusal(err error) error {
	var no *client.BrokerError
	if errors.As(err, &no) {
		return &RefusedError{err}
	}
	return err
}
