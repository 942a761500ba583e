package actors

// push appends b to its tenant's queue and the tenant to the round; mu is held.
func (f *fairDispatcher) push(b *mailbox) {
	t := b.tenant
	if t.head == nil {
		t.head = b
	} else {
		t.tail.runNext = b
	}
	t.tail = b
	if t.queued {
		return
	}
	t.queued = true
	if t.running > 0 && t.deficit > 0 {
		f.insertFirst(t)
		return
	}
	// It was idle, or its share is used up. Debts stay as long as others have worked meanwhile, savings never.
	if t.deficit > 0 || t.epoch != f.epoch {
		t.deficit = 0
	}
	t.epoch = f.epoch
	f.insertLast(t)
}

func (f *fairDispatcher) insertFirst(t *tenant) {
	t.next = f.first
	f.first = t
	if f.last == nil {
		f.last = t
	}
}

// insertLast puts a tenant at the end of the round, with the share it will have when its turn comes.
func (f *fairDispatcher) insertLast(t *tenant) {
	t.deficit += quantumBytes
	if f.first == nil {
		f.first = t
	} else {
		f.last.next = t
	}
	f.last = t
}

// pop removes the first actor of the tenant at the head of the round, and the tenant when it was the last; mu is held.
func (f *fairDispatcher) pop(t *tenant) *mailbox {
	b := t.head
	t.running++
	t.head, b.runNext = b.runNext, nil
	if t.head == nil {
		t.tail = nil
		t.queued = false
		f.first, t.next = t.next, nil
		if f.first == nil {
			f.last = nil
		}
	}
	return b
}

// rotate moves the head of the round to its end; mu is held.
func (f *fairDispatcher) rotate() {
	t := f.first
	f.first, t.next = t.next, nil
	if f.first == nil {
		f.last = nil
	}
	f.insertLast(t)
}
