package auth

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// LeewayMax is the largest, and the default, difference between the clocks of issuer and verifier that is forgiven.
const LeewayMax = 60 * time.Second

// VerifierOptions configures a Verifier.
type VerifierOptions struct {
	// Keys is asked for the keys of a tenant on every verification. Required.
	Keys KeySource
	// Leeway widens exp, nbf and iat. Nil means LeewayMax; zero forgives nothing.
	Leeway *time.Duration
}

// Verifier judges tokens. It is safe for concurrent use.
type Verifier struct {
	keys   KeySource
	leeway time.Duration
	parser *jwt.Parser
	decoy  ed25519.PublicKey
	cache  *verifiedCache
}

// NewVerifier returns a Verifier, or an error that says which option is wrong.
func NewVerifier(o VerifierOptions) (*Verifier, error) {
	leeway := LeewayMax
	if o.Leeway != nil {
		leeway = *o.Leeway
	}
	if o.Keys == nil {
		return nil, errors.New("new verifier: no key source given")
	}
	if leeway < 0 || leeway > LeewayMax {
		return nil, fmt.Errorf("new verifier: a leeway of %v is not allowed; use 0 to %v", leeway, LeewayMax)
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithStrictDecoding(), jwt.WithJSONNumber(),
		jwt.WithoutClaimsValidation()) // claims are judged by judge, at the caller's time
	decoy := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	return &Verifier{keys: o.Keys, leeway: leeway, parser: parser, decoy: decoy, cache: newVerifiedCache()}, nil
}

// Verify returns who the token speaks for when it is presented to audience for tenant at now, or a *TokenError. The
// order of checks: size and form, algorithm, signature, iss, aud, tid, times, permissions. The principal is shared
// with other callers who present the same token.
//
// A token that was verified before is answered from a bounded cache while its times are valid and the key that signed
// it is still published: a retired key takes its tokens along at once.
func (v *Verifier) Verify(token, tenant, audience string, now time.Time) (*Principal, error) {
	if len(token) > TokenBytesMax {
		return nil, &TokenError{Reason: ReasonMalformed, Detail: fmt.Sprintf("it has %d bytes, at most %d are allowed", len(token), TokenBytesMax)}
	}
	if strings.ContainsAny(token, "\r\n") { // the base64 decoder would skip them, and one token had many spellings
		return nil, &TokenError{Reason: ReasonMalformed, Detail: "it has line breaks"}
	}
	published := v.keys.PublishedKeys(tenant)
	at := cacheKeyOf(tenant, audience, token)
	if known := v.cache.get(at); known != nil && publishes(published, known.key) {
		if err := checkTime(known.expires, known.notBefore, known.issued, now, v.leeway); err != nil {
			v.cache.drop(at)
			return nil, err
		}
		return known.principal, nil
	}
	claims, key, err := v.signed(token, published)
	if err != nil {
		return nil, err
	}
	principal, err := v.judge(claims, tenant, audience, now)
	if err != nil {
		return nil, err
	}
	v.cache.put(at, &verified{principal: principal, key: key, expires: claims.expires, notBefore: claims.notBefore,
		issued: claims.issued, bytes: len(token)})
	return principal, nil
}

// VerifyOwn is Verify for the tenant the token itself names: for requests that are about no tenant.
func (v *Verifier) VerifyOwn(token, audience string, now time.Time) (*Principal, error) {
	tenant := ""
	if len(token) <= TokenBytesMax {
		claims := jwt.MapClaims{}
		if _, _, err := v.parser.ParseUnverified(token, claims); err == nil {
			tenant, _ = claims["tid"].(string)
		}
	}
	return v.Verify(token, tenant, audience, now) // names what is wrong where tid could not be read
}

