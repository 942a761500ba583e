package sessioncore

// line is a queue of requests, first in, first out, from the middle of which one may leave.
type line struct{ head, tail *place }

// place is where a request stands in a line.
type place struct {
	of         *line // nil while it stands in none
	d          *Demand
	prev, next *place
}

func (l *line) empty() bool { return l.head == nil }

// first is the request at the head; nil when there is none.
func (l *line) first() *Demand {
	if l.head == nil {
		return nil
	}
	return l.head.d
}

func (l *line) push(p *place, d *Demand) {
	if p.of != nil {
		panic("sessioncore: a request stands in a line twice")
	}
	*p = place{of: l, d: d, prev: l.tail}
	if l.tail == nil {
		l.head = p
	} else {
		l.tail.next = p
	}
	l.tail = p
}

func (l *line) remove(p *place) {
	if p.of != l {
		panic("sessioncore: a request leaves a line in which it does not stand")
	}
	if p.prev == nil {
		l.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	*p = place{}
}
