package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// KeysPerTenantMax bounds the published keys of one tenant: a staged, a current and a few that still verify. Each one
// more is a signature check that anybody can make the verifier do.
const KeysPerTenantMax = 8

// pemBytesMax bounds what ParseKey looks at; an Ed25519 key in PEM is about 120 bytes.
const pemBytesMax = 16 << 10

// Key is a private Ed25519 signing key. It never prints itself.
type Key struct {
	private ed25519.PrivateKey
	id      string
}

// NewKey draws a key from source; nil means the system's source of random bytes.
func NewKey(source io.Reader) (*Key, error) {
	if source == nil {
		source = rand.Reader
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(source, seed); err != nil {
		return nil, fmt.Errorf("draw signing key: %w", err)
	}
	return newKey(ed25519.NewKeyFromSeed(seed)), nil
}

// newKey derives the key id, so that a key keeps its id through PEM files and restarts without storing it beside.
func newKey(private ed25519.PrivateKey) *Key {
	sum := sha256.Sum256(private.Public().(ed25519.PublicKey))
	return &Key{private: private, id: hex.EncodeToString(sum[:8])}
}

// ParseKey reads a key that PEM wrote: PKCS #8 (RFC 5958, RFC 8410) in one PEM block. Errors never repeat the input.
func ParseKey(text []byte) (*Key, error) {
	if len(text) > pemBytesMax {
		return nil, fmt.Errorf("parse signing key: %d bytes is more than a key can have (%d)", len(text), pemBytesMax)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("parse signing key: expected a PEM block of type PRIVATE KEY")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("parse signing key: expected one PEM block, found more")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("parse signing key: the PEM block holds no PKCS #8 private key")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parse signing key: expected an Ed25519 key, found %T", parsed)
	}
	return newKey(private), nil
}

// PEM renders the private key for a file of mode 0600; ParseKey reads it back.
func (k *Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("render signing key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ID returns the key id: 16 lower-case hex digits, the head of the SHA-256 of the public key.
func (k *Key) ID() string { return k.id }

// Public returns the half that verifies.
func (k *Key) Public() PublicKey {
	return PublicKey{ID: k.id, Key: slices.Clone(k.private.Public().(ed25519.PublicKey))}
}

// String names the key by its id; the private half never reaches a log.
func (k *Key) String() string { return "signing key " + k.id }

// GoString is String.
func (k *Key) GoString() string { return k.String() }

// PublicKey verifies the tokens of one signing key.
type PublicKey struct {
	ID  string
	Key ed25519.PublicKey // 32 bytes; never changed after publication
}

// KeySource knows which keys a tenant publishes now. Implementations are safe for concurrent use and answer from
// memory: the answer is asked for on every request.
type KeySource interface {
	// PublishedKeys returns the keys of the tenant, none for a tenant that is not known. The result is not changed by
	// anybody afterwards.
	PublishedKeys(tenant string) []PublicKey
}

// KeyRing is a KeySource that is told its keys. The zero KeyRing knows no tenant.
type KeyRing struct {
	mu   sync.RWMutex
	keys map[string][]PublicKey
}

// Publish replaces the keys of a tenant; no keys at all forgets the tenant. It refuses more than KeysPerTenantMax keys,
// keys of a wrong size and two keys of one id, and changes nothing then.
func (r *KeyRing) Publish(tenant string, keys ...PublicKey) error {
	if len(keys) > KeysPerTenantMax {
		return fmt.Errorf("publish keys of tenant %s: %d keys, at most %d are allowed; retire some", tenant, len(keys), KeysPerTenantMax)
	}
	own := make([]PublicKey, 0, len(keys))
	for _, k := range keys {
		if len(k.Key) != ed25519.PublicKeySize {
			return fmt.Errorf("publish keys of tenant %s: key %s has %d bytes, an Ed25519 key has %d", tenant, k.ID, len(k.Key), ed25519.PublicKeySize)
		}
		if slices.ContainsFunc(own, func(o PublicKey) bool { return o.ID == k.ID }) {
			return fmt.Errorf("publish keys of tenant %s: two keys with the id %s", tenant, k.ID)
		}
		own = append(own, PublicKey{ID: k.ID, Key: slices.Clone(k.Key)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = make(map[string][]PublicKey)
	}
	if len(own) == 0 {
		delete(r.keys, tenant)
		return nil
	}
	r.keys[tenant] = own
	return nil
}

// PublishedKeys implements KeySource.
func (r *KeyRing) PublishedKeys(tenant string) []PublicKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.keys[tenant]
}
