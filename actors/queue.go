package actors

import "sync"

// chunkItems is the length of one piece of a queue: as long as a turn, so that a full turn touches at most two pieces.
const chunkItems = turnItemsMax

// item is one queued message and the bytes it was announced with.
type item struct {
	msg   any
	bytes int
}

// chunk is a piece of a queue, borrowed from the system's pool.
type chunk struct {
	next  *chunk
	items [chunkItems]item
}

// chunkPool lends chunks to all queues of one system, so that an empty queue owns none and a burst allocates little.
type chunkPool struct{ pool sync.Pool }

func (p *chunkPool) get() *chunk {
	if c, ok := p.pool.Get().(*chunk); ok {
		return c
	}
	return new(chunk)
}

func (p *chunkPool) put(c *chunk) {
	c.next = nil
	p.pool.Put(c)
}

// queue is an unbounded FIFO of items; whoever owns it keeps the bound. Its zero value is empty.
//
//  1. n items lie between (head, read) and (tail, write).
//  2. n == 0 means head == tail == nil: an empty queue holds no memory.
//  3. slots outside that range are zero, so that a chunk pins no message.
type queue struct {
	head, tail  *chunk
	read, write int
	n           int
}

func (q *queue) push(p *chunkPool, it item) {
	switch {
	case q.tail == nil:
		q.head = p.get()
		q.tail = q.head
		q.read, q.write = 0, 0
	case q.write == chunkItems:
		q.tail.next = p.get()
		q.tail = q.tail.next
		q.write = 0
	}
	q.tail.items[q.write] = it
	q.write++
	q.n++
}

// front is the oldest item; the queue must not be empty.
func (q *queue) front() item { return q.head.items[q.read] }

// pop removes the oldest item; the queue must not be empty.
func (q *queue) pop(p *chunkPool) item {
	it := q.head.items[q.read]
	q.head.items[q.read] = item{}
	q.read++
	q.n--
	if q.n == 0 {
		p.put(q.head)
		*q = queue{}
		return it
	}
	if q.read == chunkItems {
		old := q.head
		q.head, q.read = old.next, 0
		p.put(old)
	}
	return it
}
