package auth

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// Issuer is the iss claim of every token.
	Issuer = "felix-auth"
	// AudienceBroker is the aud claim of tokens for brokers.
	AudienceBroker = "felix-broker"
	// AudienceControlPlane is the aud claim of tokens for the control-plane API. Brokers see client tokens in order to
	// forward them, so a token for one side must be worth nothing on the other.
	AudienceControlPlane = "felix-controlplane"
)

const (
	// TokenBytesMax bounds a token, when minted and when verified. A broker reads at most 64 KiB before it knows who is
	// there, and the token travels inside such a frame.
	TokenBytesMax = 48 << 10
	// SubjectBytesMax bounds a principal's name.
	SubjectBytesMax = 512
	// TokenTTLMax bounds the life of a token. Development tokens live 30 days; nothing can take a longer one back.
	TokenTTLMax = 31 * 24 * time.Hour
)

// algorithm is the one signature algorithm there is (RFC 8037, section 3.1).
const algorithm = "EdDSA"

// Claims is what a token to be minted says.
type Claims struct {
	Tenant      string
	Subject     string        // 1..SubjectBytesMax bytes without control characters
	Audience    string        // AudienceBroker or AudienceControlPlane
	Permissions []string      // as they are to stand in the token: see ExpandForMint
	TTL         time.Duration // 1 s..TokenTTLMax; parts of a second are dropped
	Now         time.Time
}

// Signer mints the tokens of one tenant. It is safe for concurrent use if its source of random bytes is.
type Signer struct {
	tenant string
	key    *Key
	random io.Reader
}

// NewSigner returns the signer of a tenant. Random draws token ids; nil means the system's source of random bytes.
func NewSigner(tenant string, key *Key, random io.Reader) *Signer {
	if random == nil {
		random = rand.Reader
	}
	return &Signer{tenant: tenant, key: key, random: random}
}

// Mint returns a signed token. It refuses, with an error that says which and why, claims of another tenant, an unknown
// audience, a subject or life out of bounds, a permission that Verify would refuse (*PermissionError), and a token
// over TokenBytesMax (*TokenTooLargeError).
func (s *Signer) Mint(c Claims) (string, error) {
	if err := s.check(c); err != nil {
		return "", fmt.Errorf("mint token: %w", err)
	}
	var id [16]byte
	if _, err := io.ReadFull(s.random, id[:]); err != nil {
		return "", fmt.Errorf("mint token: draw token id: %w", err)
	}
	permissions := c.Permissions
	if permissions == nil {
		permissions = []string{}
	}
	issued := c.Now.Unix()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss":   Issuer,
		"aud":   c.Audience,
		"sub":   c.Subject,
		"tid":   c.Tenant,
		"iat":   issued,
		"exp":   issued + int64(c.TTL/time.Second),
		"perms": permissions,
		"jti":   hex.EncodeToString(id[:]),
	})
	token.Header["kid"] = s.key.id
	text, err := token.SignedString(s.key.private)
	if err != nil {
		return "", fmt.Errorf("mint token: %w", err)
	}
	if len(text) > TokenBytesMax {
		return "", fmt.Errorf("mint token: %w", &TokenTooLargeError{Bytes: len(text)})
	}
	return text, nil
}

func (s *Signer) check(c Claims) error {
	switch {
	case c.Tenant != s.tenant:
		return fmt.Errorf("the signer of tenant %q can't sign for tenant %q", s.tenant, c.Tenant)
	case c.Audience != AudienceBroker && c.Audience != AudienceControlPlane:
		return fmt.Errorf("audience %.64q is not known; use %s or %s", c.Audience, AudienceBroker, AudienceControlPlane)
	case !validSubject(c.Subject):
		return fmt.Errorf("the subject has %d bytes; use 1 to %d without control characters", len(c.Subject), SubjectBytesMax)
	case c.TTL < time.Second || c.TTL > TokenTTLMax:
		return fmt.Errorf("a life of %v is not allowed; use 1s to %v", c.TTL, TokenTTLMax)
	case c.Now.Unix() < 0:
		return fmt.Errorf("the clock says %v; set it", c.Now)
	}
	_, err := ParsePermissions(c.Tenant, c.Permissions)
	return err
}

func validSubject(s string) bool {
	return s != "" && len(s) <= SubjectBytesMax && !strings.ContainsFunc(s, unicode.IsControl)
}

// TokenTooLargeError says that a principal holds more permissions than fit a token.
type TokenTooLargeError struct {
	Bytes int // what the token would have had
}

// Error names both sizes and the way out.
func (e *TokenTooLargeError) Error() string {
	return fmt.Sprintf("the token would have %d bytes, at most %d are allowed; ask for fewer permissions, or grant wildcards", e.Bytes, TokenBytesMax)
}
