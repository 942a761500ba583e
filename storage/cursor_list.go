package storage

// cursorList is a list of readers that are linked through themselves: a reader is in one list at most. The zero value is
// empty.
type cursorList struct{ head, tail *memCursor }

func (l *cursorList) first() *memCursor { return l.head }

func (l *cursorList) after(c *memCursor) *memCursor { return c.succ }

// take moves a reader from the list it is in, if any, to the end of this one.
func (l *cursorList) take(c *memCursor) {
	c.leaveList()
	c.list, c.prev = l, l.tail
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.succ = c
	}
	l.tail = c
}

// leaveList takes the reader out of the list it is in.
func (c *memCursor) leaveList() {
	l := c.list
	if l == nil {
		return
	}
	if c.prev == nil {
		l.head = c.succ
	} else {
		c.prev.succ = c.succ
	}
	if c.succ == nil {
		l.tail = c.prev
	} else {
		c.succ.prev = c.prev
	}
	c.list, c.prev, c.succ = nil, nil, nil
}
