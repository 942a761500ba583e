package hostile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
)

// peer is a client made of QUIC and the wire format alone: it can do what the real client never would.
type peer struct {
	t testing.TB
	c *quic.Conn
}

// caller dials from one address of the loopback network, on one socket.
type caller struct {
	t    testing.TB
	h    *house
	q    *quic.Transport
	conf *tls.Config
	addr *net.UDPAddr
}

// from makes a caller at 127.0.0.host. Attackers call from addresses of their own, as they would from outside.
func (h *house) from(t testing.TB, host byte) *caller {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(h.CA))
	socket := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, host)}))(t)
	c := &caller{
		t: t, h: h, q: &quic.Transport{Conn: socket}, addr: must(net.ResolveUDPAddr("udp4", h.Addr))(t),
		conf: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: "localhost"},
	}
	t.Cleanup(func() { _ = c.q.Close(); _ = socket.Close() })
	return c
}

// try dials once.
func (c *caller) try(ctx context.Context) (*quic.Conn, error) {
	return c.q.Dial(ctx, c.addr, c.conf, &quic.Config{
		MaxIncomingUniStreams: 4096, KeepAlivePeriod: 5 * time.Second, HandshakeIdleTimeout: handshakeMost, InitialPacketSize: 1200,
	})
}

// handshakeMost is for how long a handshake may stand still before a caller gives it up. Some brokers here do so after a second.
const handshakeMost = 10 * time.Second

// dial connects.
func (c *caller) dial() *peer {
	c.t.Helper()
	return must(c.connect())(c.t)
}

