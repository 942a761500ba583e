package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/rawquic"
	"github.com/felixd/felixd/wire"
)

// CacheOp is what a caller asks of a cache.
type CacheOp string

// Operations: Hit reads what is there, Miss what is not.
const (
	Put  CacheOp = "put"
	Hit  CacheOp = "hit"
	Miss CacheOp = "miss"
)

// CachePlan is a set of callers towards a cache, all in one client.
type CachePlan struct {
	Options          client.Options // connections and streams are set from below
	Namespace, Cache string
	Op               CacheOp
	Payload          int // bytes of a value
	Keys             int // that are used in turn
	Callers          int // and streams: a caller has one to itself as long as others are busy
	Conns            int
}

// OpenCache connects, and for Hit and Put writes all keys once.
func OpenCache(ctx context.Context, p CachePlan) (*Callers, error) {
	o := p.Options
	o.CacheConns, o.CacheStreams = p.Conns, p.Callers
	c, err := client.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	names := make([]string, p.Keys)
	value := newRecords(Shape{Payload: p.Payload, Batch: 1}).payloads[0]
	for i := range names {
		names[i] = fmt.Sprintf("bench-%s-%d", p.Op, i)
		if p.Op == Miss {
			continue
		}
		if err := c.CachePut(ctx, p.Namespace, p.Cache, names[i], value, 0); err != nil {
			return nil, errors.Join(err, c.Close(ctx))
		}
	}
	callers := &Callers{Close: c.Close}
	for i := range p.Callers {
		callers.All = append(callers.All, &cacheCaller{client: c, plan: &p, keys: names, value: value, at: i * p.Keys / p.Callers})
	}
	return callers, nil
}

// cacheCaller asks for the keys in turn; callers begin at different ones.
type cacheCaller struct {
	client *client.Client
	plan   *CachePlan
	keys   []string
	value  []byte
	at     int
}

// Call implements Caller.
func (c *cacheCaller) Call(ctx context.Context, n uint64) error {
	key := c.keys[(uint64(c.at)+n)%uint64(len(c.keys))]
	if c.plan.Op == Put {
		return orRefusal(c.client.CachePut(ctx, c.plan.Namespace, c.plan.Cache, key, c.value, time.Duration(0)))
	}
	value, found, err := c.client.CacheGet(ctx, c.plan.Namespace, c.plan.Cache, key)
	switch {
	case err != nil:
		return orRefusal(err)
	case found != (c.plan.Op == Hit):
		return fmt.Errorf("get %q for a %s: found is %v: the cache is too small, or somebody else uses it", key, c.plan.Op, found)
	case found && len(value) != c.plan.Payload:
		return fmt.Errorf("get %q: %d bytes, want %d: somebody else uses the cache", key, len(value), c.plan.Payload)
	}
	return nil
}

// EchoPlan is a set of callers towards a raw echo, each on a stream of its own.
type EchoPlan struct {
	Peer    rawquic.Peer
	Payload int
	Callers int // and streams
	Conns   int
}

// OpenEcho dials and opens all streams. A request is a header of the protocol and the payload, so that an empty one is something too.
func OpenEcho(ctx context.Context, p EchoPlan) (*Callers, error) {
	conns, err := dialAll(ctx, p.Conns, func() (*quic.Conn, error) { return rawquic.Dial(ctx, p.Peer) })
	if err != nil {
		return nil, err
	}
	callers := &Callers{Close: conns.close}
	for i := range p.Callers {
		stream, err := rawquic.Open(ctx, conns.of(i), rawquic.Order{Role: rawquic.Echo})
		if err != nil {
			return nil, errors.Join(err, conns.close(ctx))
		}
		callers.All = append(callers.All, newEchoCaller(stream, p.Payload))
	}
	return callers, nil
}

type echoCaller struct {
	stream  *quic.Stream
	request []byte
	answers *bufio.Reader
	answer  []byte
}

func newEchoCaller(stream *quic.Stream, payload int) *echoCaller {
	request := wire.AppendHeader(nil, wire.Header{Length: uint32(payload)})
	request = append(request, newRecords(Shape{Payload: payload, Batch: 1}).payloads[0]...)
	return &echoCaller{
		stream: stream, request: request, answer: make([]byte, len(request)), answers: bufio.NewReaderSize(stream, 16<<10),
	}
}

// Call implements Caller.
func (c *echoCaller) Call(context.Context, uint64) error {
	if _, err := c.stream.Write(c.request); err != nil {
		return err
	}
	_, err := io.ReadFull(c.answers, c.answer)
	return err
}