// signed checks form, algorithm and signature, and returns the claims with the key that signed them.
func (v *Verifier) signed(token string, published []PublicKey) (tokenClaims, PublicKey, error) {
	var tried []PublicKey
	asked := false // whether the parser got as far as wanting a key
	parsed, err := v.parser.ParseWithClaims(token, jwt.MapClaims{}, func(t *jwt.Token) (any, error) {
		asked = true
		tried = named(t.Header["kid"], published)
		set := jwt.VerificationKeySet{}
		for _, k := range tried {
			set.Keys = append(set.Keys, k.Key)
		}
		if len(tried) == 0 { // costs the same as a tenant that exists, so that timing does not tell
			set.Keys = append(set.Keys, v.decoy)
		}
		return set, nil
	})
	switch {
	case err == nil && len(tried) > 0:
		return v.accepted(parsed, tried)
	case asked && len(published) == 0:
		return tokenClaims{}, PublicKey{}, &TokenError{Reason: ReasonUnknownTenant}
	case asked:
		return tokenClaims{}, PublicKey{}, &TokenError{Reason: ReasonSignature}
	case errors.Is(err, jwt.ErrTokenMalformed):
		return tokenClaims{}, PublicKey{}, &TokenError{Reason: ReasonMalformed, Detail: "it is not a signed JWT in compact form"}
	}
	return tokenClaims{}, PublicKey{}, &TokenError{Reason: ReasonAlgorithm}
}

// accepted reads a token whose signature is good.
func (v *Verifier) accepted(t *jwt.Token, tried []PublicKey) (tokenClaims, PublicKey, error) {
	if _, critical := t.Header["crit"]; critical { // RFC 7515, section 4.1.11: refuse what is not understood
		return tokenClaims{}, PublicKey{}, &TokenError{Reason: ReasonMalformed, Detail: "its header asks for extensions (crit)"}
	}
	claims, err := readClaims(t.Claims.(jwt.MapClaims))
	if err != nil {
		return tokenClaims{}, PublicKey{}, err
	}
	return claims, v.signer(t, tried), nil
}

// signer finds the key that verified t. The library tries them in order and does not say which one it was.
func (v *Verifier) signer(t *jwt.Token, tried []PublicKey) PublicKey {
	if len(tried) == 1 {
		return tried[0]
	}
	text := t.Raw[:len(t.Raw)-len(lastSegment(t.Raw))-1]
	for _, k := range tried {
		if t.Method.Verify(text, t.Signature, k.Key) == nil {
			return k
		}
	}
	panic("auth: a verified token is verified by none of the keys that were tried")
}

// judge checks the claims of a signed token.
func (v *Verifier) judge(c tokenClaims, tenant, audience string, now time.Time) (*Principal, error) {
	switch {
	case c.issuer != Issuer:
		return nil, &TokenError{Reason: ReasonIssuer, Claim: "iss"}
	case c.audience != audience:
		return nil, &TokenError{Reason: ReasonAudience, Claim: "aud"}
	case c.tenant != tenant:
		return nil, &TokenError{Reason: ReasonTenant, Claim: "tid"}
	}
	if err := checkTime(c.expires, c.notBefore, c.issued, now, v.leeway); err != nil {
		return nil, err
	}
	permissions, err := ParsePermissions(c.tenant, c.permissions)
	if err != nil {
		return nil, &TokenError{Reason: ReasonPermissions, Claim: "perms", Detail: permissionProblem(err)}
	}
	return &Principal{Tenant: c.tenant, Subject: c.subject, TokenID: c.id, Expires: time.Unix(c.expires, 0).UTC(),
		Permissions: permissions}, nil
}

// permissionProblem drops the quoted permission: it is a part of the token.
func permissionProblem(err error) string {
	var p *PermissionError
	if errors.As(err, &p) {
		return p.Problem
	}
	return "unreadable"
}

// named returns keys with the one that kid names in front.
func named(kid any, keys []PublicKey) []PublicKey {
	id, _ := kid.(string)
	i := slices.IndexFunc(keys, func(k PublicKey) bool { return k.ID == id })
	if i <= 0 {
		return keys
	}
	ordered := append([]PublicKey{keys[i]}, keys[:i]...)
	return append(ordered, keys[i+1:]...)
}

func publishes(keys []PublicKey, k PublicKey) bool {
	return slices.ContainsFunc(keys, func(p PublicKey) bool { return p.Key.Equal(k.Key) })
}

func lastSegment(token string) string {
	i := len(token)
	for i > 0 && token[i-1] != '.' {
		i--
	}
	return token[i:]
}
