package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
)

// Policy is what a listener demands of whoever connects. The zero value is the client listener of a default broker.
type Policy struct {
	// RequireALPN refuses clients that offer no application protocol. Off by default: widely used clients offer none.
	RequireALPN bool
	// Protocols are the application protocols this listener selects, preferred first. Empty means ALPNClient alone. The
	// listener for peers sets ALPNInternal together with RequireALPN.
	Protocols []string
	// ClientCAs, when set, makes a client certificate that chains to one of these authorities compulsory.
	ClientCAs *x509.CertPool
	// CipherSuites are the allowed TLS 1.3 suites (see ParseCipherSuites). Nil allows all of them. TLS 1.3 leaves the choice
	// to the library, so the list is enforced on what was chosen: a handshake that picked another suite is aborted.
	CipherSuites []uint16
}

// ServerTLS returns the configuration of a QUIC listener: TLS 1.3 only, the certificate of src at the moment of each
// handshake, and one rule for application protocols. A client that offers none gets none (unless p.RequireALPN); a client
// that offers a list gets this listener's protocol if it is in the list, and a failed handshake otherwise.
//
// Session tickets are off: each handshake presents the current certificate and proves the client's, which a resumed session
// would skip for as long as its ticket lives.
func ServerTLS(src *CertSource, p Policy) *tls.Config {
	base := serverBase(src, p)
	strict := base.Clone()
	strict.NextProtos = slices.Clone(p.Protocols)
	if len(strict.NextProtos) == 0 {
		strict.NextProtos = []string{ALPNClient}
	}
	if p.RequireALPN {
		return strict
	}
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if len(hello.SupportedProtos) > 0 {
			return strict, nil
		}
		return nil, nil // no offer: stay with base, which negotiates nothing
	}
	return base
}

// HTTPSTLS returns the configuration of the REST API's listener: TLS 1.3 only, HTTP/2 or HTTP/1.1. p.RequireALPN and
// p.Protocols have no meaning there and are ignored, since HTTP/1.1 clients may offer nothing.
func HTTPSTLS(src *CertSource, p Policy) *tls.Config {
	c := serverBase(src, p)
	c.NextProtos = []string{"h2", "http/1.1"} // RFC 7301 6, RFC 9113 3.2
	return c
}

func serverBase(src *CertSource, p Policy) *tls.Config {
	c := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         src.forServer,
		SessionTicketsDisabled: true,
		VerifyConnection:       verifySuite(p.CipherSuites),
	}
	if p.ClientCAs != nil {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		c.ClientCAs = p.ClientCAs
	}
	return c
}

// ClientTLSOptions describes whom a dialer trusts and what it offers.
type ClientTLSOptions struct {
	// CAPEM are the trust anchors. Empty means the platform's trust store; text without a certificate is an error.
	CAPEM []byte
	// ServerName is what the certificate must name: a DNS name or an IP address. Empty means the host part of the dialed
	// address.
	ServerName string
	// OfferALPN offers ALPNClient. Off by default, as in other clients of this protocol.
	OfferALPN bool
	// Protocols are offered instead of ALPNClient; a peer link sets ALPNInternal.
	Protocols []string
	// Cert is presented when the server asks for a client certificate.
	Cert *tls.Certificate
	// CertSource is presented like Cert, but read at each handshake, so that it can rotate. Set one of the two.
	CertSource *CertSource
	// CipherSuites are the allowed TLS 1.3 suites; nil allows all. See Policy.CipherSuites.
	CipherSuites []uint16
}

// ClientTLS returns the configuration of a dialer. The server's certificate is always verified. It returns a *CertError
// when o.CAPEM is given but holds no usable certificate, and when two certificates to present are given.
func ClientTLS(o ClientTLSOptions) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:       tls.VersionTLS13,
		ServerName:       o.ServerName,
		NextProtos:       slices.Clone(o.Protocols),
		VerifyConnection: verifySuite(o.CipherSuites),
	}
	if o.OfferALPN && len(c.NextProtos) == 0 {
		c.NextProtos = []string{ALPNClient}
	}
	if len(o.CAPEM) > 0 {
		pool, err := ParseCertPool(o.CAPEM)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	switch {
	case o.Cert != nil && o.CertSource != nil:
		return nil, &CertError{
			Op: "configure client TLS", Advice: "set either Cert or CertSource", Err: errors.New("two client certificates given"),
		}
	case o.Cert != nil:
		c.Certificates = []tls.Certificate{*o.Cert}
	case o.CertSource != nil:
		c.GetClientCertificate = o.CertSource.forClient
	}
	return c, nil
}
