package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
)

func pool(t *testing.T, ca *CA) *x509.CertPool {
	t.Helper()
	return must[*x509.CertPool](t)(ParseCertPool(ca.CertPEM))
}

// tryPipe runs a TLS handshake over a pipe in memory and returns what each side saw.
func tryPipe(server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	a, b := net.Pipe()
	done := make(chan error, 1)
	go func() {
		conn := tls.Server(a, server)
		err := conn.HandshakeContext(context.Background())
		done <- err
		a.Close()
	}()
	conn := tls.Client(b, client)
	clientErr = conn.HandshakeContext(context.Background())
	serverErr = <-done
	state = conn.ConnectionState()
	b.Close()
	return state, serverErr, clientErr
}

func pipeHandshake(t *testing.T, server, client *tls.Config) tls.ConnectionState {
	t.Helper()
	state, serverErr, clientErr := tryPipe(server, client)
	if err := errors.Join(serverErr, clientErr); err != nil {
		t.Fatal(err)
	}
	return state
}

// mission 199
func TestTLS12IsRefusedByEveryListenerConfiguration(t *testing.T) {
	ca := newTestCA(t)
	src := issueSource(t, ca, LeafRequest{Names: []string{"localhost"}})
	for name, config := range map[string]*tls.Config{
		"quic": ServerTLS(src, Policy{}), "quic with ALPN": ServerTLS(src, Policy{RequireALPN: true}), "https": HTTPSTLS(src, Policy{}),
	} {
		client := &tls.Config{RootCAs: pool(t, ca), ServerName: "localhost", MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
		_, serverErr, clientErr := tryPipe(config, client)
		if serverErr == nil || clientErr == nil {
			t.Errorf("%s: a TLS 1.2 handshake succeeded (%v, %v)", name, serverErr, clientErr)
		}
		if serverErr != nil && !strings.Contains(serverErr.Error(), "unsupported versions") {
			t.Errorf("%s: refused for another reason: %v", name, serverErr)
		}
	}
	client := must[*tls.Config](t)(ClientTLS(ClientTLSOptions{CAPEM: ca.CertPEM, ServerName: "localhost"}))
	old := &tls.Config{GetCertificate: src.forServer, MaxVersion: tls.VersionTLS12}
	if _, serverErr, clientErr := tryPipe(old, client); serverErr == nil || clientErr == nil {
		t.Errorf("our client accepted a TLS 1.2 server (%v, %v)", serverErr, clientErr)
	}
}

// A resumed session shows no certificate, so that a rotated or revoked one would go unnoticed.
func TestSessionsAreNeverResumed(t *testing.T) {
	h := openHouse(t, Policy{})
	o := h.options(t, ClientTLSOptions{})
	o.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	for range 3 {
		client, server := h.connect(t, o)
		go echoOne(server)
		ask(t, client, "time for a ticket to arrive")
		if client.ConnectionState().TLS.DidResume {
			t.Error("the handshake resumed a session")
		}
	}
}

func TestUntrustedAuthorityIsATypedDialError(t *testing.T) {
	failures := new(recorder)
	h := openHouse(t, Policy{}, countFailures(failures))
	stranger := newTestCA(t)
	_, err := dialFor(t, h.options(t, ClientTLSOptions{CAPEM: stranger.CertPEM}))
	wantDialKind(t, err, DialTLS)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("the cause is lost: %v", err)
	}
	failures.wait(t, FailedTLS, 1)
}

