package transport

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/quic-go/quic-go"
)

// CipherError reports a handshake that agreed on a suite outside the allowed list.
type CipherError struct {
	Suite   uint16   // what was negotiated
	Allowed []uint16 // what the policy allows
}

// Error names both sides in IANA names.
func (e *CipherError) Error() string {
	names := make([]string, len(e.Allowed))
	for i, id := range e.Allowed {
		names[i] = tls.CipherSuiteName(id)
	}
	return fmt.Sprintf("check cipher suite: %s was negotiated, the policy allows only %s: restrict the peer's suites or widen the list",
		tls.CipherSuiteName(e.Suite), strings.Join(names, ", "))
}

// ParseCipherSuites reads a comma-separated list of TLS 1.3 suite names, as IANA writes them ("TLS_AES_128_GCM_SHA256") or
// without the TLS_ prefix, in either case. Spaces are ignored. An empty list means "no restriction" and gives nil. A name
// that TLS 1.3 does not have is an error that lists those it has.
func ParseCipherSuites(names string) ([]uint16, error) {
	var ids []uint16
	for _, field := range strings.Split(names, ",") {
		name := strings.ToUpper(strings.TrimSpace(field))
		if name == "" {
			continue
		}
		if !strings.HasPrefix(name, "TLS_") {
			name = "TLS_" + name
		}
		id, ok := suiteByName(name)
		if !ok {
			return nil, fmt.Errorf("parse cipher suites: %q is not a TLS 1.3 suite; use %s", strings.TrimSpace(field), strings.Join(suiteNames(), ", "))
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if ids == nil && strings.TrimSpace(names) != "" {
		return nil, fmt.Errorf("parse cipher suites: %q names no suite; leave it empty to allow all", names)
	}
	return ids, nil
}

func suiteByName(name string) (uint16, bool) {
	for _, suite := range tls.CipherSuites() {
		if suite.Name == name && isTLS13(suite) {
			return suite.ID, true
		}
	}
	return 0, false
}

func suiteNames() []string {
	var names []string
	for _, suite := range tls.CipherSuites() {
		if isTLS13(suite) {
			names = append(names, suite.Name)
		}
	}
	return names
}

func isTLS13(suite *tls.CipherSuite) bool {
	return slices.Contains(suite.SupportedVersions, tls.VersionTLS13)
}

// CheckCipherSuite returns a *CipherError when state was negotiated with a suite outside allowed. A nil list allows all.
func CheckCipherSuite(state tls.ConnectionState, allowed []uint16) error {
	if allowed == nil || slices.Contains(allowed, state.CipherSuite) {
		return nil
	}
	return &CipherError{Suite: state.CipherSuite, Allowed: slices.Clone(allowed)}
}

// EnforceCipherSuites closes conn with CloseCipherSuite when it was negotiated with a suite outside allowed, and returns the
// *CipherError. ServerTLS and ClientTLS already abort such handshakes; this is for connections whose TLS configuration came
// from elsewhere.
func EnforceCipherSuites(conn *quic.Conn, allowed []uint16) error {
	err := CheckCipherSuite(conn.ConnectionState().TLS, allowed)
	if err == nil {
		return nil
	}
	return CloseWith(conn, CloseCipherSuite, err)
}

// verifySuite is the check as a hook of the handshake. Without a list there is nothing to check, and no hook.
func verifySuite(allowed []uint16) func(tls.ConnectionState) error {
	if allowed == nil {
		return nil
	}
	allowed = slices.Clone(allowed)
	return func(state tls.ConnectionState) error { return CheckCipherSuite(state, allowed) }
}
