package transport

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

func TestCAComesBackThroughPEMAndIssuesLeavesThatVerify(t *testing.T) {
	now := time.Now()
	made := must[*CA](t)(NewCA("round trip", now, rand.Reader))
	read := must[*CA](t)(ParseCA(made.CertPEM, made.KeyPEM))
	if !bytes.Equal(made.CertPEM, read.CertPEM) || !bytes.Equal(made.KeyPEM, read.KeyPEM) {
		t.Error("the PEM blocks changed on the way")
	}
	if !read.cert.IsCA || !read.cert.MaxPathLenZero || read.cert.MaxPathLen != 0 {
		t.Error("the authority is not marked CA:TRUE with path length 0")
	}
	if years := read.cert.NotAfter.Sub(now).Hours() / 24 / 365; years < 9.9 || years > 10.1 {
		t.Errorf("valid for %.1f years", years)
	}
	leaf := issueSource(t, read, LeafRequest{Names: []string{"localhost", "10.1.2.3", "::1"}}).Leaf()
	if leaf.IsCA || !leaf.BasicConstraintsValid {
		t.Error("the leaf is not marked CA:FALSE")
	}
	for _, name := range []string{"localhost", "10.1.2.3", "::1"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool(t, made), DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	clientUse := x509.VerifyOptions{Roots: pool(t, made), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := leaf.Verify(clientUse); err == nil {
		t.Error("a server certificate serves a client")
	}
	both := issueSource(t, read, LeafRequest{Names: []string{"node-1"}, Client: true}).Leaf()
	if _, err := both.Verify(clientUse); err != nil {
		t.Error(err)
	}
}

func TestUnusableCertificateRequestsAreTypedErrors(t *testing.T) {
	ca := newTestCA(t)
	for name, req := range map[string]LeafRequest{
		"no name":         {Lifetime: time.Hour},
		"empty name":      {Names: []string{"a", ""}, Lifetime: time.Hour},
		"no lifetime":     {Names: []string{"a"}},
		"outlives its CA": {Names: []string{"a"}, Lifetime: 11 * 365 * 24 * time.Hour},
		"relative URI":    {URIs: []string{"alice"}, Lifetime: time.Hour},
		"broken URI":      {URIs: []string{"felix:%zz\x00"}, Lifetime: time.Hour},
	} {
		req.Now = time.Now()
		var bad *CertError
		if _, _, err := ca.Issue(req); !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a *CertError", name, err)
		}
	}
	var bad *CertError
	if _, err := NewCA("", time.Now(), nil); !errors.As(err, &bad) {
		t.Errorf("nameless authority: %v", err)
	}
}

// Keys made by other tools come as RSA or in the older EC form, and bundles carry blocks of other kinds.
func TestAuthoritiesOfOtherTools(t *testing.T) {
	ca := newTestCA(t)
	der := must[[]byte](t)(x509.MarshalECPrivateKey(ca.key))
	old := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	bundle := append(bytes.Clone(ca.KeyPEM), ca.CertPEM...)
	read := must[*CA](t)(ParseCA(bundle, append(bytes.Clone(ca.CertPEM), old...)))
	issueSource(t, read, LeafRequest{Names: []string{"localhost"}})

	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edDER := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(ed))
	for name, block := range map[string]*pem.Block{
		"other algorithm": {Type: "PRIVATE KEY", Bytes: edDER}, "damaged": {Type: "PRIVATE KEY", Bytes: []byte{1}},
		"damaged, old form": {Type: "EC PRIVATE KEY", Bytes: []byte{1}},
	} {
		var bad *CertError
		if _, err := ParseCA(ca.CertPEM, pem.EncodeToMemory(block)); !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a *CertError", name, err)
		}
	}
	var bad *CertError
	junk := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}})
	if _, err := ParseCertPool(junk); !errors.As(err, &bad) {
		t.Errorf("damaged certificate: got %v, want a *CertError", err)
	}
}

func TestUnusableAuthoritiesAndPairsAreTypedErrors(t *testing.T) {
	a, b := newTestCA(t), newTestCA(t)
	leafCert, leafKey, err := a.Issue(LeafRequest{Names: []string{"x"}, Now: time.Now(), Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(a.CertPEM, []byte("MII"), []byte("MIA"), 1)
	for name, pair := range map[string][2][]byte{
		"swapped": {a.KeyPEM, a.CertPEM}, "foreign key": {a.CertPEM, b.KeyPEM}, "leaf": {leafCert, leafKey},
		"no key": {a.CertPEM, nil}, "empty": {nil, nil},
	} {
		var bad *CertError
		if _, err := ParseCA(pair[0], pair[1]); !errors.As(err, &bad) {
			t.Errorf("authority, %s: got %v, want a *CertError", name, err)
		}
	}
	for name, pair := range map[string][2][]byte{
		"foreign key": {leafCert, b.KeyPEM}, "no key": {leafCert, nil}, "damaged": {damaged, a.KeyPEM}, "empty": {nil, nil},
	} {
		var bad *CertError
		if _, err := NewCertSource(pair[0], pair[1]); !errors.As(err, &bad) {
			t.Errorf("source, %s: got %v, want a *CertError", name, err)
		}
	}
}

func TestRotatedCertificateIsUsedByTheNextHandshakeAndOldConnectionsLive(t *testing.T) {
	h := openHouse(t, Policy{})
	serial := func(conn *quic.Conn) string {
		return conn.ConnectionState().TLS.PeerCertificates[0].SerialNumber.String()
	}
	first, firstServer := h.connect(t, h.options(t, ClientTLSOptions{}))
	before := h.src.Leaf().SerialNumber.String()
	cert, key, err := h.ca.Issue(LeafRequest{Names: []string{"127.0.0.1"}, Now: time.Now(), Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.src.Replace(cert, key); err != nil {
		t.Fatal(err)
	}
	var bad *CertError
	if err := h.src.Replace(cert, nil); !errors.As(err, &bad) {
		t.Errorf("half a pair: got %v, want a *CertError", err)
	}
	second, _ := h.connect(t, h.options(t, ClientTLSOptions{}))
	if serial(first) != before || serial(second) != h.src.Leaf().SerialNumber.String() || serial(first) == serial(second) {
		t.Errorf("serials: first %s, second %s, source before %s", serial(first), serial(second), before)
	}
	go echoOne(firstServer)
	if got := ask(t, first, "still here?"); got != "still here?" {
		t.Errorf("the old connection answered %q", got)
	}
}
