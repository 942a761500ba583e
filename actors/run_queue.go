package actors

// runQueue is a FIFO of functions that gives its memory back when empty.
type runQueue struct {
	list []func()
	head int
}

func (q *runQueue) push(f func()) { q.list = append(q.list, f) }

func (q *runQueue) pop() func() {
	if q.head == len(q.list) {
		return nil
	}
	f := q.list[q.head]
	q.list[q.head] = nil
	q.head++
	switch {
	case q.head == len(q.list):
		*q = runQueue{}
	case q.head >= 64 && 2*q.head >= len(q.list):
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return f
}