func TestWrongServerNameIsATypedDialError(t *testing.T) {
	h := openHouse(t, Policy{})
	_, err := dialFor(t, h.options(t, ClientTLSOptions{ServerName: "elsewhere.example"}))
	wantDialKind(t, err, DialTLS)
	var wrong x509.HostnameError
	if !errors.As(err, &wrong) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestTrustAnchorsWithoutCertificateAreRefused(t *testing.T) {
	ca := newTestCA(t)
	for _, text := range [][]byte{[]byte("no PEM at all"), ca.KeyPEM} {
		_, err := ClientTLS(ClientTLSOptions{CAPEM: text})
		var bad *CertError
		if !errors.As(err, &bad) || !errors.Is(err, ErrNoCertificates) {
			t.Errorf("got %v, want a *CertError of ErrNoCertificates", err)
		}
	}
}

func TestTwoClientCertificatesAreRefused(t *testing.T) {
	src := issueSource(t, newTestCA(t), LeafRequest{Names: []string{"x"}, Client: true})
	var bad *CertError
	if _, err := ClientTLS(ClientTLSOptions{Cert: src.Certificate(), CertSource: src}); !errors.As(err, &bad) {
		t.Errorf("got %v, want a *CertError", err)
	}
}

// mission 200: a client certificate can be made compulsory.
func TestRequiredClientCertificateIsDemanded(t *testing.T) {
	ca := newTestCA(t)
	src := issueSource(t, ca, LeafRequest{Names: []string{"localhost", "127.0.0.1"}})
	failures := new(recorder)
	h := openHouseWith(t, ca, src, Policy{ClientCAs: pool(t, ca)}, countFailures(failures))

	own := issueSource(t, ca, LeafRequest{URIs: []string{PrincipalURI + "alice"}, Client: true})
	_, server := h.connect(t, h.options(t, ClientTLSOptions{CertSource: own}))
	if err := CheckSubject(server.ConnectionState().TLS, "alice"); err != nil {
		t.Error(err)
	}
	foreign := issueSource(t, newTestCA(t), LeafRequest{Names: []string{"alice"}, Client: true})
	serverOnly := issueSource(t, ca, LeafRequest{Names: []string{"alice"}})
	for i, cert := range []*tls.Certificate{nil, foreign.Certificate(), serverOnly.Certificate()} {
		conn, err := dialFor(t, h.options(t, ClientTLSOptions{Cert: cert}))
		if err == nil { // the server judges after the client's half of the handshake
			err = ended(t, conn)
		}
		if _, ok := alertOf(err); !ok {
			t.Errorf("case %d ended with %v, want a TLS alert", i, err)
		}
		failures.wait(t, FailedTLS, i+1)
	}
}

// mission 200: a token can be bound to the certificate it comes with.
func TestSubjectOfTokenMustBeInTheCertificate(t *testing.T) {
	ca := newTestCA(t)
	leaf := func(req LeafRequest) tls.ConnectionState {
		return tls.ConnectionState{PeerCertificates: []*x509.Certificate{issueSource(t, ca, req).Leaf()}}
	}
	long := strings.Repeat("ab", 32)
	accepted := []struct {
		state    tls.ConnectionState
		subjects []string
	}{
		{leaf(LeafRequest{URIs: []string{PrincipalURI + long}}), []string{long}},
		{leaf(LeafRequest{URIs: []string{PrincipalURI + "actor"}}), []string{"someone", "actor"}},
		{leaf(LeafRequest{Names: []string{"svc.example"}}), []string{"SVC.example"}},
		{leaf(LeafRequest{Names: []string{"10.0.0.7"}}), []string{"10.0.0.7"}},
	}
	for _, c := range accepted {
		if err := CheckSubject(c.state, c.subjects...); err != nil {
			t.Error(err)
		}
	}
	refused := []struct {
		state    tls.ConnectionState
		subjects []string
	}{
		{tls.ConnectionState{}, []string{"alice"}},
		{leaf(LeafRequest{URIs: []string{PrincipalURI + "alice"}}), []string{"Alice"}},
		{leaf(LeafRequest{URIs: []string{PrincipalURI + "alice"}}), []string{""}},
		{leaf(LeafRequest{URIs: []string{"other:principal:alice"}}), []string{"alice"}},
		{leaf(LeafRequest{Names: []string{"svc.example"}}), []string{"svc"}},
		{leaf(LeafRequest{Names: []string{"svc.example"}}), nil},
	}
	for i, c := range refused {
		var mismatch *SubjectError
		if err := CheckSubject(c.state, c.subjects...); !errors.As(err, &mismatch) {
			t.Errorf("case %d: got %v, want a *SubjectError", i, err)
		}
	}
}

// mission 201
func TestHandshakeWithAnotherCipherSuiteIsClosed(t *testing.T) {
	open := openHouse(t, Policy{})
	client, _ := open.connect(t, open.options(t, ClientTLSOptions{}))
	chosen := client.ConnectionState().TLS.CipherSuite
	others := suitesExcept(t, chosen)

	failures := new(recorder)
	strict := openHouse(t, Policy{CipherSuites: others}, countFailures(failures))
	conn, err := dialFor(t, strict.options(t, ClientTLSOptions{}))
	if err == nil { // the server judges after the client's half of the handshake
		err = ended(t, conn)
	}
	if _, ok := alertOf(err); !ok {
		t.Errorf("ended with %v, want a TLS alert", err)
	}
	failures.wait(t, FailedTLS, 1)

	_, err = dialFor(t, open.options(t, ClientTLSOptions{CipherSuites: others}))
	wantDialKind(t, err, DialTLS)
	var refused *CipherError
	if !errors.As(err, &refused) || refused.Suite != chosen {
		t.Errorf("got %v, want a *CipherError about %s", err, tls.CipherSuiteName(chosen))
	}

	fitting := openHouse(t, Policy{CipherSuites: []uint16{chosen}})
	fitting.connect(t, fitting.options(t, ClientTLSOptions{CipherSuites: []uint16{chosen}}))
}

// mission 201
func TestEnforcingCipherSuitesClosesAnOpenConnection(t *testing.T) {
	h := openHouse(t, Policy{})
	client, server := h.connect(t, h.options(t, ClientTLSOptions{}))
	chosen := server.ConnectionState().TLS.CipherSuite
	if err := EnforceCipherSuites(server, []uint16{chosen}); err != nil {
		t.Fatal(err)
	}
	if err := EnforceCipherSuites(server, nil); err != nil {
		t.Fatal(err)
	}
	var refused *CipherError
	if err := EnforceCipherSuites(server, suitesExcept(t, chosen)); !errors.As(err, &refused) {
		t.Fatalf("got %v, want a *CipherError", err)
	}
	wantClose(t, ended(t, client), CloseCipherSuite)
}

func suitesExcept(t *testing.T, id uint16) []uint16 {
	t.Helper()
	var rest []uint16
	for _, candidate := range must[[]uint16](t)(ParseCipherSuites(strings.Join(suiteNames(), ","))) {
		if candidate != id {
			rest = append(rest, candidate)
		}
	}
	return rest
}

func TestCipherSuiteNamesParse(t *testing.T) {
	got := must[[]uint16](t)(ParseCipherSuites(" tls_aes_128_gcm_sha256, AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256 "))
	if len(got) != 2 || got[0] != tls.TLS_AES_128_GCM_SHA256 || got[1] != tls.TLS_AES_256_GCM_SHA384 {
		t.Errorf("parsed %x", got)
	}
	if got := must[[]uint16](t)(ParseCipherSuites("  ")); got != nil {
		t.Errorf("empty parsed as %x", got)
	}
	for _, text := range []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "nonsense", ","} {
		if _, err := ParseCipherSuites(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func wantClose(t *testing.T, err error, want quic.ApplicationErrorCode) {
	t.Helper()
	code, remote, ok := CloseCode(err)
	if !ok || code != want || !remote {
		t.Errorf("ended with %v, want code %d from the peer", err, want)
	}
	var app *quic.ApplicationError
	if errors.As(err, &app) && app.ErrorMessage != closeReason(want) {
		t.Errorf("reason %q, want %q", app.ErrorMessage, closeReason(want))
	}
}
