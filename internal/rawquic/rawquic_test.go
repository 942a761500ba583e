package rawquic

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/transport"
)

// patience is how long a test waits for what should happen at once.
const patience = 2 * time.Minute

func newServer(t *testing.T) (*Server, *quic.Conn, context.Context) {
	t.Helper()
	s, err := Listen(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return s, dial(ctx, t, s), ctx
}

func dial(ctx context.Context, t *testing.T, s *Server) *quic.Conn {
	t.Helper()
	conn, err := Dial(ctx, s.Peer())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { transport.Close(conn, transport.CloseShutdown) })
	return conn
}

func open(ctx context.Context, t *testing.T, conn *quic.Conn, o Order) *quic.Stream {
	t.Helper()
	stream, err := Open(ctx, conn, o)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// some is n bytes, or an eighth of it under the race detector.
func some(n int) int {
	if effort.Raced && !effort.Full() {
		return n / 8
	}
	return n
}

// noise is n bytes that repeat nowhere.
func noise(n int) []byte {
	source := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	if _, err := source.Read(b); err != nil {
		panic(err)
	}
	return b
}

// send writes data in pieces of uneven length and ends the stream.
func send(stream *quic.Stream, data []byte) error {
	for size := 1; len(data) > 0; size = size*3%70_001 + 1 {
		n := min(size, len(data))
		if _, err := stream.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return stream.Close()
}

func TestSinkCountsEveryByteAndAnswersEveryUnit(t *testing.T) {
	s, conn, ctx := newServer(t)
	data := noise(some(3<<20) + 17)
	const unit = 4096
	stream := open(ctx, t, conn, Order{Role: Sink, Unit: unit})
	var sent sync.WaitGroup
	sent.Go(func() {
		if err := send(stream, data); err != nil {
			t.Error(err)
		}
	})
	var buf [AckBytes]byte
	for want := uint64(1); want <= uint64(len(data)/unit); want++ {
		n, err := ReadAck(stream, buf[:])
		if err != nil || n != want {
			t.Fatalf("answer %d: got %d, %v", want, n, err)
		}
	}
	if _, err := ReadAck(stream, buf[:]); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last answer: got %v, want the end of the stream", err)
	}
	sent.Wait()
	if got := s.Received(); got != uint64(len(data)) {
		t.Fatalf("the sink counted %d bytes of %d", got, len(data))
	}
}

func TestSinkWithoutUnitIsSilent(t *testing.T) {
	s, conn, ctx := newServer(t)
	data := noise(1 << 20)
	stream := open(ctx, t, conn, Order{Role: Sink})
	if err := send(stream, data); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(stream); err != nil || len(answer) > 0 {
		t.Fatalf("got %d bytes, %v; want none and the end of the stream", len(answer), err)
	}
	if got := s.Received(); got != uint64(len(data)) {
		t.Fatalf("the sink counted %d bytes of %d", got, len(data))
	}
}

func TestEchoIsIdentical(t *testing.T) {
	_, conn, ctx := newServer(t)
	var all sync.WaitGroup
	for i := range 8 {
		stream := open(ctx, t, conn, Order{Role: Echo})
		data := noise(some(1<<20) + i)
		all.Go(func() {
			if err := send(stream, data); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if got, err := io.ReadAll(stream); err != nil || !bytes.Equal(got, data) {
				t.Errorf("stream %d: got %d bytes, %v; want the same %d", i, len(got), err, len(data))
			}
		})
	}
	all.Wait()
}

func TestRelayDeliversTheSameBytesInOrderToEverySubscriber(t *testing.T) {
	for _, subscribers := range []int{1, 2, 10} {
		t.Run(strconv.Itoa(subscribers), func(t *testing.T) { relayTo(t, subscribers) })
	}
}

func relayTo(t *testing.T, subscribers int) {
	s, conn, ctx := newServer(t)
	data := noise(some(2<<20) + 5)
	const group, unit = 7, 65_536
	var all sync.WaitGroup
	for i := range subscribers {
		stream := open(ctx, t, dial(ctx, t, s), Order{Role: Subscribe, Group: group})
		all.Go(func() {
			if got, err := io.ReadAll(stream); err != nil || !bytes.Equal(got, data) {
				t.Errorf("subscriber %d: got %d bytes, %v; want the same %d", i, len(got), err, len(data))
			}
		})
	}
	stream := open(ctx, t, conn, Order{Role: Relay, Group: group, Unit: unit})
	all.Go(func() {
		if err := send(stream, data); err != nil {
			t.Error(err)
		}
	})
	if answers, err := io.ReadAll(stream); err != nil || len(answers) != len(data)/unit*AckBytes {
		t.Errorf("the publisher got %d bytes of answers, %v; want %d", len(answers), err, len(data)/unit*AckBytes)
	}
	all.Wait()
}

func TestRelayWithoutSubscribersIsRefused(t *testing.T) {
	_, conn, ctx := newServer(t)
	stream := open(ctx, t, conn, Order{Role: Relay, Group: 1})
	var gone *quic.StreamError
	if _, err := io.ReadAll(stream); !errors.As(err, &gone) {
		t.Fatalf("got %v, want the stream aborted", err)
	}
}

func TestOneDeadSubscriberEndsTheRelayAndStopsNobodyElse(t *testing.T) {
	s, conn, ctx := newServer(t)
	const group = 3
	dead := open(ctx, t, dial(ctx, t, s), Order{Role: Subscribe, Group: group})
	alive := open(ctx, t, dial(ctx, t, s), Order{Role: Subscribe, Group: group})
	relay := open(ctx, t, conn, Order{Role: Relay, Group: group})
	block := noise(bufferBytes)
	if _, err := relay.Write(block); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(dead, make([]byte, 1)); err != nil { // it has begun: the group is the relay's
		t.Fatal(err)
	}
	dead.CancelRead(transport.StreamFinished)
	var all sync.WaitGroup
	all.Go(func() {
		_, err := io.Copy(io.Discard, alive)
		var gone *quic.StreamError
		if !errors.As(err, &gone) {
			t.Errorf("the other subscriber ended with %v, want an aborted stream", err)
		}
	})
	for ctx.Err() == nil {
		if _, err := relay.Write(block); err != nil {
			break
		}
	}
	all.Wait()
}

func TestSubscribersBeyondTheBoundAreRefused(t *testing.T) {
	var g groups
	for i := range subscribersMax {
		if err := g.join(1, new(quic.Stream)); err != nil {
			t.Fatalf("subscriber %d: %v", i, err)
		}
	}
	if err := g.join(1, new(quic.Stream)); !errors.Is(err, errTooMany) {
		t.Fatalf("one subscriber too many: got %v", err)
	}
	for i := uint64(2); i <= groupsMax; i++ {
		if err := g.join(i, new(quic.Stream)); err != nil {
			t.Fatalf("group %d: %v", i, err)
		}
	}
	if err := g.join(groupsMax+1, new(quic.Stream)); !errors.Is(err, errTooMany) {
		t.Fatalf("one group too many: got %v", err)
	}
	if got := len(g.take(1)); got != subscribersMax {
		t.Fatalf("the group had %d subscribers, want %d", got, subscribersMax)
	}
	if err := g.join(groupsMax+1, new(quic.Stream)); err != nil {
		t.Fatalf("a group that was taken still counts: %v", err)
	}
}

func TestSubscriberThatLeavesIsForgotten(t *testing.T) {
	var g groups
	stays, leaves := new(quic.Stream), new(quic.Stream)
	for _, s := range []*quic.Stream{stays, leaves} {
		if err := g.join(1, s); err != nil {
			t.Fatal(err)
		}
	}
	g.leave(1, leaves)
	if left := g.take(1); len(left) != 1 || left[0] != stays {
		t.Fatalf("%d subscribers are left", len(left))
	}
	g.leave(1, stays) // its relay has it: nothing happens
}

func TestStreamWithoutAnOrderCostsItsConnection(t *testing.T) {
	for name, first := range map[string][]byte{
		"another protocol": append([]byte("FLX1"), make([]byte, OrderBytes-4)...),
		"an unknown role":  Order{Role: 9}.append(nil),
	} {
		_, conn, ctx := newServer(t)
		stream, err := conn.OpenStreamSync(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Write(first); err != nil {
			t.Fatal(err)
		}
		select {
		case <-conn.Context().Done():
		case <-ctx.Done():
			t.Fatalf("%s: the connection lives", name)
		}
		if code, remote, ok := transport.CloseCode(context.Cause(conn.Context())); !ok || !remote || code != transport.CloseProtocol {
			t.Fatalf("%s: the connection ended with %v", name, context.Cause(conn.Context()))
		}
	}
}
