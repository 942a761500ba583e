package auth

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

const (
	// verifiedEntriesMax bounds the verified tokens remembered: one per signed-in principal and audience, so that a
	// node with some thousand clients checks each signature once.
	verifiedEntriesMax = 4096
	// verifiedBytesMax bounds the memory of remembered tokens, by the estimate of verified.weight: 4096 usual tokens of
	// some 600 bytes fit, of the largest 63 do.
	verifiedBytesMax = 48 << 20
)

type cacheKey [sha256.Size]byte

// cacheKeyOf hashes lengths too, so that no two different triples hash the same bytes.
func cacheKeyOf(tenant, audience, token string) cacheKey {
	h := sha256.New()
	var n [8]byte
	for _, part := range []string{tenant, audience, token} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return cacheKey(h.Sum(nil))
}

// verified is the outcome of one verification. The token itself is not kept.
type verified struct {
	at                         cacheKey
	principal                  *Principal
	key                        PublicKey
	expires, notBefore, issued int64
	bytes                      int // of the token
}

// weight bounds the memory of an entry from above: the permissions of a token are kept as strings and in up to three
// indexes, which took 3 to 15 times the size of the token in measurements with 1, 10 and 1000 grants of each kind.
func (v *verified) weight() int { return 1024 + 16*v.bytes }

// verifiedCache keeps the most recently used verifications.
type verifiedCache struct {
	mu    sync.Mutex
	byKey map[cacheKey]*list.Element // of *verified
	order *list.List                 // most recently used in front
	bytes int                        // sum of weights
}

func newVerifiedCache() *verifiedCache {
	return &verifiedCache{byKey: make(map[cacheKey]*list.Element), order: list.New()}
}

func (c *verifiedCache) get(k cacheKey) *verified {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*verified)
}

func (c *verifiedCache) put(k cacheKey, v *verified) {
	v.at = k
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[k])
	c.byKey[k] = c.order.PushFront(v)
	c.bytes += v.weight()
	for c.order.Len() > verifiedEntriesMax || c.bytes > verifiedBytesMax {
		c.remove(c.order.Back())
	}
}

func (c *verifiedCache) drop(k cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[k])
}

func (c *verifiedCache) remove(e *list.Element) {
	if e == nil {
		return
	}
	v := c.order.Remove(e).(*verified)
	delete(c.byKey, v.at)
	c.bytes -= v.weight()
}
