package streams

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

// raw is a connection made of QUIC and the wire format alone, on a socket of its own: it can end in ways that the real client
// never would.
type raw struct {
	socket    net.PacketConn
	transport *quic.Transport
	conn      *quic.Conn
}

// rawIdle is after how long without a word the connections of guests are over. A broker that is to give up as early needs to be told:
// it never lets a client shorten its patience to less than 5 s.
const rawIdle = 2 * time.Second

// dialRaw connects through a socket. The connection is over after idle without a word.
func dialRaw(ctx context.Context, at testkit.Place, socket net.PacketConn, idle time.Duration) (*raw, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(at.CA))
	to, err := net.ResolveUDPAddr("udp4", at.Addr)
	if err != nil {
		return nil, err
	}
	r := &raw{socket: socket, transport: &quic.Transport{Conn: socket}}
	r.conn, err = r.transport.Dial(ctx, to, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: "localhost"}, &quic.Config{
		MaxIncomingUniStreams: 4096, MaxIdleTimeout: idle, HandshakeIdleTimeout: patience, InitialPacketSize: 1200,
	})
	if err != nil {
		r.release()
		return nil, fmt.Errorf("dial: %w", err)
	}
	return r, nil
}

// loopback opens a socket for one raw client.
func loopback() (net.PacketConn, error) {
	return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

// release gives the socket back. A connection that is still open ends without a word to the broker if the socket was closed before.
func (r *raw) release() {
	_ = r.transport.Close()
	_ = r.socket.Close()
}

// ask sends a request on a stream that has signed in.
func ask(s *quic.Stream, m wire.Message) (wire.Message, error) {
	if _, err := s.Write(wire.AppendJSONFrame(nil, m)); err != nil {
		return nil, err
	}
	_, payload, err := readFrame(s)
	if err != nil {
		return nil, err
	}
	return wire.DecodeJSON(payload)
}

func readFrame(r io.Reader) (wire.Header, []byte, error) {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return wire.Header{}, nil, err
	}
	h, err := wire.ParseHeader(head[:], wire.MaxPayload)
	if err != nil {
		return wire.Header{}, nil, err
	}
	payload := make([]byte, h.Length)
	_, err = io.ReadFull(r, payload)
	return h, payload, err
}

// signIn opens a stream and authenticates it, as a client that reads JSON answers and binary events.
func (r *raw) signIn(ctx context.Context) (*quic.Stream, error) {
	s, err := r.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	_ = s.SetDeadline(time.Now().Add(patience))
	flags := wire.FlagPublishBatch | wire.FlagPublishAcked | wire.FlagPublishAck | wire.FlagPublishAckCode | wire.FlagEventBatch | wire.FlagEventBatchShared
	m, err := ask(s, &wire.Auth{TenantID: testkit.Tenant, Token: testkit.Token, ClientFlags: wire.Some(flags), ClientFeatures: wire.Some(wire.FeatureErrorCodes)})
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", err)
	}
	if _, ok := m.(*wire.AuthOK); !ok {
		return nil, fmt.Errorf("sign in: answered %s", m.MessageType())
	}
	return s, nil
}

// subscribe opens a subscription and returns its event stream, behind its first frame.
func (r *raw) subscribe(ctx context.Context, s *quic.Stream, stream string) (*quic.ReceiveStream, error) {
	m, err := ask(s, &wire.Subscribe{TenantID: testkit.Tenant, Namespace: namespace, Stream: stream, Start: wire.Some(wire.Start{Kind: wire.StartEarliest})})
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	if _, ok := m.(*wire.Subscribed); !ok {
		return nil, fmt.Errorf("subscribe: answered %s", m.MessageType())
	}
	events, err := r.conn.AcceptUniStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("take the event stream: %w", err)
	}
	_ = events.SetReadDeadline(time.Now().Add(patience))
	_, _, err = readFrame(events) // its hello
	return events, err
}

// publishRaw publishes a record on a stream that has signed in, and waits for its answer.
func publishRaw(s *quic.Stream, stream string, n uint64) error {
	p := &wire.Publish{
		Flags: wire.FlagPublishBatch | wire.FlagPublishAcked, RequestID: 1, Ack: wire.AckPerBatch, Tenant: []byte(testkit.Tenant), Namespace: []byte(namespace),
		Stream: []byte(stream), Count: 1, Region: wire.AppendPayload(nil, record(n, 100)),
	}
	if _, err := s.Write(wire.AppendPublish(nil, p)); err != nil {
		return err
	}
	h, payload, err := readFrame(s)
	if err != nil {
		return err
	}
	a, err := wire.DecodePublishAck(h.Flags, payload)
	if err == nil && a.Refusal != nil {
		err = errors.New(a.Refusal.Message)
	}
	return err
}
