package rawquic

import (
	"context"
	"fmt"
	"io"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/transport"
)

// Peer is where a raw server is and whom to trust.
type Peer struct {
	Addr  string `json:"addr"`
	CAPEM []byte `json:"ca_pem"`
}

// Dial makes one connection with the settings of our client.
func Dial(ctx context.Context, p Peer) (*quic.Conn, error) {
	tlsConfig, err := transport.ClientTLS(transport.ClientTLSOptions{CAPEM: p.CAPEM, ServerName: "localhost"})
	if err != nil {
		return nil, fmt.Errorf("dial raw peer: %w", err)
	}
	conn, err := transport.DialConn(ctx, transport.DialOptions{Addr: p.Addr, TLS: tlsConfig})
	if err != nil {
		return nil, fmt.Errorf("dial raw peer: %w", err)
	}
	return conn, nil
}

// Open opens a stream and gives the order. A subscriber is part of its group when Open returns.
func Open(ctx context.Context, conn *quic.Conn, o Order) (*quic.Stream, error) {
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s stream: %w", o.Role, err)
	}
	if err := give(ctx, stream, o); err != nil {
		transport.AbortStream(stream, transport.StreamFinished)
		return nil, fmt.Errorf("open %s stream: %w", o.Role, err)
	}
	return stream, nil
}

func give(ctx context.Context, stream *quic.Stream, o Order) error {
	stop := context.AfterFunc(ctx, func() { transport.AbortStream(stream, transport.StreamFinished) })
	defer stop()
	if _, err := stream.Write(o.append(nil)); err != nil {
		return err
	}
	if o.Role != Subscribe {
		return nil
	}
	var ready [1]byte
	if _, err := io.ReadFull(stream, ready[:]); err != nil {
		return err
	}
	if ready[0] != Ready {
		return fmt.Errorf("the raw peer answered %d, want %d", ready[0], Ready)
	}
	return nil
}
