package client

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixd/felixd/transport"
)

const (
	// pulseEvery is how often a connection that owes answers is looked at.
	pulseEvery = 500 * time.Millisecond
	// quietLooks is how many looks in a row have to find that nothing came before the broker is asked for a sign of life, and
	// quietLooksMax what that grows to while the same requests wait and the broker shows that it is there.
	quietLooks, quietLooksMax = 2, 8
	// listenLooks is that where only subscriptions wait: longer than two pings of the connection are apart, whose answers are heard too.
	listenLooks = int(transport.ClientKeepAlive/pulseEvery) + 2
)

// quietness judges how quiet a connection is from looks at it.
type quietness struct {
	heard    uint64 // packets that had come at the last look
	quiet    int    // looks since then
	patience int    // that are borne
}

// look takes how many packets came so far, whether a request was answered since the last look, and whether one is owed an answer now. It
// reports whether the broker should be asked for a sign of life.
func (q *quietness) look(packets uint64, answered, owed bool) bool {
	if answered {
		q.patience = quietLooks
	}
	if packets != q.heard {
		q.heard, q.quiet = packets, 0
		return false
	}
	q.quiet++
	if !owed {
		return q.quiet >= max(listenLooks, q.patience)
	}
	return q.quiet >= q.patience
}

// asked says that the broker was asked, and that there is an answer or will be none.
func (q *quietness) asked() { q.quiet, q.patience = 0, min(2*q.patience, quietLooksMax) }

// pulse looks after a connection while requests or subscriptions wait on it. A broker that was killed and is there again does not know the
// connection: it answers a packet of it with a stateless reset (RFC 9000 10.3), which ends it at once, but only a packet that is longer than
// a reset, and the pings of an idle connection are not. So where something waits and nothing arrives there is one harmless exchange that
// is long enough, the sign-in of a stream on which nothing is asked; the answer of a live broker ends it. At most one is under way on a
// connection, and none where nothing waits, or where the pings are answered and no request waits.
type pulse struct {
	link *link
	pool *linkPool

	waiting   atomic.Int64 // requests, and lanes with requests, that have no answer
	answered  atomic.Bool  // one of them got its answer since the last look
	listening atomic.Int64 // open subscriptions

	mu     sync.Mutex
	timer  *time.Timer // of the next look; nil before the first
	armed  bool
	state  quietness
	asking bool // the broker is being asked for a sign of life
}

// begin says that an answer is due.
func (p *pulse) begin() {
	if p.waiting.Add(1) == 1 {
		p.arm()
	}
}

// listen says that there is one more subscription, unlisten that there is one less.
func (p *pulse) listen() {
	if p.listening.Add(1) == 1 {
		p.arm()
	}
}

func (p *pulse) unlisten() { p.listening.Add(-1) }

// arm lets the looks begin.
func (p *pulse) arm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed {
		return
	}
	p.armed, p.state = true, quietness{heard: p.packets(), patience: quietLooks}
	if p.timer == nil {
		p.timer = time.AfterFunc(pulseEvery, p.look)
	} else {
		p.timer.Reset(pulseEvery)
	}
}

// end says that one of the answers is not due any more. The timer finds out by itself when none is: requests come thick and fast.
func (p *pulse) end() {
	p.answered.Store(true)
	p.waiting.Add(-1)
}

// packets is how many packets came.
func (p *pulse) packets() uint64 { return p.link.conn.ConnectionStats().PacketsReceived }

func (p *pulse) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.waiting.Load() > 0
	if !waiting && p.listening.Load() == 0 || p.link.conn.Context().Err() != nil {
		p.armed = false
		return
	}
	p.timer.Reset(pulseEvery)
	if p.state.look(p.packets(), p.answered.Swap(false), waiting) && !p.asking {
		p.asking = p.pool.target.client.life.spawn(p.ask)
	}
}

// ask signs in on a new stream and ends it. Nobody is told what comes of it: a connection that ends tells by itself.
func (p *pulse) ask() {
	if s, err := p.pool.target.client.openOn(p.pool.target.client.closing, p.pool, p.link, "look after a quiet connection"); err == nil {
		s.finish()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered.Store(false) // that was this question
	p.asking = false
	p.state.asked()
}
