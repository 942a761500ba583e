package auth

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
)

func signRaw(t testing.TB, k *Key, header, payload []byte) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, []byte(text)))
}

// ring publishes key 1 for t1 and key 2 for t2.
func ring(t testing.TB) *KeyRing {
	t.Helper()
	var r KeyRing
	for tenant, b := range map[string]byte{"t1": 1, "t2": 2} {
		if err := r.Publish(tenant, keyFrom(t, b).Public()); err != nil {
			t.Fatal(err)
		}
	}
	return &r
}

func verifier(t testing.TB) *Verifier { return verifierOf(t, ring(t)) }

func verifierOf(t testing.TB, keys KeySource) *Verifier {
	t.Helper()
	v, err := NewVerifier(VerifierOptions{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// refuse checks that err is a TokenError of that reason whose text tells clients what it is and leaks nothing.
func refuse(t *testing.T, name string, p *Principal, err error, reason Reason, token string) {
	t.Helper()
	var refusal *TokenError
	if p != nil || !errors.As(err, &refusal) {
		t.Errorf("%s: accepted, or refused without a TokenError: %v", name, err)
		return
	}
	if refusal.Reason != reason {
		t.Errorf("%s: refused as %s (%v), want %s", name, refusal.Reason, err, reason)
	}
	text := err.Error()
	if !strings.HasPrefix(text, "unauthorized: ") || !strings.Contains(text, "token") || len(text) > 300 {
		t.Errorf("%s: the text is %q", name, text)
	}
	for _, part := range strings.Split(token, ".") {
		if len(part) > 8 && strings.Contains(text, part[:8]) {
			t.Errorf("%s: the text %q repeats a part of the token", name, text)
		}
	}
}

// mission 381: tokens are scoped to a tenant.
func TestVerifiedTokenNamesItsPrincipal(t *testing.T) {
	v := verifier(t)
	token := mint(t, signer(t), claims())
	for range 2 { // the second time from the cache
		p, err := v.Verify(token, "t1", AudienceBroker, noon().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if p.Tenant != "t1" || p.Subject != "p:alice" || len(p.TokenID) != 32 || !p.Expires.Equal(noon().Add(15*time.Minute)) ||
			!p.Permissions.Allows(StreamPublish, StreamObject("t1", "ns", "s")) || p.Permissions.Len() != 1 {
			t.Fatalf("principal %+v", p)
		}
	}
}

func TestTokenOfAnotherTenantIsRefusedLikeAnUnknownTenant(t *testing.T) {
	v := verifier(t)
	token := mint(t, signer(t), claims())
	p, wrongKeys := v.Verify(token, "t2", AudienceBroker, noon())
	refuse(t, "other keys", p, wrongKeys, ReasonSignature, token)
	p, unknown := v.Verify(token, "t9", AudienceBroker, noon())
	refuse(t, "no such tenant", p, unknown, ReasonUnknownTenant, token)

	var shared KeyRing // two tenants with one key, by mistake
	for _, tenant := range []string{"t1", "t2"} {
		if err := shared.Publish(tenant, keyFrom(t, 1).Public()); err != nil {
			t.Fatal(err)
		}
	}
	p, sameKey := verifierOf(t, &shared).Verify(token, "t2", AudienceBroker, noon())
	refuse(t, "same key", p, sameKey, ReasonTenant, token)
	if wrongKeys.Error() != unknown.Error() || wrongKeys.Error() != sameKey.Error() {
		t.Errorf("the texts tell which tenants exist:\n  %v\n  %v\n  %v", wrongKeys, unknown, sameKey)
	}
	// The key that stands in for a missing one is no secret; signing with it must not help.
	decoy := &Key{private: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
	c := claims()
	c.Tenant, c.Permissions = "t9", nil
	forged := mint(t, NewSigner("t9", decoy, nil), c)
	p, err := v.Verify(forged, "t9", AudienceBroker, noon())
	refuse(t, "signed with the stand-in", p, err, ReasonUnknownTenant, forged)
	p, err = v.Verify(forged, "t9", AudienceBroker, noon())
	refuse(t, "and again", p, err, ReasonUnknownTenant, forged)
}

// noKeys is a source of no keys at all.
type noKeys struct{}

func (noKeys) PublishedKeys(string) []PublicKey { return nil }

func TestOnlyEdDSAIsAccepted(t *testing.T) {
	k := keyFrom(t, 1)
	payload, err := json.Marshal(goodPayload())
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	head := func(alg string) string {
		return encode([]byte(`{"alg":"`+alg+`","typ":"JWT","kid":"`+k.ID()+`"}`)) + "." + encode(payload)
	}
	hs := func(alg string, secret []byte) string {
		text := head(alg)
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		return text + "." + encode(mac.Sum(nil))
	}
	rs := func() string {
		text := head("RS256")
		sum := sha256.Sum256([]byte(text))
		sig, err := rsa.SignPKCS1v15(rand.Reader, rsaKey, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + encode(sig)
	}
	good := func(alg string) string {
		text := head(alg)
		return text + "." + encode(ed25519.Sign(k.private, []byte(text)))
	}
	for name, token := range map[string]string{
		"none, no signature":         head("none") + ".",
		"none, good signature":       good("none"),
		"None":                       good("None"),
		"HS256 keyed with public":    hs("HS256", k.Public().Key),
		"HS512 named":                hs("HS512", k.Public().Key),
		"RS256":                      rs(),
		"ES256 named":                good("ES256"),
		"lower case":                 good("eddsa"),
		"unknown":                    good("XYZ"),
		"no algorithm":               signRaw(t, k, []byte(`{"typ":"JWT"}`), payload),
		"algorithm is a number":      signRaw(t, k, []byte(`{"alg":1}`), payload),
		"algorithm under other case": signRaw(t, k, []byte(`{"Alg":"EdDSA"}`), payload),
		"header null":                signRaw(t, k, []byte(`null`), payload),
	} {
		for _, v := range []*Verifier{verifier(t), verifierOf(t, noKeys{})} { // the same with and without keys: none is looked at
			p, err := v.Verify(token, "t1", AudienceBroker, noon())
			refuse(t, name, p, err, ReasonAlgorithm, token)
		}
	}
	if p, err := verifier(t).Verify(good("EdDSA"), "t1", AudienceBroker, noon()); err != nil || p == nil {
		t.Fatalf("the same token with EdDSA: %v", err)
	}
}

func goodPayload() map[string]any {
	return map[string]any{"iss": Issuer, "aud": AudienceBroker, "sub": "p:alice", "tid": "t1", "iat": noon().Unix(),
		"exp": noon().Unix() + 900, "perms": []string{"stream.publish:stream:t1/ns/s"}, "jti": "x"}
}

func TestClaimsAreCheckedOneByOne(t *testing.T) {
	k := keyFrom(t, 1)
	header := map[string]any{"alg": "EdDSA", "kid": k.ID(), "typ": "JWT"}
	type change map[string]any // nil removes the claim
	for _, c := range []struct {
		name   string
		change change
		reason Reason
		says   string
	}{
		{"another issuer", change{"iss": "felix"}, ReasonIssuer, "iss"},
		{"no issuer", change{"iss": nil}, ReasonMalformed, "iss"},
		{"the other audience", change{"aud": AudienceControlPlane}, ReasonAudience, "aud"},
		{"list of audiences", change{"aud": []string{AudienceBroker}}, ReasonMalformed, "aud"},
		{"no audience", change{"aud": nil}, ReasonMalformed, "aud"},
		{"another tenant", change{"tid": "t2"}, ReasonTenant, ""},
		{"no tenant", change{"tid": nil}, ReasonMalformed, "tid"},
		{"no subject", change{"sub": nil}, ReasonMalformed, "sub"},
		{"empty subject", change{"sub": ""}, ReasonMalformed, "sub"},
		{"long subject", change{"sub": strings.Repeat("s", SubjectBytesMax+1)}, ReasonMalformed, "sub"},
		{"id is a number", change{"jti": 4}, ReasonMalformed, "jti"},
		{"no expiry", change{"exp": nil}, ReasonMalformed, "exp"},
		{"expiry as text", change{"exp": "1796000000"}, ReasonMalformed, "exp"},
		{"expiry with fraction", change{"exp": json.RawMessage("1796000000.5")}, ReasonMalformed, "exp"},
		{"expiry with exponent", change{"exp": json.RawMessage("1.796e9")}, ReasonMalformed, "exp"},
		{"negative expiry", change{"exp": -5}, ReasonMalformed, "exp"},
		{"expiry zero", change{"exp": 0}, ReasonMalformed, "exp"},
		{"expiry in year 10000", change{"exp": int64(secondsMax) + 1}, ReasonMalformed, "exp"},
		{"expiry beyond 64 bits", change{"exp": json.RawMessage("99999999999999999999")}, ReasonMalformed, "exp"},
		{"issued as text", change{"iat": "now"}, ReasonMalformed, "iat"},
		{"not before as text", change{"nbf": "now"}, ReasonMalformed, "nbf"},
		{"no permissions", change{"perms": nil}, ReasonMalformed, "perms"},
		{"permissions as text", change{"perms": "stream.publish:stream:t1/ns/s"}, ReasonMalformed, "perms"},
		{"permissions with a number", change{"perms": []any{1}}, ReasonMalformed, "perms"},
		{"unknown action", change{"perms": []string{"stream.publish:stream:t1/ns/s", "stream.fly:stream:t1/ns/s"}}, ReasonPermissions, "perms"},
		{"permission out of grammar", change{"perms": []string{"stream.publish:stream:*"}}, ReasonPermissions, "perms"},
		{"permission elsewhere", change{"perms": []string{"stream.publish:stream:t2/ns/s"}}, ReasonPermissions, "perms"},
		{"nothing wrong", change{}, "", ""},
		{"year 9999", change{"exp": int64(secondsMax)}, "", ""},
		{"neither iat nor jti nor nbf", change{"iat": nil, "jti": nil}, "", ""},
		{"unknown claims", change{"colour": "red", "act": map[string]any{"sub": "p:gateway"}}, "", ""},
	} {
		payload := goodPayload()
		maps.Copy(payload, c.change)
		maps.DeleteFunc(payload, func(_ string, v any) bool { return v == nil })
		token := forge(t, k, header, payload)
		p, err := verifier(t).Verify(token, "t1", AudienceBroker, noon())
		if c.reason == "" {
			if err != nil || p == nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		refuse(t, c.name, p, err, c.reason, token)
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q does not name %s", c.name, err, c.says)
		}
	}
}

func TestClockDifferenceIsForgivenUpToTheLeewayBothWays(t *testing.T) {
	k := keyFrom(t, 1)
	header := map[string]any{"alg": "EdDSA"}
	none, ten := time.Duration(0), 10*time.Second
	for _, c := range []struct {
		name   string
		claim  string
		at     time.Duration // of the claim, relative to now
		leeway *time.Duration
		reason Reason
	}{
		{"exp 59 s ago", "exp", -59 * time.Second, nil, ""},
		{"exp 60 s ago", "exp", -60 * time.Second, nil, ReasonExpired},
		{"exp 61 s ago", "exp", -61 * time.Second, nil, ReasonExpired},
		{"exp 10 min ago", "exp", -10 * time.Minute, nil, ReasonExpired},
		{"exp now, no leeway", "exp", 0, &none, ReasonExpired},
		{"exp in 1 s, no leeway", "exp", time.Second, &none, ""},
		{"exp 9 s ago, leeway 10", "exp", -9 * time.Second, &ten, ""},
		{"exp 10 s ago, leeway 10", "exp", -10 * time.Second, &ten, ReasonExpired},
		{"nbf in 60 s", "nbf", 60 * time.Second, nil, ""},
		{"nbf in 61 s", "nbf", 61 * time.Second, nil, ReasonNotYetValid},
		{"nbf now, no leeway", "nbf", 0, &none, ""},
		{"nbf in 1 s, no leeway", "nbf", time.Second, &none, ReasonNotYetValid},
		{"iat in 60 s", "iat", 60 * time.Second, nil, ""},
		{"iat in 61 s", "iat", 61 * time.Second, nil, ReasonNotYetValid},
	} {
		payload := goodPayload()
		payload[c.claim] = noon().Add(c.at).Unix()
		v, err := NewVerifier(VerifierOptions{Keys: ring(t), Leeway: c.leeway})
		if err != nil {
			t.Fatal(err)
		}
		token := forge(t, k, header, payload)
		p, err := v.Verify(token, "t1", AudienceBroker, noon())
		if c.reason == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		refuse(t, c.name, p, err, c.reason, token)
		if by := c.at.Abs().String(); err != nil && (!strings.Contains(err.Error(), c.claim) || !strings.Contains(err.Error(), by)) {
			t.Errorf("%s: %q does not say which claim and by how much (%s)", c.name, err, by)
		}
	}
	tooMuch := LeewayMax + 1
	for _, o := range []VerifierOptions{{}, {Keys: ring(t), Leeway: &tooMuch}, {Keys: ring(t), Leeway: ptr(-time.Second)}} {
		if _, err := NewVerifier(o); err == nil {
			t.Errorf("options %+v are accepted", o)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestGarbageIsMalformed(t *testing.T) {
	v := verifier(t)
	good := mint(t, signer(t), claims())
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"nothing": "", "word": "hello", "two segments": parts[0] + "." + parts[1], "four segments": good + ".x", "only dots": "..",
		"padding": parts[0] + "=." + parts[1] + "." + parts[2], "header not JSON": "aGk." + parts[1] + "." + parts[2],
		"payload not JSON": parts[0] + ".aGk." + parts[2], "space in front": " " + good, "line end": good + "\n",
		"line break inside": good[:20] + "\r\n" + good[20:],
		"over the bound":    strings.Repeat("a", TokenBytesMax+1),
		"critical":          forge(t, keyFrom(t, 1), map[string]any{"alg": "EdDSA", "crit": []string{"b64"}, "b64": false}, goodPayload()),
		"payload null":      signRaw(t, keyFrom(t, 1), []byte(`{"alg":"EdDSA"}`), []byte("null")),
	} {
		p, err := v.Verify(token, "t1", AudienceBroker, noon())
		refuse(t, name, p, err, ReasonMalformed, token)
		p, err = v.VerifyOwn(token, AudienceBroker, noon())
		if err == nil || p != nil {
			t.Errorf("%s: VerifyOwn accepts it", name)
		}
	}
	// 64 bytes of signature leave four unused bits in the last character; setting one must not make a second spelling.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, good[len(good)-1])
	respelled := good[:len(good)-1] + string(alphabet[last|1])
	p, err := v.Verify(respelled, "t1", AudienceBroker, noon())
	refuse(t, "another spelling", p, err, ReasonMalformed, respelled)
	flipped := []byte(good)
	flipped[len(parts[0])+5] ^= 1
	p, err = v.Verify(string(flipped), "t1", AudienceBroker, noon())
	if p != nil || err == nil {
		t.Error("a token with a changed byte is accepted")
	}
}

func TestKidIsAHintAndEveryPublishedKeyVerifies(t *testing.T) {
	var r KeyRing
	if err := r.Publish("t1", keyFrom(t, 3).Public(), keyFrom(t, 1).Public(), keyFrom(t, 4).Public()); err != nil {
		t.Fatal(err)
	}
	v := verifierOf(t, &r)
	for _, kid := range []any{keyFrom(t, 1).ID(), keyFrom(t, 4).ID(), "unknown", 7, nil} {
		header := map[string]any{"alg": "EdDSA", "kid": kid}
		if kid == nil {
			delete(header, "kid")
		}
		if _, err := v.Verify(forge(t, keyFrom(t, 1), header, goodPayload()), "t1", AudienceBroker, noon()); err != nil {
			t.Errorf("kid %v: %v", kid, err)
		}
		token := forge(t, keyFrom(t, 9), header, goodPayload())
		p, err := v.Verify(token, "t1", AudienceBroker, noon())
		refuse(t, "a key that is not published", p, err, ReasonSignature, token)
	}
	if got := named(keyFrom(t, 4).ID(), r.PublishedKeys("t1")); got[0].ID != keyFrom(t, 4).ID() || len(got) != 3 {
		t.Errorf("the named key is not tried first: %v", got)
	}
}

func TestVerifyOwnUsesTheTenantOfTheToken(t *testing.T) {
	v := verifier(t)
	token := mint(t, signer(t), claims())
	if p, err := v.VerifyOwn(token, AudienceBroker, noon()); err != nil || p.Tenant != "t1" {
		t.Fatalf("%+v, %v", p, err)
	}
	payload := goodPayload()
	payload["tid"] = "t2" // claims another tenant than the one whose key signed
	payload["perms"] = []string{}
	forged := forge(t, keyFrom(t, 1), map[string]any{"alg": "EdDSA"}, payload)
	p, err := v.VerifyOwn(forged, AudienceBroker, noon())
	refuse(t, "a foreign tid", p, err, ReasonSignature, forged)
}
