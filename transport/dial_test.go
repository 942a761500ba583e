package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// silence is an address where a socket takes datagrams and never answers.
func silence(t *testing.T) string {
	t.Helper()
	conn := must[net.PacketConn](t)(net.ListenPacket("udp4", "127.0.0.1:0"))
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

func anyClientTLS(t *testing.T) *tls.Config {
	t.Helper()
	return must[*tls.Config](t)(ClientTLS(ClientTLSOptions{}))
}

func TestNobodyAnsweringIsUnreachable(t *testing.T) {
	o := DialOptions{
		Addr: silence(t), TLS: anyClientTLS(t), QUIC: ClientQUIC(ClientOptions{HandshakeTimeout: 100 * time.Millisecond}),
	}
	_, err := dialFor(t, o)
	if failed := wantDialKind(t, err, DialUnreachable); !failed.Retryable() {
		t.Error("not retryable")
	}
}

func TestDeadlineIsUnreachableAndCancelIsCanceled(t *testing.T) {
	o := DialOptions{Addr: silence(t), TLS: anyClientTLS(t)}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, _, err := Dial(short, o)
	wantDialKind(t, err, DialUnreachable)
	canceled, cancelNow := context.WithCancel(context.Background())
	cancelNow()
	_, _, err = Dial(canceled, o)
	wantDialKind(t, err, DialCanceled)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
	if _, err = DialConn(canceled, o); err == nil {
		t.Error("DialConn ignored its context")
	}
}

func TestUnusableDialOptionsAreInvalid(t *testing.T) {
	for name, o := range map[string]DialOptions{
		"no TLS":        {Addr: "127.0.0.1:5000"},
		"no port":       {Addr: "127.0.0.1", TLS: anyClientTLS(t)},
		"port 0":        {Addr: "127.0.0.1:0", TLS: anyClientTLS(t)},
		"port too high": {Addr: "127.0.0.1:65536", TLS: anyClientTLS(t)},
		"no host":       {Addr: ":5000", TLS: anyClientTLS(t)},
		"local address": {Addr: "127.0.0.1:5000", TLS: anyClientTLS(t), LocalAddr: &net.UDPAddr{IP: net.ParseIP("::1")}},
	} {
		_, err := dialFor(t, o)
		var failed *DialError
		if !errors.As(err, &failed) || failed.Kind != DialInvalid {
			t.Errorf("%s: got %v, want kind %q", name, err, DialInvalid)
		}
	}
}

func TestKindsOfFailuresThatNeedANetworkToHappen(t *testing.T) {
	for _, c := range []struct {
		err  error
		want DialKind
	}{
		{&net.DNSError{Err: "no such host"}, DialUnreachable},
		{&net.OpError{Err: syscall.ENETUNREACH}, DialUnreachable},
		{&quic.VersionNegotiationError{}, DialALPN},
		{&quic.ApplicationError{Remote: true}, DialRefused},
		{&quic.TransportError{ErrorCode: quic.ProtocolViolation}, DialInvalid},
	} {
		failed := &DialError{Addr: "a:1", Err: c.err, Kind: dialKind(c.err)}
		if failed.Kind != c.want || failed.Advice() == "" {
			t.Errorf("%v: kind %q, want %q", c.err, failed.Kind, c.want)
		}
	}
}

func TestHandshakeFailuresHaveAReason(t *testing.T) {
	for _, c := range []struct {
		err     error
		stopped bool
		want    string
	}{
		{&quic.TransportError{ErrorCode: 0x178}, false, FailedALPN},
		{&quic.TransportError{ErrorCode: 0x12a, Remote: true}, false, FailedTLS},
		{&quic.HandshakeTimeoutError{}, false, FailedTimeout},
		{&quic.IdleTimeoutError{}, false, FailedTimeout},
		{&quic.TransportError{ErrorCode: quic.ConnectionRefused}, false, FailedQueueFull},
		{&quic.TransportError{ErrorCode: quic.ConnectionRefused}, true, FailedShutdown},
		{&quic.TransportError{ErrorCode: quic.ApplicationErrorErrorCode, Remote: true}, false, FailedAbandoned},
		{&quic.ApplicationError{Remote: true}, false, FailedAbandoned},
		{&quic.TransportError{ErrorCode: quic.ProtocolViolation}, false, FailedOther},
		{io.EOF, false, FailedOther},
	} {
		if got := failureReason(c.err, c.stopped); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

func TestHostOfTheAddressIsVerifiedWhenNoNameIsGiven(t *testing.T) {
	h := openHouse(t, Policy{})
	o := h.options(t, ClientTLSOptions{})
	if o.TLS.ServerName != "" {
		t.Fatal("the options name a server")
	}
	h.connect(t, o)
	if o.TLS.ServerName != "" {
		t.Error("dialing changed the caller's configuration")
	}
}

func TestSocketOfDialConnClosesWithItsConnection(t *testing.T) {
	h := openHouse(t, Policy{})
	conn := must[*quic.Conn](t)(DialConn(within(t), h.options(t, ClientTLSOptions{})))
	local := conn.LocalAddr().(*net.UDPAddr)
	Close(conn, CloseShutdown)
	eventually(t, "its port is free again", func() bool {
		again, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4zero, Port: local.Port})
		if err == nil {
			again.Close()
		}
		return err == nil
	})
}
