package client

// fifo is a queue whose storage is reused. The zero value is empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// at returns the i-th item from the front.
func (q *fifo[T]) at(i int) T { return q.items[q.head+i] }

// remove takes the i-th item from the front out.
func (q *fifo[T]) remove(i int) T {
	var zero T
	v := q.at(i)
	copy(q.items[q.head+1:q.head+i+1], q.items[q.head:q.head+i]) // what is before it moves up
	q.items[q.head] = zero
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}

// drain takes everything out.
func (q *fifo[T]) drain() []T {
	all := q.items[q.head:]
	q.items, q.head = nil, 0
	return all
}
