package client

import (
	"sync"

	"github.com/felixd/felixd/wire"
)

// outbox is what waits to be written on a stream. Frames are made right in the chunks that are written: that is the one
// copy of a payload on our side of QUIC. Its size is bounded by who fills it: the slots of the lane in items, the byte
// budgets of the client in bytes.
type outbox struct {
	spares   *chunkPool
	chunks   fifo[*chunk]
	last     *chunk // the newest, while it may take more
	requests int
	scratch  []byte // to make small frames in
}

// chunk is the bytes of one write, and the requests in it, in order.
type chunk struct {
	bytes    []byte
	requests []*request
	pooled   bool
}

// add makes the frame of a request.
func (o *outbox) add(l *lane, r *request) error {
	if err := r.encoder.encode(l, r.id, o); err != nil {
		return err
	}
	r.encoder = nil
	o.newest().requests = append(o.newest().requests, r)
	o.requests++
	return nil
}

func (o *outbox) newest() *chunk { return o.chunks.at(o.chunks.len() - 1) }

// room returns the chunk to append a frame of n bytes to; the caller appends no more than that.
func (o *outbox) room(n int) *chunk {
	if o.last != nil && len(o.last.bytes)+n <= cap(o.last.bytes) {
		return o.last
	}
	c := o.spares.get(n)
	o.chunks.push(c)
	o.last = c
	return c
}

// chunkPool keeps chunks that were written for those who need one next.
type chunkPool struct {
	bytes int // room of a chunk: small frames are joined up to it
	pool  sync.Pool
}

// get returns an empty chunk with room for n bytes at least.
func (p *chunkPool) get(n int) *chunk {
	if n > p.bytes { // what it is for goes alone
		return &chunk{bytes: make([]byte, 0, n)}
	}
	if c, ok := p.pool.Get().(*chunk); ok {
		return c
	}
	return &chunk{bytes: make([]byte, 0, p.bytes), pooled: true}
}

// put takes a chunk back that nobody uses any more. One that outgrew its room is left to the collector of garbage.
func (p *chunkPool) put(c *chunk) {
	if !c.pooled || cap(c.bytes) != p.bytes {
		return
	}
	clear(c.requests)
	c.bytes, c.requests = c.bytes[:0], c.requests[:0]
	p.pool.Put(c)
}

// adoptAt is how large a finished frame must be to be written from where it lies. A smaller one is joined with others:
// a write costs more than copying it.
const adoptAt = 8 << 10

// take puts a finished frame in, which from here on belongs to the outbox.
func (o *outbox) take(frame []byte) {
	if len(frame) < adoptAt {
		c := o.room(len(frame))
		c.bytes = append(c.bytes, frame...)
		return
	}
	o.chunks.push(&chunk{bytes: frame})
	o.last = nil
}

// takeChunk is take for a frame that fills a chunk of the pool.
func (o *outbox) takeChunk(c *chunk) {
	if len(c.bytes) < adoptAt {
		o.take(c.bytes)
		o.spares.put(c)
		return
	}
	o.chunks.push(c)
	o.last = nil
}

// takeJSON puts a message in. It fails when the frame is longer than most bytes, with the words of why.
func (o *outbox) takeJSON(op func() string, m wire.Message, most int, why tooLong) error {
	frame := wire.AppendJSONFrame(o.scratch[:0], m)
	if n := len(frame) - wire.HeaderSize; n > most {
		return why.error(op(), n, most)
	}
	if o.scratch = nil; len(frame) < adoptAt { // it is copied
		o.scratch = frame
	}
	o.take(frame)
	return nil
}

// next takes the oldest chunk out, nil when there is none.
func (o *outbox) next() *chunk {
	if o.chunks.len() == 0 {
		return nil
	}
	c := o.chunks.remove(0)
	if o.last == c {
		o.last = nil
	}
	o.requests -= len(c.requests)
	return c
}

// drain takes all requests out, which were not written.
func (o *outbox) drain() []*request {
	var all []*request
	for c := o.next(); c != nil; c = o.next() {
		all = append(all, c.requests...)
	}
	return all
}
