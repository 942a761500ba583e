package auth

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// secondsMax is 9999-12-31T23:59:59Z: the last instant four-digit years can name.
const secondsMax = 253402300799

// tokenClaims are the claims of a verified signature, of the right types but not yet judged. Names are compared
// exactly, as RFC 7519 section 4 asks.
type tokenClaims struct {
	issuer, audience, tenant, subject, id string
	expires                               int64
	notBefore, issued                     int64 // 0 where absent
	permissions                           []string
}

// readClaims checks presence and type of every claim this package uses. It ignores claims it does not know.
func readClaims(m jwt.MapClaims) (c tokenClaims, err error) {
	text := func(claim string, required bool) (s string) {
		if err == nil {
			s, err = textClaim(m, claim, required)
		}
		return s
	}
	seconds := func(claim string, required bool) (v int64) {
		if err == nil {
			v, err = secondsClaim(m, claim, required)
		}
		return v
	}
	c.issuer = text("iss", true)
	c.audience = text("aud", true)
	c.tenant = text("tid", true)
	c.subject = text("sub", true)
	c.id = text("jti", false)
	c.expires = seconds("exp", true)
	c.notBefore = seconds("nbf", false)
	c.issued = seconds("iat", false)
	if err != nil {
		return tokenClaims{}, err
	}
	if !validSubject(c.subject) {
		return tokenClaims{}, malformed("sub", "is out of bounds")
	}
	c.permissions, err = permissionsClaim(m)
	return c, err
}

func textClaim(m jwt.MapClaims, claim string, required bool) (string, error) {
	v, present := m[claim]
	if !present && !required {
		return "", nil
	}
	s, ok := v.(string)
	if !ok || s == "" {
		return "", malformed(claim, "is missing or not a non-empty string")
	}
	return s, nil
}

// secondsClaim accepts whole numbers of seconds in 1..secondsMax only. RFC 7519 would allow fractions; nothing that
// signs for us writes them, and a number that one side rounds up and the other down is a token both judge differently.
func secondsClaim(m jwt.MapClaims, claim string, required bool) (int64, error) {
	v, present := m[claim]
	if !present && !required {
		return 0, nil
	}
	n, ok := v.(json.Number)
	if !ok {
		return 0, malformed(claim, "is missing or not a number")
	}
	seconds, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || seconds < 1 || seconds > secondsMax {
		return 0, malformed(claim, "is not a whole number of seconds since 1970 within four-digit years")
	}
	return seconds, nil
}

func permissionsClaim(m jwt.MapClaims) ([]string, error) {
	list, ok := m["perms"].([]any)
	if !ok {
		return nil, malformed("perms", "is missing or not a list")
	}
	texts := make([]string, len(list))
	for i, v := range list {
		if texts[i], ok = v.(string); !ok {
			return nil, malformed("perms", "holds something that is not a string")
		}
	}
	return texts, nil
}

func malformed(claim, problem string) *TokenError {
	return &TokenError{Reason: ReasonMalformed, Claim: claim, Detail: fmt.Sprintf("the claim %s %s", claim, problem)}
}

// checkTime judges the three times of a token at now. The times of a token are valid from nbf and iat until just before
// exp (RFC 7519, section 4.1.4), each widened by leeway.
func checkTime(expires, notBefore, issued int64, now time.Time, leeway time.Duration) error {
	if late := now.Sub(time.Unix(expires, 0)); late >= leeway {
		return &TokenError{Reason: ReasonExpired, Claim: "exp", By: late.Round(time.Second)}
	}
	for _, from := range []struct {
		claim   string
		seconds int64
	}{{"nbf", notBefore}, {"iat", issued}} {
		if early := time.Unix(from.seconds, 0).Sub(now); from.seconds != 0 && early > leeway {
			return &TokenError{Reason: ReasonNotYetValid, Claim: from.claim, By: early.Round(time.Second)}
		}
	}
	return nil
}
