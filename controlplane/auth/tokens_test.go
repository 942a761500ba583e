package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"
)

// noon is when the tests happen.
func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

func claims() Claims {
	return Claims{Tenant: "t1", Subject: "p:alice", Audience: AudienceBroker, Permissions: []string{"stream.publish:stream:t1/ns/s"},
		TTL: 15 * time.Minute, Now: noon()}
}

func signer(t testing.TB) *Signer { return NewSigner("t1", keyFrom(t, 1), nil) }

func mint(t testing.TB, s *Signer, c Claims) string {
	t.Helper()
	token, err := s.Mint(c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestMintedTokenHasExactlyTheClaims(t *testing.T) {
	s := NewSigner("t1", keyFrom(t, 1), bytes.NewReader(bytes.Repeat([]byte{0xab}, 16)))
	parts := strings.Split(mint(t, s, claims()), ".")
	if len(parts) != 3 {
		t.Fatalf("%d segments", len(parts))
	}
	for i, want := range []string{
		fmt.Sprintf(`{"alg":"EdDSA","kid":%q,"typ":"JWT"}`, s.key.ID()),
		fmt.Sprintf(`{"aud":"felix-broker","exp":%d,"iat":%d,"iss":"felix-auth","jti":%q,"perms":["stream.publish:stream:t1/ns/s"],"sub":"p:alice","tid":"t1"}`,
			noon().Unix()+900, noon().Unix(), strings.Repeat("ab", 16)),
	} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || string(text) != want {
			t.Errorf("segment %d is\n  %s\nwant\n  %s", i, text, want)
		}
	}
}

func TestTokenWithoutPermissionsCarriesAnEmptyList(t *testing.T) {
	c := claims()
	c.Permissions = nil
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(mint(t, signer(t), c), ".")[1])
	if err != nil || !bytes.Contains(payload, []byte(`"perms":[]`)) {
		t.Fatalf("payload %s, %v", payload, err)
	}
}

func TestTokenIdsDiffer(t *testing.T) {
	s := signer(t)
	first, second := mint(t, s, claims()), mint(t, s, claims())
	if first == second {
		t.Fatal("two tokens of the same claims are the same token")
	}
}

func TestMintRefusesWhatVerifyWould(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Claims)
	}{
		{"another tenant", func(c *Claims) { c.Tenant = "t2" }},
		{"no audience", func(c *Claims) { c.Audience = "" }},
		{"both audiences", func(c *Claims) { c.Audience = AudienceBroker + " " + AudienceControlPlane }},
		{"no subject", func(c *Claims) { c.Subject = "" }},
		{"long subject", func(c *Claims) { c.Subject = strings.Repeat("s", SubjectBytesMax+1) }},
		{"control character", func(c *Claims) { c.Subject = "a\nb" }},
		{"no life", func(c *Claims) { c.TTL = 0 }},
		{"part of a second", func(c *Claims) { c.TTL = 999 * time.Millisecond }},
		{"too long a life", func(c *Claims) { c.TTL = TokenTTLMax + 1 }},
		{"no clock", func(c *Claims) { c.Now = time.Time{} }},
		{"unknown action", func(c *Claims) { c.Permissions = []string{"stream.fly:stream:t1/ns/s"} }},
		{"foreign object", func(c *Claims) { c.Permissions = []string{"stream.publish:stream:t2/ns/s"} }},
	} {
		asked := claims()
		c.change(&asked)
		if token, err := signer(t).Mint(asked); err == nil || token != "" || !strings.HasPrefix(err.Error(), "mint token: ") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := NewSigner("t1", keyFrom(t, 1), bytes.NewReader(nil)).Mint(claims()); err == nil {
		t.Error("minted without random bytes")
	}
}

func TestTokenOver48KiBIsRefusedAtMint(t *testing.T) {
	c := claims()
	for i := range 2000 {
		c.Permissions = append(c.Permissions, fmt.Sprintf("stream.publish:stream:t1/namespace/stream-%d", i))
	}
	_, err := signer(t).Mint(c)
	var large *TokenTooLargeError
	if !errors.As(err, &large) || large.Bytes <= TokenBytesMax {
		t.Fatalf("%v", err)
	}
	// The largest that is minted is also verified.
	fits := sort.Search(len(c.Permissions), func(n int) bool {
		smaller := c
		smaller.Permissions = c.Permissions[:n]
		_, err := signer(t).Mint(smaller)
		return errors.As(err, &large)
	}) - 1
	c.Permissions = c.Permissions[:fits]
	if _, err := verifier(t).Verify(mint(t, signer(t), c), "t1", AudienceBroker, noon()); err != nil {
		t.Fatal(err)
	}
}

// forge signs any header and claims with a key, as a broken or hostile issuer would.
func forge(t testing.TB, k *Key, header, payload map[string]any) string {
	t.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	p, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return signRaw(t, k, h, p)
}
