package rawquic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
)

const (
	// bufferBytes is what a read takes and a write gives at most: what a broker joins its own writes up to.
	bufferBytes = 64 << 10
	// certificateLife is how long the certificate lives: a measurement is over long before.
	certificateLife = 24 * time.Hour
)

// Options adjusts a server. The zero value listens like a broker with default settings, on a loopback port that the system chooses.
type Options struct {
	Addr    string // "host:port"; empty means 127.0.0.1:0
	Windows transport.Windows
	Offload transport.Offload
}

// Server is a raw peer. Close it.
type Server struct {
	listener *transport.Listener
	ca       []byte
	groups   groups
	received atomic.Uint64

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Listen makes an authority and a certificate of its own and starts to serve.
func Listen(o Options) (*Server, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	certs, authority, err := certificate(time.Now())
	if err != nil {
		return nil, fmt.Errorf("start raw peer: %w", err)
	}
	l, err := transport.Listen(transport.ListenOptions{
		Addr: o.Addr, TLS: transport.ServerTLS(certs, transport.Policy{}),
		QUIC: transport.ServerQUIC(transport.ServerOptions{Windows: o.Windows}), ReceiveOffload: o.Offload,
	})
	if err != nil {
		return nil, fmt.Errorf("start raw peer: %w", err)
	}
	s := &Server{listener: l, ca: authority}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

func certificate(now time.Time) (*transport.CertSource, []byte, error) {
	ca, err := transport.NewCA("felixctl bench", now, nil)
	if err != nil {
		return nil, nil, err
	}
	cert, key, err := ca.Issue(transport.LeafRequest{Names: []string{"localhost", "127.0.0.1"}, Now: now, Lifetime: certificateLife})
	if err != nil {
		return nil, nil, err
	}
	certs, err := transport.NewCertSource(cert, key)
	return certs, ca.CertPEM, err
}

// Peer is how clients reach the server.
func (s *Server) Peer() Peer { return Peer{Addr: s.listener.Addr().String(), CAPEM: s.ca} }

// Received is how many bytes the server has read from streams, their orders not included.
func (s *Server) Received() uint64 { return s.received.Load() }

// Close ends all connections and waits until nothing of the server runs any more.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.work.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept(s.ctx)
		if err != nil {
			return
		}
		s.work.Go(func() { s.connection(conn) })
	}
}

func (s *Server) connection(conn *quic.Conn) {
	for {
		stream, err := conn.AcceptStream(s.ctx)
		if err != nil {
			return
		}
		s.work.Go(func() { s.stream(conn, stream) })
	}
}

// stream does what the order says. A client that talks something else loses its connection: it would measure nothing.
func (s *Server) stream(conn *quic.Conn, stream *quic.Stream) {
	order, err := readOrder(stream)
	var wrong *OrderError
	if errors.As(err, &wrong) {
		transport.Close(conn, transport.CloseProtocol)
		return
	}
	if err != nil {
		transport.AbortStream(stream, transport.StreamFinished)
		return
	}
	switch order.Role {
	case Sink:
		err = s.sink(stream, order)
	case Echo:
		err = s.echo(stream)
	case Relay:
		err = s.relay(stream, order)
	case Subscribe:
		if err = s.subscribe(stream, order); err == nil {
			return // it belongs to the relay now
		}
	}
	if err != nil {
		transport.AbortStream(stream, transport.StreamFinished)
		return
	}
	transport.FinishStream(stream)
}

// sink reads and counts, and answers each unit.
func (s *Server) sink(stream *quic.Stream, o Order) error {
	buf := make([]byte, bufferBytes)
	due := acks{unit: o.Unit}
	for {
		n, err := stream.Read(buf)
		s.received.Add(uint64(n))
		if answers := due.take(n); len(answers) > 0 {
			if _, err := stream.Write(answers); err != nil {
				return err
			}
		}
		if err != nil {
			return atEnd(err)
		}
	}
}

// echo sends back what it reads.
func (s *Server) echo(stream *quic.Stream) error {
	buf := make([]byte, bufferBytes)
	for {
		n, err := stream.Read(buf)
		s.received.Add(uint64(n))
		if n > 0 {
			if _, err := stream.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return atEnd(err)
		}
	}
}

// atEnd is nil for the end of the stream.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