// connect connects. A handshake that was given up because the machine was too slow for it is tried again. The error is the broker's word if it has
// closed the connection before anybody here looked.
func (c *caller) connect() (*peer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := c.try(ctx)
		if err == nil {
			c.t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
			return &peer{t: c.t, c: conn}, nil
		}
		var gaveUp *quic.HandshakeTimeoutError
		if !errors.As(err, &gaveUp) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// neverThere waits for the end of the connection, and reports whether the broker never said a word of it: it has given up the handshake, since the
// machine held up what the peer had to say last in it.
func (p *peer) neverThere() bool {
	p.t.Helper()
	select {
	case <-p.c.Context().Done():
	case <-time.After(patience):
		p.t.Fatal("the broker did not close the connection")
	}
	var silence *quic.IdleTimeoutError
	return errors.As(context.Cause(p.c.Context()), &silence)
}

// closedWith waits until the broker closes the connection, with one of the codes.
func (p *peer) closedWith(codes ...quic.ApplicationErrorCode) {
	p.t.Helper()
	select {
	case <-p.c.Context().Done():
	case <-time.After(patience):
		p.t.Fatal("the broker did not close the connection")
	}
	var app *quic.ApplicationError
	if err := context.Cause(p.c.Context()); !errors.As(err, &app) || !app.Remote || !slices.Contains(codes, app.ErrorCode) || app.ErrorMessage == "" {
		p.t.Errorf("the connection ended with %v, want a code of %d and its reason", err, codes)
	}
}

// line is one stream of a peer. s is nil on an event stream, r on a unidirectional one.
type line struct {
	t testing.TB
	s interface {
		io.Writer
		Close() error
		CancelWrite(quic.StreamErrorCode)
	}
	r interface {
		io.Reader
		CancelRead(quic.StreamErrorCode)
	}
}

func (p *peer) bare() *line {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := must(p.c.OpenStreamSync(ctx))(p.t)
	_ = s.SetDeadline(time.Now().Add(patience))
	return &line{t: p.t, s: s, r: s}
}

// publishOnly opens a unidirectional stream.
func (p *peer) publishOnly() *line {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := must(p.c.OpenUniStreamSync(ctx))(p.t)
	_ = s.SetWriteDeadline(time.Now().Add(patience))
	return &line{t: p.t, s: s}
}

// open opens a stream and authenticates it, offering all that this version knows.
func (p *peer) open() *line {
	p.t.Helper()
	l := p.bare()
	if f := l.ask(today()); f.message == nil || f.message.MessageType() != "auth_ok" {
		p.t.Fatalf("auth was answered %s", f)
	}
	return l
}

// frame is one frame from the broker, decoded as far as it can be.
type frame struct {
	flags   wire.Flags
	payload []byte
	message wire.Message
	ack     wire.PublishAck
}

func (f frame) String() string { return fmt.Sprintf("0x%04x %.300q", uint16(f.flags), f.payload) }

// refusal is what the frame refuses, if it does.
func (f frame) refusal() *wire.Refusal {
	switch m := f.message.(type) {
	case *wire.ErrorAnswer:
		r := m.Refusal()
		return &r
	case *wire.PublishError:
		r := m.Refusal()
		return &r
	}
	return f.ack.Refusal
}

func (l *line) raw(b []byte) {
	l.t.Helper()
	if _, err := l.s.Write(b); err != nil {
		l.t.Fatalf("write to the broker: %v", err)
	}
}

// read takes the next frame; the error is io.EOF at a clean end of the stream.
func (l *line) read() (f frame, err error) {
	head := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(l.r, head); err != nil {
		return f, err
	}
	h, err := wire.ParseHeader(head, wire.MaxPayload)
	if err != nil {
		return f, err
	}
	f.flags, f.payload = h.Flags, make([]byte, h.Length)
	if _, err := io.ReadFull(l.r, f.payload); err != nil {
		return f, err
	}
	switch {
	case f.flags == 0:
		f.message, err = wire.DecodeJSON(f.payload)
	case f.flags.Has(wire.FlagPublishAck):
		f.ack, err = wire.DecodePublishAck(f.flags, f.payload)
	}
	return f, err
}

func (l *line) next() frame {
	l.t.Helper()
	f, err := l.read()
	if err != nil {
		l.t.Fatalf("read from the broker: %v", err)
	}
	return f
}

func (l *line) ask(m wire.Message) frame {
	l.t.Helper()
	l.raw(wire.AppendJSONFrame(nil, m))
	return l.next()
}

// over requires that the broker finishes the stream in order, with nothing more said.
func (l *line) over(what string) {
	l.t.Helper()
	if f, err := l.read(); !errors.Is(err, io.EOF) {
		l.t.Errorf("%s: the stream did not end cleanly: %s, %v", what, f, err)
	}
}

// alive requires that the stream still serves.
func (l *line) alive(what string) {
	l.t.Helper()
	f, err := frame{}, error(nil)
	if _, err = l.s.Write(wire.AppendJSONFrame(nil, &wire.Topology{})); err == nil {
		f, err = l.read()
	}
	if _, ok := f.message.(*wire.TopologyView); !ok {
		l.t.Errorf("%s: the stream serves no more: %s, %v", what, f, err)
	}
}

// finish ends both halves, which gives the stream's place back.
func (l *line) finish() {
	_ = l.s.Close()
	if l.r != nil {
		l.r.CancelRead(0)
	}
}

func nothing() *wire.Auth { return &wire.Auth{TenantID: tenant, Token: goodToken} }

func today() *wire.Auth {
	a := nothing()
	a.ClientFlags, a.ClientFeatures, a.ClientFeaturesHi = wire.Some(wire.KnownFlags), wire.Some(wire.Features(4218945535)), wire.Some(uint32(15))
	return a
}

// batchTo is a binary publish, acked unless id is 0.
func batchTo(stream string, id uint64, payloads ...string) []byte {
	p := &wire.Publish{
		Flags: wire.FlagPublishBatch, RequestID: id,
		Tenant: []byte(tenant), Namespace: []byte(namespace), Stream: []byte(stream), Count: uint32(len(payloads)),
	}
	if id != 0 {
		p.Flags, p.Ack = p.Flags|wire.FlagPublishAcked, wire.AckPerBatch
	}
	for _, s := range payloads {
		p.Region = wire.AppendPayload(p.Region, []byte(s))
	}
	return wire.AppendPublish(nil, p)
}

// jsonFrame is a frame around any text.
func jsonFrame(text string) []byte {
	return append(wire.AppendHeader(nil, wire.Header{Length: uint32(len(text))}), text...)
}
