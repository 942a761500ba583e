package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"
)

// LeafRequest says what a certificate is for.
type LeafRequest struct {
	// Names are what peers dial: DNS names and IP addresses, in any order. Each becomes a subject alternative name; a name
	// that parses as an IP address becomes an IP SAN. At least one of Names and URIs is needed.
	Names []string
	// URIs become URI SANs. A client certificate names its principal this way: "felix:principal:<sub>" (see CheckSubject).
	URIs []string
	// Now is the moment of issue. The certificate is valid from one hour before it.
	Now time.Time
	// Lifetime is how long after Now the certificate stays valid. It must be positive and must not outlive the authority.
	Lifetime time.Duration
	// Client also allows the certificate to be presented by the dialing side. Peer links need both sides, so the server use
	// always stays.
	Client bool
}

// Issue makes a fresh ECDSA P-256 key and signs a certificate for it: CA:FALSE, TLS server use (and client use if asked),
// the requested alternative names. The caller owns the returned PEM blocks; keyPEM is secret. It returns a *CertError for a
// request that cannot be served.
func (c *CA) Issue(req LeafRequest) (certPEM, keyPEM []byte, err error) {
	template, err := c.leafTemplate(req)
	if err != nil {
		return nil, nil, &CertError{Op: "issue certificate", Advice: "correct the request", Err: err}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), c.rand)
	if err != nil {
		return nil, nil, fmt.Errorf("issue certificate: generate key: %w", err)
	}
	der, err := x509.CreateCertificate(c.rand, template, c.cert, key.Public(), c.key)
	if err != nil {
		return nil, nil, fmt.Errorf("issue certificate: sign: %w", err)
	}
	keyPEM, err = encodeKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("issue certificate: %w", err)
	}
	return encodeCertificate(der), keyPEM, nil
}

func (c *CA) leafTemplate(req LeafRequest) (*x509.Certificate, error) {
	if len(req.Names)+len(req.URIs) == 0 {
		return nil, errors.New("no name to certify: clients verify names, so a certificate without one is useless")
	}
	if req.Lifetime <= 0 {
		return nil, fmt.Errorf("lifetime %v is not positive", req.Lifetime)
	}
	end := req.Now.Add(req.Lifetime)
	if end.After(c.cert.NotAfter) {
		return nil, fmt.Errorf("the certificate would end at %v, after its authority at %v: shorten the lifetime or make a new authority",
			end.UTC().Format(time.RFC3339), c.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	serial, err := newSerial(c.rand)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		NotBefore:             laterOf(req.Now.Add(-clockSkew), c.cert.NotBefore),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  false,
	}
	if req.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return template, addNames(template, req)
}

func addNames(template *x509.Certificate, req LeafRequest) error {
	for _, name := range req.Names {
		if name == "" {
			return errors.New("one of the names is empty")
		}
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	for _, text := range req.URIs {
		uri, err := url.Parse(text)
		if err != nil || uri.Scheme == "" {
			return fmt.Errorf("%q is not an absolute URI", text)
		}
		template.URIs = append(template.URIs, uri)
	}
	first := append(append([]string{}, req.Names...), req.URIs...)[0]
	template.Subject = pkix.Name{CommonName: commonName(first)}
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
