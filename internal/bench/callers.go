package bench

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/rawquic"
	"github.com/felixd/felixd/wire"
)

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
