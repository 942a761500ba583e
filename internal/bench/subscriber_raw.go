package bench

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/rawquic"
	"github.com/felixd/felixd/transport"
)

// rawSubscriber reads what a raw relay passes on, with a connection of its own.
type rawSubscriber struct {
	conn   *quic.Conn
	stream *quic.Stream
	frame  int  // bytes of a batch
	record int  // where the first record of a frame begins
	look   bool // read the stamps; otherwise only count bytes
}

// SubscribeRaw joins a group. The batches are those of the plan; with look their stamps are read, otherwise bytes are counted and
// thrown away.
func SubscribeRaw(ctx context.Context, p RawPlan, look bool) (Subscriber, error) {
	conn, err := rawquic.Dial(ctx, p.Peer)
	if err != nil {
		return nil, err
	}
	stream, err := rawquic.Open(ctx, conn, rawquic.Order{Role: rawquic.Subscribe, Group: p.Group})
	if err != nil {
		transport.Close(conn, transport.CloseShutdown)
		return nil, err
	}
	return &rawSubscriber{conn: conn, stream: stream, frame: len(p.Frame), record: firstPayload(p.Frame, p.Shape), look: look}, nil
}

// Receive implements Subscriber.
func (s *rawSubscriber) Receive(ctx context.Context, got *Received) error {
	stop := context.AfterFunc(ctx, func() { s.stream.CancelRead(transport.StreamFinished) })
	defer stop()
	read := s.count
	if s.look {
		read = s.frames
	}
	err := read(got)
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// count reads and throws away.
func (s *rawSubscriber) count(got *Received) error {
	buf := make([]byte, writeBytes)
	rest := 0
	for {
		n, err := s.stream.Read(buf)
		rest += n
		if whole := rest / s.frame; whole > 0 {
			got.Batches(uint64(whole))
			rest -= whole * s.frame
		}
		if err != nil {
			return err
		}
	}
}

// frames reads batch by batch.
func (s *rawSubscriber) frames(got *Received) error {
	from := bufio.NewReaderSize(s.stream, writeBytes)
	frame := make([]byte, s.frame)
	for {
		if _, err := io.ReadFull(from, frame); err != nil {
			return err
		}
		stamp, ok := stampOf(frame[s.record:])
		if !ok {
			return errors.New("the batches have no room for stamps")
		}
		got.Stamped(stamp)
	}
}

// Close implements Subscriber.
func (s *rawSubscriber) Close(context.Context) error {
	transport.Close(s.conn, transport.CloseShutdown)
	return nil
}
