package sessionactor

import (
	"crypto/rand"
	"encoding/binary"
	"sync"

	"github.com/felixd/felixd/sessionactor/sessioncore"
	"github.com/felixd/felixd/wire"
)

// ProducerIDs draws the ids of a node's idempotent producers. Nobody keeps them: an id is known to a shard once a batch of it was
// appended there, and 64 random bits are not drawn twice. Safe for concurrent use.
type ProducerIDs struct {
	mu   sync.Mutex
	draw func() uint64
}

// NewProducerIDs returns ids that draw makes, which is called by one goroutine at a time.
func NewProducerIDs(draw func() uint64) *ProducerIDs { return &ProducerIDs{draw: draw} }

// randomID is 64 bits that nobody can foresee: who knew an id could publish under it.
func randomID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it does not fail, says its package
	return binary.BigEndian.Uint64(b[:])
}

// next is an id other than 0, which stands for no producer.
func (p *ProducerIDs) next() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if id := p.draw(); id != 0 {
			return id
		}
	}
}

func (l *lane) producerInit(t sessioncore.Token, m *wire.ProducerInit) {
	l.settle(t, sessioncore.Answer{Message: &wire.ProducerInitOK{RequestID: m.RequestID, ProducerID: l.session.opts.ProducerIDs.next()}})
}
