package transport

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"github.com/quic-go/quic-go"
)

// ResetKey derives the key of ListenOptions.StatelessResetKey from a secret that a broker keeps over its restarts, such as a private key: at
// least 16 bytes of entropy. Nothing can be learned about the secret from it.
func ResetKey(secret []byte) *quic.StatelessResetKey {
	derived, err := hkdf.Key(sha256.New, secret, nil, "felixd stateless reset", len(quic.StatelessResetKey{}))
	if err != nil {
		panic(fmt.Sprintf("transport: derive a reset key: %v", err)) // only for lengths that no hash can fill
	}
	key := quic.StatelessResetKey(derived)
	return &key
}
