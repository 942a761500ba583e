package transport

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// ErrNoCertificates says that some PEM text holds no certificate at all.
var ErrNoCertificates = errors.New("no PEM certificate found")

// CertError reports certificate material that cannot be used. It never contains key bytes.
type CertError struct {
	Op     string // what was being done, such as "parse CA"
	Advice string // what the operator should do
	Err    error  // what is wrong
}

// Error implements error: operation, cause, advice.
func (e *CertError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Op, e.Err, e.Advice) }

// Unwrap gives the cause, so that errors.Is finds ErrNoCertificates.
func (e *CertError) Unwrap() error { return e.Err }

const (
	pemCertificate = "CERTIFICATE" // RFC 7468 5
	pemPrivateKey  = "PRIVATE KEY" // RFC 7468 10, PKCS #8
	pemECKey       = "EC PRIVATE KEY"
)

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: der}), nil
}

// parseCertificates returns every certificate of the text, at least one. Blocks of other kinds are passed over, since
// bundles often carry comments and keys; a certificate block that does not parse is an error.
func parseCertificates(op string, text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != pemCertificate {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, &CertError{Op: op, Advice: "replace the damaged certificate block", Err: err}
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, &CertError{Op: op, Advice: "the text must hold at least one CERTIFICATE block", Err: ErrNoCertificates}
	}
	return certs, nil
}

// ParseCertPool reads trust anchors from PEM text, for Policy.ClientCAs. It returns a *CertError that wraps
// ErrNoCertificates when the text holds none: an empty pool would trust nobody and hide the mistake.
func ParseCertPool(text []byte) (*x509.CertPool, error) {
	certs, err := parseCertificates("read trust anchors", text)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, cert := range certs {
		pool.AddCert(cert)
	}
	return pool, nil
}

func parseKey(op string, text []byte) (*ecdsa.PrivateKey, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case pemPrivateKey:
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, &CertError{Op: op, Advice: "replace the damaged key block", Err: err}
			}
			if ec, ok := key.(*ecdsa.PrivateKey); ok {
				return ec, nil
			}
			return nil, &CertError{Op: op, Advice: "use an ECDSA key", Err: fmt.Errorf("the key is a %T", key)}
		case pemECKey:
			key, err := x509.ParseECPrivateKey(block.Bytes)
			if err != nil {
				return nil, &CertError{Op: op, Advice: "replace the damaged key block", Err: err}
			}
			return key, nil
		}
	}
	return nil, &CertError{Op: op, Advice: "the text must hold a PRIVATE KEY block", Err: errors.New("no PEM private key found")}
}
