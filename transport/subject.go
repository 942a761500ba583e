package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// PrincipalURI is what a client certificate carries as a URI SAN to name its principal, followed by the subject exactly as
// in the token. Subjects of tokens may be longer than a DNS label allows, so DNS names alone would not do.
const PrincipalURI = "felix:principal:"

// SubjectError reports a client certificate that was issued to someone else than the token it came with.
type SubjectError struct {
	Subjects []string // whom the token names
	Names    []string // whom the certificate names
}

// Error names both; neither is secret.
func (e *SubjectError) Error() string {
	return fmt.Sprintf("bind token to certificate: the certificate names %s, the token belongs to %s: use the token of the certificate's owner",
		list(e.Names), list(e.Subjects))
}

func list(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}

// CheckSubject returns nil when the peer's certificate was issued to one of subjects (the "sub" of a token, and of its actor
// when the token is delegated): a URI SAN of PrincipalURI plus the subject, compared exactly, or a DNS or IP SAN that the
// subject matches as a server name would. Otherwise, and when the peer presented no certificate, it returns a *SubjectError.
func CheckSubject(state tls.ConnectionState, subjects ...string) error {
	if len(state.PeerCertificates) == 0 {
		return &SubjectError{Subjects: subjects}
	}
	cert := state.PeerCertificates[0]
	for _, subject := range subjects {
		if subject != "" && certifies(cert, subject) {
			return nil
		}
	}
	return &SubjectError{Subjects: subjects, Names: certifiedNames(cert)}
}

func certifies(cert *x509.Certificate, subject string) bool {
	return slices.Contains(uris(cert), PrincipalURI+subject) || cert.VerifyHostname(subject) == nil
}

func certifiedNames(cert *x509.Certificate) []string {
	names := append(uris(cert), cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

func uris(cert *x509.Certificate) []string {
	var texts []string
	for _, uri := range cert.URIs {
		texts = append(texts, uri.String())
	}
	return texts
}
