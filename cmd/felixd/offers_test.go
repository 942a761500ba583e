package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixd/felixd/wire"
)

// trusted is the authority of a daemon.
func (r *running) trusted(t *testing.T) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(r.dev.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("the authority is none")
	}
	return pool
}

// tryDial connects with QUIC alone.
func (r *running) tryDial(t *testing.T, protocols ...string) (*quic.Conn, error) {
	t.Helper()
	trust := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.trusted(t), NextProtos: protocols}
	return quic.DialAddr(t.Context(), r.dev.ClientAddr, trust, &quic.Config{HandshakeIdleTimeout: patience})
}

// dial is a connection made of QUIC alone, as long as the test goes.
func (r *running) dial(t *testing.T) *quic.Conn {
	t.Helper()
	c, err := r.tryDial(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseWithError(0, "") })
	return c
}

// offered is what a daemon says of itself to a client that offers everything.
func (r *running) offered(t *testing.T) *wire.AuthOK {
	t.Helper()
	s, err := r.dial(t).OpenStreamSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = s.SetDeadline(time.Now().Add(patience))
	_, err = s.Write(wire.AppendJSONFrame(nil, &wire.Auth{
		TenantID: r.dev.TenantID, Token: r.dev.ClientToken, ClientFlags: wire.Some(wire.Flags(0xFFFF)), ClientFeatures: wire.Some(^wire.Features(0)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(s, head); err != nil {
		t.Fatal(err)
	}
	h, err := wire.ParseHeader(head, wire.MaxPayload)
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, h.Length)
	if _, err := io.ReadFull(s, body); err != nil {
		t.Fatal(err)
	}
	m, err := wire.DecodeJSON(body)
	if ok, is := m.(*wire.AuthOK); is && err == nil {
		return ok
	}
	t.Fatalf("auth was answered %s, %v", body, err)
	return nil
}

// groupFeatures are what clients are told of groups.
const groupFeatures = wire.FeatureConsumerGroup | wire.FeatureGroupDeadLetters | wire.FeatureGroupClaimControl | wire.FeatureGroupAdmin

// Every listener is tried: the one for clients, the API, and health and metrics where somebody else than this machine reaches them. None of them
// answers a hello of TLS 1.2, or plain HTTP.
//
// mission 199, mission 379
func TestEveryListenerSpeaksTLS13AndNothingOlder(t *testing.T) {
	r := start(t, t.TempDir(), "--http", "0.0.0.0:0")
	defer r.stop(t)
	if v := r.dial(t).ConnectionState().TLS.Version; v != tls.VersionTLS13 {
		t.Errorf("clients are served over %s", tls.VersionName(v))
	}
	for name, url := range map[string]string{"--api": r.dev.ControlPlane, "--http": r.dev.HTTP} {
		_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "https://"))
		if err != nil {
			t.Fatalf("%s is at %s, %v", name, url, err)
		}
		addr := net.JoinHostPort("127.0.0.1", port)
		c, err := tls.Dial("tcp", addr, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.trusted(t)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v := c.ConnectionState().Version; v != tls.VersionTLS13 {
			t.Errorf("%s is served over %s", name, tls.VersionName(v))
		}
		_ = c.Close()
		if c, err := tls.Dial("tcp", addr, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, RootCAs: r.trusted(t)}); err == nil {
			_ = c.Close()
			t.Errorf("%s took TLS 1.2", name)
		} else if !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("%s refused TLS 1.2 for another reason: %v", name, err)
		}
		if got := plainly(t, addr); strings.Contains(got, " 200 ") {
			t.Errorf("%s answered plain HTTP: %q", name, got)
		}
	}
}

// plainly is what an address answers to a request without TLS.
func plainly(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "GET /live HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c) // an alert, a refusal, or nothing
	return string(answer)
}
