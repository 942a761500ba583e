package auth

import (
	"fmt"
	"time"
)

// Reason says why a token was refused. It is for logs and metrics; what the presenter is told is TokenError.Error.
type Reason string

// The reasons.
const (
	ReasonMalformed     Reason = "malformed"      // not a token, over TokenBytesMax, or a claim missing or of the wrong type
	ReasonAlgorithm     Reason = "algorithm"      // signed with anything but EdDSA; no key was looked at
	ReasonSignature     Reason = "signature"      // by no published key of the tenant
	ReasonExpired       Reason = "expired"        // exp has passed
	ReasonNotYetValid   Reason = "not_yet_valid"  // nbf or iat lies in the future
	ReasonAudience      Reason = "audience"       // meant for another service
	ReasonIssuer        Reason = "issuer"         // not issued by Issuer
	ReasonTenant        Reason = "tenant"         // tid is another tenant
	ReasonUnknownTenant Reason = "unknown_tenant" // the tenant has no keys
	ReasonPermissions   Reason = "permissions"    // perms can't be read completely
)

// TokenError says that a token was refused. Its text starts with "unauthorized: token", because clients that only see
// the text tell a refused token from a lost connection by such a word. It never holds any part of the token, and it
// reads the same whether the tenant does not exist, has other keys, or is not the token's own.
type TokenError struct {
	Reason Reason
	Claim  string        // the claim that is wrong, empty where it is none
	By     time.Duration // for expired and not_yet_valid: how far now is beyond the claim, leeway not counted
	Detail string        // for malformed and permissions: what is wrong
}

// Error is one sentence that says what to do.
func (e *TokenError) Error() string { return "unauthorized: token " + e.sentence() }

func (e *TokenError) sentence() string {
	switch e.Reason {
	case ReasonAlgorithm:
		return "rejected: it is not signed with " + algorithm
	case ReasonSignature, ReasonTenant, ReasonUnknownTenant:
		return "rejected: it is not signed by a key of the tenant it was presented for"
	case ReasonExpired:
		return fmt.Sprintf("expired %v ago (%s); get a new one", e.By, e.Claim)
	case ReasonNotYetValid:
		return fmt.Sprintf("is not valid for another %v (%s); compare the clocks of issuer and server", e.By, e.Claim)
	case ReasonAudience:
		return "rejected: it is meant for another service (aud)"
	case ReasonIssuer:
		return "rejected: it comes from another issuer (iss)"
	case ReasonPermissions:
		return "rejected: its permissions can't be read completely (perms): " + e.Detail
	}
	return "rejected: " + e.Detail
}
