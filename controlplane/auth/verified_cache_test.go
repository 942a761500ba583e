package auth

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRememberedTokenStillExpires(t *testing.T) {
	v := verifier(t)
	token := mint(t, signer(t), claims())
	if _, err := v.Verify(token, "t1", AudienceBroker, noon()); err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(token, "t1", AudienceBroker, noon().Add(15*time.Minute+LeewayMax))
	refuse(t, "expired since", p, err, ReasonExpired, token)
	if v.cache.order.Len() != 0 {
		t.Error("an expired token is still remembered")
	}
	if _, err := v.Verify(token, "t1", AudienceBroker, noon()); err != nil {
		t.Fatal(err)
	}
	p, err = v.Verify(token, "t1", AudienceBroker, noon().Add(-2*time.Hour)) // the clock was set back
	refuse(t, "not yet issued", p, err, ReasonNotYetValid, token)
}

func TestRememberedTokenIsWorthNothingElsewhere(t *testing.T) {
	v := verifier(t)
	token := mint(t, signer(t), claims())
	if _, err := v.Verify(token, "t1", AudienceBroker, noon()); err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(token, "t1", AudienceControlPlane, noon())
	refuse(t, "another audience", p, err, ReasonAudience, token)
	p, err = v.Verify(token, "t2", AudienceBroker, noon())
	refuse(t, "another tenant", p, err, ReasonSignature, token)
}

func TestRetiredKeyTakesItsTokensAlongAtOnce(t *testing.T) {
	r := ring(t)
	v := verifierOf(t, r)
	token := mint(t, signer(t), claims())
	if _, err := v.Verify(token, "t1", AudienceBroker, noon()); err != nil {
		t.Fatal(err)
	}
	if err := r.Publish("t1", keyFrom(t, 5).Public(), keyFrom(t, 1).Public()); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(token, "t1", AudienceBroker, noon()); err != nil {
		t.Fatalf("still published: %v", err)
	}
	if err := r.Publish("t1", keyFrom(t, 5).Public()); err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(token, "t1", AudienceBroker, noon())
	refuse(t, "retired", p, err, ReasonSignature, token)
	if err := r.Publish("t1"); err != nil {
		t.Fatal(err)
	}
	p, err = v.Verify(token, "t1", AudienceBroker, noon())
	refuse(t, "tenant gone", p, err, ReasonUnknownTenant, token)
}

func entry(i, bytes int) (cacheKey, *verified) {
	return cacheKeyOf("t", "a", fmt.Sprint(i)), &verified{bytes: bytes}
}

func TestRememberedTokensAreBoundedByCountAndBytes(t *testing.T) {
	c := newVerifiedCache()
	for i := range verifiedEntriesMax + 100 {
		c.put(entry(i, 100))
	}
	if c.order.Len() != verifiedEntriesMax || len(c.byKey) != verifiedEntriesMax {
		t.Fatalf("%d entries", c.order.Len())
	}
	if k, _ := entry(99, 0); c.get(k) != nil {
		t.Error("the oldest entry is still there")
	}
	if k, _ := entry(100, 0); c.get(k) == nil {
		t.Error("an entry within the bound is gone")
	}
	for i := range verifiedEntriesMax {
		c.put(entry(i+1_000_000, TokenBytesMax))
		if c.bytes > verifiedBytesMax {
			t.Fatalf("%d bytes are kept", c.bytes)
		}
	}
	if most := verifiedBytesMax / (1024 + 16*TokenBytesMax); c.order.Len() != most {
		t.Errorf("%d of the largest tokens are kept, %d fit", c.order.Len(), most)
	}
	sum := 0
	for e := c.order.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*verified).weight()
	}
	if sum != c.bytes {
		t.Errorf("the account says %d bytes, the entries weigh %d", c.bytes, sum)
	}
	k, again := entry(1_000_000+verifiedEntriesMax-1, 10) // replaces, does not add
	before := c.order.Len()
	c.put(k, again)
	if c.order.Len() != before {
		t.Error("replacing an entry changed their number")
	}
}

func TestUsedEntriesStay(t *testing.T) {
	c := newVerifiedCache()
	first, v := entry(0, 10)
	c.put(first, v)
	for i := range 2 * verifiedEntriesMax {
		c.put(entry(i+1, 10))
		if c.get(first) == nil {
			t.Fatalf("an entry in use was dropped after %d others", i+1)
		}
	}
}

func TestCacheKeysTellNeighboursApart(t *testing.T) {
	if cacheKeyOf("a", "bc", "d") == cacheKeyOf("ab", "c", "d") || cacheKeyOf("", "a", "b") == cacheKeyOf("a", "", "b") {
		t.Error("two triples of the same bytes have one key")
	}
}

func TestVerifierServesManyAtOnce(t *testing.T) {
	v := verifier(t)
	tokens := make([]string, 8)
	for i := range tokens {
		tokens[i] = mint(t, signer(t), claims())
	}
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 50 {
				if _, err := v.Verify(tokens[(g+i)%len(tokens)], "t1", AudienceBroker, noon()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// FuzzVerify: whatever the token, no panic, and nobody without the key gets in.
func FuzzVerify(f *testing.F) {
	k := keyFrom(f, 1)
	good := mint(f, NewSigner("t1", k, strings.NewReader(strings.Repeat("r", 16))), claims())
	f.Add(good)
	f.Add(forge(f, k, map[string]any{"alg": "none"}, goodPayload()))
	f.Add(forge(f, k, map[string]any{"alg": "EdDSA", "kid": 3}, map[string]any{"exp": "x"}))
	f.Add("..")
	f.Add("eyJhbGciOiJFZERTQSJ9.bnVsbA.")
	v := verifier(f)
	f.Fuzz(func(t *testing.T, token string) {
		p, err := v.Verify(token, "t1", AudienceBroker, noon())
		if (p == nil) == (err == nil) {
			t.Fatalf("principal %v and error %v", p, err)
		}
		if err == nil && token != good {
			t.Fatalf("a token nobody minted is accepted: %q", token)
		}
		if own, err := v.VerifyOwn(token, AudienceBroker, noon()); err == nil && own.Tenant != "t1" {
			t.Fatalf("VerifyOwn gives tenant %q", own.Tenant)
		}
	})
}
