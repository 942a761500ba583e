package sessionactor

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/felixd/felixd/internal/effort"
	"github.com/felixd/felixd/wire"
)

// Damaged frames, sent to a broker by a client that is signed in: each is answered or passed over, nothing else suffers, and
// every permit comes back.
//
// mission 173, mission 184
func TestDamagedFramesHarmNobody(t *testing.T) {
	x := open(t, setting{})
	c := x.connect(func(c *memConn) { c.chunk = 100 })
	honest := dial(t, c, today())
	whole := [][]byte{
		batchTo("orders", 3, wire.AckPerBatch, "a", "bc"), batchTo("orders", 0, wire.AckNone, "quiet"),
		wire.AppendJSONFrame(nil, &wire.CacheGet{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", RequestID: wire.Some(uint64(1))}),
		wire.AppendJSONFrame(nil, &wire.CachePut{TenantID: tenant, Namespace: namespace, Cache: "users", Key: "k", Value: []byte("v")}),
		wire.AppendJSONFrame(nil, &wire.ShardOwners{TenantID: tenant, Namespace: namespace, Name: "wide", RequestID: 2}),
		wire.AppendJSONFrame(nil, today()),
	}
	rng := rand.New(rand.NewPCG(7, 11))
	frames := effort.Size("malformed_frames")
	for sent := 0; sent < frames; {
		l := dial(t, c, today())
		over := make(chan error, 1)
		go func() { over <- l.drainAnswers() }()
		for sent < frames {
			sent++
			from := wire.HeaderSize
			if rng.IntN(50) == 0 {
				from = 0 // a header that is damaged leaves the stream where nobody knows
			}
			if _, err := l.w.Write(damaged(rng, whole[rng.IntN(len(whole))], from)); err != nil || from == 0 {
				break
			}
		}
		_ = l.w.Close()
		if err := want(t, over, "the end of the stream"); err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("after %d frames: %v", sent, err)
		}
	}
	honest.publish("orders", "still served")
	x.balanced()
	if c.ctx.Err() != nil {
		t.Error("the connection was closed")
	}
}

// drainAnswers reads whole frames to the end of the stream.
func (l *line) drainAnswers() error {
	for {
		if _, err := l.read(); err != nil {
			return err
		}
	}
}

// damaged changes a few bytes of a frame, from a place on.
func damaged(rng *rand.Rand, b []byte, from int) []byte {
	b = slices.Clone(b)
	for range 1 + rng.IntN(4) {
		b[from+rng.IntN(len(b)-from)] = byte(rng.Uint32())
	}
	return b
}
