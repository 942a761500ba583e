package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"
)

const (
	// caYears is how long a certificate authority made here is valid. A development directory should outlive the project
	// that uses it; leaves are short instead.
	caYears = 10
	// clockSkew is how far before "now" a new certificate starts to be valid, so that a peer whose clock is behind by up to
	// this much accepts it.
	clockSkew = time.Hour
	// serialBytes is the length of a serial number: 128 random bits, well under the 20 octets RFC 5280 4.1.2.2 allows.
	serialBytes = 16
)

// CA is a small certificate authority for development and for peer links: one ECDSA P-256 key that signs leaf certificates
// and nothing else. A CA is immutable and safe for concurrent use.
type CA struct {
	// CertPEM is the certificate, the trust anchor to hand to clients. It is not secret. Do not modify.
	CertPEM []byte
	// KeyPEM is the private key in PKCS #8. Whoever has it can impersonate every server that clients of this CA dial. Do
	// not log it; do not modify.
	KeyPEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	rand io.Reader
}

// NewCA makes a certificate authority that is valid for ten years from now (and one hour before it, for clocks that are
// behind). Its certificate is marked CA:TRUE with path length 0: it can sign leaves but no further authorities. It must not
// be used as a server certificate itself; Issue one. A nil random means the system's source.
func NewCA(name string, now time.Time, random io.Reader) (*CA, error) {
	if name == "" {
		return nil, &CertError{Op: "make CA", Advice: "give the authority a name", Err: errors.New("the name is empty")}
	}
	if random == nil {
		random = rand.Reader
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("make CA %q: generate key: %w", name, err)
	}
	serial, err := newSerial(random)
	if err != nil {
		return nil, fmt.Errorf("make CA %q: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName(name)},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.AddDate(caYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make CA %q: sign: %w", name, err)
	}
	return assembleCA(der, key, random)
}

// ParseCA reads back what NewCA produced. It returns a *CertError when either part is not PEM, when the certificate is not an
// authority, or when the key does not belong to it. The slices are copied.
func ParseCA(certPEM, keyPEM []byte) (*CA, error) {
	certs, err := parseCertificates("parse CA", certPEM)
	if err != nil {
		return nil, err
	}
	key, err := parseKey("parse CA", keyPEM)
	if err != nil {
		return nil, err
	}
	if !certs[0].IsCA {
		return nil, &CertError{
			Op: "parse CA", Advice: "use the authority's certificate, not the server's",
			Err: errors.New("the certificate is not marked as an authority"),
		}
	}
	if !key.PublicKey.Equal(certs[0].PublicKey) {
		return nil, &CertError{
			Op: "parse CA", Advice: "use the key and the certificate of the same authority",
			Err: errors.New("the key does not belong to the certificate"),
		}
	}
	return assembleCA(certs[0].Raw, key, rand.Reader)
}

func assembleCA(der []byte, key *ecdsa.PrivateKey, random io.Reader) (*CA, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("assemble CA: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return nil, fmt.Errorf("assemble CA: %w", err)
	}
	return &CA{CertPEM: encodeCertificate(der), KeyPEM: keyPEM, cert: cert, key: key, rand: random}, nil
}

// newSerial returns a positive serial number nobody can guess (RFC 5280 4.1.2.2).
func newSerial(random io.Reader) (*big.Int, error) {
	var b [serialBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	b[0] = b[0]&0x7f | 0x40 // positive and never shorter than 16 octets
	return new(big.Int).SetBytes(b[:]), nil
}

// commonName cuts a name to the 64 characters X.520 allows for a common name. It is for people; nothing is verified by it.
func commonName(name string) string {
	const upperBound = 64 // ub-common-name, RFC 5280 appendix A.1
	if len(name) > upperBound {
		return name[:upperBound]
	}
	return name
}
