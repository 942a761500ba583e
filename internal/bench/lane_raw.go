package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/rawquic"
	"github.com/felixd/felixd/transport"
	"github.com/felixd/felixd/wire"
)

// writeBytes is what small batches are joined up to before they are written: the client of felixd joins up to the same size.
const writeBytes = 64 << 10

// RawPlan is a publisher towards a raw peer.
type RawPlan struct {
	Peer    rawquic.Peer
	Shape   Shape
	Conns   int // connections
	Streams int // streams, spread over the connections
	Unit    int // batches to an answer; 0: none
	// Role is rawquic.Sink, Relay (to Group) or Echo, which answers every batch with itself.
	Role  rawquic.Role
	Group uint64
	// Frame is what a batch is on the wire of felixd, so that both sides write the same bytes; see PublishFrame.
	Frame []byte
}

// PublishFrame is a batch as a client of felixd writes it, with room for numbers and stamps.
func PublishFrame(s Shape, acked bool, tenant, namespace, stream string, key []byte) []byte {
	p := wire.Publish{
		Tenant: []byte(tenant), Namespace: []byte(namespace), Stream: []byte(stream), Count: uint32(s.Batch),
		Key: key, Keyed: key != nil,
	}
	if acked {
		p.Ack = wire.AckPerBatch
	}
	for _, payload := range newRecords(s).payloads {
		p.Region = wire.AppendPayload(p.Region, payload)
	}
	return wire.AppendPublish(nil, &p)
}

// firstPayload is where the first record of a frame begins: the records are its end.
func firstPayload(frame []byte, s Shape) int {
	return len(frame) - s.Batch*(wire.PayloadOverhead+s.Payload) + wire.PayloadOverhead
}

// OpenRaw dials and opens all streams. ctx is the life of the publisher: when it ends, the connections do.
func OpenRaw(ctx context.Context, p RawPlan) (*Publisher, error) {
	conns, err := dialAll(ctx, p.Conns, func() (*quic.Conn, error) { return rawquic.Dial(ctx, p.Peer) })
	if err != nil {
		return nil, err
	}
	pub := &Publisher{Close: conns.close, Vouches: true}
	for i := range p.Streams {
		order := rawquic.Order{Role: p.Role, Group: p.Group, Unit: uint64(p.Unit * len(p.Frame))}
		stream, err := rawquic.Open(ctx, conns.of(i), order)
		if err != nil {
			return nil, errors.Join(err, conns.close(ctx))
		}
		lane := newRawLane(stream, p)
		pub.Lanes = append(pub.Lanes, lane)
	}
	return pub, nil
}

// rawLane writes a prepared block of frames and touches nothing but the stamps: what a publisher costs at the least.
type rawLane struct {
	stream *quic.Stream
	block  []byte // as many frames as make a write
	size   int    // of a frame
	record [2]int // where the first record of a frame begins and ends
	filled int    // bytes of block that are to be written

	answers *bufio.Reader
	ack     []byte // one answer
	taken   uint64 // answers so far
	echo    bool
}

func newRawLane(stream *quic.Stream, p RawPlan) *rawLane {
	first := firstPayload(p.Frame, p.Shape)
	l := &rawLane{
		stream: stream, size: len(p.Frame), record: [2]int{first, first + p.Shape.Payload},
		answers: bufio.NewReaderSize(stream, 16<<10), ack: make([]byte, rawquic.AckBytes), echo: p.Role == rawquic.Echo,
	}
	for range max(1, writeBytes/l.size) {
		l.block = append(l.block, p.Frame...)
	}
	return l
}

// Send implements Lane.
func (l *rawLane) Send(ctx context.Context, b Batch) error {
	putRecord(l.block[l.filled+l.record[0]:l.filled+l.record[1]], b.First, b.Stamp)
	if l.filled += l.size; l.filled < len(l.block) {
		return nil
	}
	return l.Flush(ctx)
}

// Flush implements Lane.
func (l *rawLane) Flush(context.Context) error {
	if l.filled == 0 {
		return nil
	}
	_, err := l.stream.Write(l.block[:l.filled])
	l.filled = 0
	return err
}

// Settle implements Lane.
func (l *rawLane) Settle(context.Context) error {
	l.taken++
	if l.echo {
		_, err := l.answers.Discard(l.size)
		return err
	}
	n, err := rawquic.ReadAck(l.answers, l.ack)
	if err == nil && n != l.taken {
		err = fmt.Errorf("the raw peer sent answer %d where %d was due", n, l.taken)
	}
	return err
}

// connections are those of one side of a trial.
type connections []*quic.Conn

// dialAll makes n connections. They end with ctx.
func dialAll(ctx context.Context, n int, dial func() (*quic.Conn, error)) (connections, error) {
	var all connections
	for range n {
		conn, err := dial()
		if err != nil {
			return nil, errors.Join(err, all.close(ctx))
		}
		context.AfterFunc(ctx, func() { transport.Close(conn, transport.CloseShutdown) })
		all = append(all, conn)
	}
	return all, nil
}

// of is the connection of the i-th stream.
func (c connections) of(i int) *quic.Conn { return c[i%len(c)] }

func (c connections) close(context.Context) error {
	for _, conn := range c {
		transport.Close(conn, transport.CloseShutdown)
	}
	return nil
}
