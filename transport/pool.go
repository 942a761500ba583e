package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// ErrPoolClosed is what Acquire returns after Close.
var ErrPoolClosed = errors.New("the connection pool is closed")

// Pool keeps up to a fixed number of connections to one address and hands them out in turn. One QUIC connection is served
// by one loop, so several connections give parallelism. Connections are dialed when their turn comes first, and again when
// their turn comes and they are dead. A connection may be handed out to many users at once; nobody gives it back. Safe for
// concurrent use.
type Pool struct {
	dial  func(ctx context.Context) (*quic.Conn, error)
	slots []poolSlot
	turn  atomic.Uint64

	closing context.Context
	cancel  context.CancelFunc
	once    sync.Once
}

// poolSlot is one connection. The token in gate is the right to look at conn and to dial; waiting for it can be given up.
type poolSlot struct {
	gate chan struct{}
	conn *quic.Conn
}

// NewPool makes a pool of size connections and dials none yet. dial must return a connection whose socket closes with it,
// as DialConn does. It panics when size is not positive: a pool of nothing cannot serve.
func NewPool(size int, dial func(ctx context.Context) (*quic.Conn, error)) *Pool {
	if size <= 0 {
		panic(fmt.Sprintf("connection pool: size %d is not positive", size))
	}
	p := &Pool{dial: dial, slots: make([]poolSlot, size)}
	p.closing, p.cancel = context.WithCancel(context.Background())
	for i := range p.slots {
		p.slots[i].gate = make(chan struct{}, 1)
		p.slots[i].gate <- struct{}{}
	}
	return p
}

// Size is how many connections the pool holds at most.
func (p *Pool) Size() int { return len(p.slots) }

// Acquire returns the connection whose turn it is, dialing it if it does not exist or is dead. Users that meet at the same
// connection share one dial; if it fails, the next of them tries. It returns the error of that dial, the error of ctx, or
// ErrPoolClosed.
func (p *Pool) Acquire(ctx context.Context) (*quic.Conn, error) {
	slot := &p.slots[(p.turn.Add(1)-1)%uint64(len(p.slots))]
	select {
	case <-slot.gate:
	case <-ctx.Done():
		return nil, fmt.Errorf("acquire connection: %w", ctx.Err())
	case <-p.closing.Done():
		return nil, ErrPoolClosed
	}
	defer func() { slot.gate <- struct{}{} }()
	if p.closing.Err() != nil {
		return nil, ErrPoolClosed
	}
	if slot.conn != nil && slot.conn.Context().Err() == nil {
		return slot.conn, nil
	}
	slot.conn = nil
	conn, err := p.dialUntilClosed(ctx)
	if err != nil {
		return nil, err
	}
	slot.conn = conn
	return conn, nil
}

// dialUntilClosed dials for as long as both the caller and the pool want it.
func (p *Pool) dialUntilClosed(ctx context.Context) (*quic.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	conn, err := p.dial(ctx)
	if err != nil {
		if p.closing.Err() != nil {
			return nil, ErrPoolClosed
		}
		return nil, fmt.Errorf("acquire connection: %w", err)
	}
	return conn, nil
}

// Close closes every connection with CloseShutdown and refuses further use. It waits for dials in progress to give up and
// for the close frames to be handed to their sockets.
func (p *Pool) Close() {
	p.once.Do(func() {
		p.cancel()
		for i := range p.slots {
			<-p.slots[i].gate // the last user is done, and nobody gets past closing any more
			if conn := p.slots[i].conn; conn != nil {
				Close(conn, CloseShutdown)
			}
			p.slots[i].gate <- struct{}{}
		}
	})
}
