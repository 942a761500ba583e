package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// keyFrom makes a key out of one repeated byte.
func keyFrom(t testing.TB, b byte) *Key {
	t.Helper()
	k, err := NewKey(bytes.NewReader(bytes.Repeat([]byte{b}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeyKeepsItsIdThroughPEM(t *testing.T) {
	k, err := NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := k.PEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseKey(text)
	if err != nil || again.ID() != k.ID() || !again.private.Equal(k.private) {
		t.Fatalf("read back as %v, %v", again, err)
	}
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(k.ID()) {
		t.Fatalf("the key id is %q", k.ID())
	}
	if other := keyFrom(t, 1); other.ID() == k.ID() || other.ID() != keyFrom(t, 1).ID() {
		t.Fatal("key ids do not follow the keys")
	}
	if _, err := NewKey(bytes.NewReader([]byte("short"))); err == nil {
		t.Fatal("a source that runs dry gave a key")
	}
}

func TestParseKeyRefusesWithoutRepeatingTheInput(t *testing.T) {
	good, err := keyFrom(t, 7).PEM()
	if err != nil {
		t.Fatal(err)
	}
	elliptic256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(elliptic256)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
	}
	for name, text := range map[string][]byte{
		"nothing":      nil,
		"no PEM":       []byte("MARKER-SECRET"),
		"another type": block("PUBLIC KEY", []byte("MARKER-SECRET")),
		"no PKCS 8":    block("PRIVATE KEY", []byte("MARKER-SECRET")),
		"another kind": block("PRIVATE KEY", der),
		"two blocks":   append(bytes.Clone(good), good...),
		"far too long": bytes.Repeat([]byte("MARKER-SECRET"), 1<<16),
	} {
		if k, err := ParseKey(text); err == nil || k != nil || strings.Contains(err.Error(), "MARKER") || len(err.Error()) > 200 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeyNeverPrintsItself(t *testing.T) {
	k := keyFrom(t, 0x41) // the seed is AAAA...
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%+v %#v %s", k, k, k)} {
		if strings.Contains(text, "AAAA") || strings.Contains(text, "65 65") || strings.Contains(text, "0x41") {
			t.Errorf("printed as %s", text)
		}
	}
}

func TestKeyRingPublishesBoundedDistinctKeys(t *testing.T) {
	var ring KeyRing
	if ring.PublishedKeys("t1") != nil {
		t.Fatal("the zero ring knows a tenant")
	}
	var many []PublicKey
	for b := range byte(KeysPerTenantMax + 1) {
		many = append(many, keyFrom(t, b+1).Public())
	}
	if err := ring.Publish("t1", many[:KeysPerTenantMax]...); err != nil || len(ring.PublishedKeys("t1")) != KeysPerTenantMax {
		t.Fatalf("%d keys: %v", KeysPerTenantMax, err)
	}
	for name, keys := range map[string][]PublicKey{
		"too many":   many,
		"same id":    {many[0], {ID: many[0].ID, Key: many[1].Key}},
		"wrong size": {{ID: "x", Key: many[0].Key[:31]}},
	} {
		if err := ring.Publish("t1", keys...); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if len(ring.PublishedKeys("t1")) != KeysPerTenantMax {
		t.Fatal("a refused publication changed the keys")
	}
	if err := ring.Publish("t1"); err != nil || ring.PublishedKeys("t1") != nil {
		t.Fatal("a tenant without keys is still known")
	}
}
