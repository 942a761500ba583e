package transport

import (
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"
)

// CertSource holds the certificate a listener presents and lets it be replaced while the listener runs: the next handshake
// presents the new one, and connections that exist keep what they agreed on. It is safe for concurrent use.
type CertSource struct {
	current atomic.Pointer[tls.Certificate]
}

// NewCertSource checks that the chain (leaf first) and the key belong together and holds them. It returns a *CertError
// otherwise.
func NewCertSource(certPEM, keyPEM []byte) (*CertSource, error) {
	s := new(CertSource)
	if err := s.Replace(certPEM, keyPEM); err != nil {
		return nil, err
	}
	return s, nil
}

// Replace presents another certificate from the next handshake on. When the pair is unusable it returns a *CertError and
// the current certificate stays, so that a half-written file cannot take a listener down.
func (s *CertSource) Replace(certPEM, keyPEM []byte) error {
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return &CertError{
			Op: "load server certificate", Advice: "give the PEM chain, leaf first, and the private key of that leaf", Err: err,
		}
	}
	if cert.Leaf == nil { // a GODEBUG setting can leave it out
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return &CertError{Op: "load server certificate", Advice: "replace the damaged leaf", Err: err}
		}
	}
	s.current.Store(&cert)
	return nil
}

// Leaf returns the certificate that the next handshake presents: its expiry for a gauge, its serial for a log line. Do not
// modify it.
func (s *CertSource) Leaf() *x509.Certificate { return s.current.Load().Leaf }

// Certificate returns the whole current pair, for a dialer that presents it. Do not modify it.
func (s *CertSource) Certificate() *tls.Certificate { return s.current.Load() }

func (s *CertSource) forServer(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.current.Load(), nil
}

func (s *CertSource) forClient(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return s.current.Load(), nil
}
