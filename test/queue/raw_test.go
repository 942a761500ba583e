package queue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/client"
	"github.com/felixd/felixd/internal/testkit"
	"github.com/felixd/felixd/wire"
)

// rawDial is a connection to the daemon made of QUIC and the wire format alone, as long as the test goes: its streams have many requests under
// way each.
func (d *daemon) rawDial() *quic.Conn {
	d.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(d.Client().CAFile))(d.t))
	socket := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(d.t)
	t := &quic.Transport{Conn: socket}
	d.t.Cleanup(func() {
		_ = t.Close()
		_ = socket.Close()
	})
	ctx, cancel := testkit.Within()
	defer cancel()
	conn := must(t.Dial(ctx, must(net.ResolveUDPAddr("udp4", d.Client().Addrs[0]))(d.t), &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: client.DefaultServerName},
		&quic.Config{KeepAlivePeriod: 5 * time.Second, MaxIdleTimeout: testkit.Patience}))(d.t)
	d.t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return conn
}

// signIn opens a stream of a connection for what groups need.
func (d *daemon) signIn(ctx context.Context, conn *quic.Conn) (*quic.Stream, error) {
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	_, err = s.Write(wire.AppendJSONFrame(nil, &wire.Auth{
		TenantID: d.Client().TenantID, Token: d.Client().Token, ClientFlags: wire.Some(wire.FlagPublishAckCode), ClientFeatures: wire.Some(wire.FeatureErrorCodes | wire.FeatureConsumerGroup | wire.FeatureGroupClaimControl),
	}))
	if err != nil {
		return nil, err
	}
	m, err := readMessage(s)
	if _, ok := m.(*wire.AuthOK); err == nil && !ok {
		err = fmt.Errorf("sign in: answered %s", m.MessageType())
	}
	return s, err
}

// sendPolls sends polls for one record each, which wait.
func (d *daemon) sendPolls(s io.Writer, n int, wait time.Duration) error {
	var all []byte
	for i := range uint64(n) {
		all = wire.AppendJSONFrame(all, &wire.GroupPoll{
			GroupTarget: wire.GroupTarget{TenantID: d.Client().TenantID, Namespace: namespace, Stream: jobs, Group: workers, RequestID: i},
			MaxRecords:  1, WaitMillis: uint64(wait.Milliseconds()), VisibilityMillis: uint64(hour.Milliseconds()),
		})
	}
	_, err := s.Write(all)
	return err
}

// readPolls reads the answers of so many polls, and takes the payload of the one record of each.
func readPolls(s io.Reader, n int, take func(payload string)) error {
	for range n {
		m, err := readMessage(s)
		if err != nil {
			return err
		}
		a, ok := m.(*wire.GroupRecords)
		if !ok || len(a.Records) != 1 {
			return fmt.Errorf("a poll was answered with %s: %+v", m.MessageType(), m)
		}
		take(string(a.Records[0].Payload))
	}
	return nil
}

func readMessage(r io.Reader) (wire.Message, error) {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	h, err := wire.ParseHeader(head[:], wire.MaxPayload)
	if err != nil {
		return nil, err
	}
	payload := make([]byte, h.Length)
	if _, err = io.ReadFull(r, payload); err != nil {
		return nil, err
	}
	return wire.DecodeJSON(payload)
}
