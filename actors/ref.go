package actors

import "fmt"

// Ref is the address of one incarnation that accepts messages of type M. It is comparable: two refs are equal iff they point at the
// same incarnation. The zero value refuses everything, and so does a ref to an incarnation that is gone, for ever, whoever bears
// the name now. Safe for concurrent use.
type Ref[M any] struct{ b *mailbox }

// TrySend offers m to the data lane, announcing how many bytes it keeps alive. nil means accepted: exactly one of these follows, m is
// in a turn's Messages, or the Spec's OnUnstepped is called with it. Messages of one sender are stepped in the order they were sent.
// Refusals: a *FullError (ErrFull) when the lane has no room, ErrStopped once a stop is decided. A message larger than the byte bound is
// accepted when the lane is empty. The sender must not change m afterwards. A nil message or negative bytes panics.
func (r Ref[M]) TrySend(m M, bytes int) error {
	msg := any(m)
	if msg == nil || bytes < 0 {
		panic(fmt.Sprintf("actors: TrySend(%v, %d bytes) to %q: a message must not be nil, nor its size negative", msg, bytes, r.Path()))
	}
	if r.b == nil {
		return ErrStopped
	}
	return r.b.post(msg, bytes)
}

// Complete puts m into the control lane: the completion of something this actor sent and reserved room for. It is never refused for want
// of room: exceeding Bounds.ControlItems means that a completion was not asked for, and panics. ErrStopped once a stop is decided.
// An accepted m is in a turn's Messages, or OnUndelivered is called with it.
func (r Ref[M]) Complete(m M) error {
	msg := any(m)
	if msg == nil {
		panic(fmt.Sprintf("actors: Complete(nil) to %q: a message must not be nil", r.Path()))
	}
	if r.b == nil {
		return ErrStopped
	}
	return r.b.complete(msg)
}

// Signal sets the cell (c.Sender, c.Kind) to c.Value; an older value not yet seen is forgotten. After a stop it does nothing.
func (r Ref[M]) Signal(c Cell) {
	if r.b != nil {
		r.b.signal(c)
	}
}

// Stop decides the end of the incarnation: from now on it refuses, the turn in progress ends, and then it stops. It does not wait:
// watch the ref for that.
func (r Ref[M]) Stop() {
	if r.b != nil {
		r.b.stop()
	}
}

// Alive reports whether the incarnation still accepts: false from the moment a stop is decided.
func (r Ref[M]) Alive() bool { return r.b != nil && !r.b.isClosed() }

// Path is the actor's place in the tree, like shards/3/log; empty for the zero value.
func (r Ref[M]) Path() string {
	if r.b == nil {
		return ""
	}
	return r.b.path
}

// ID numbers the incarnations of a system from 1; 0 for the zero value.
func (r Ref[M]) ID() uint64 {
	if r.b == nil {
		return 0
	}
	return r.b.id
}

func (r Ref[M]) box() *mailbox { return r.b }

// RefOf is the actor's own ref. M must be the type the actor was spawned with; another one panics.
func RefOf[M any](t *Turn) Ref[M] {
	b := t.mailbox()
	if _, ok := b.w.spec.typ.(*M); !ok {
		panic(fmt.Sprintf("actors: RefOf[%T] inside %s, which was spawned with Spec of %T", (*M)(nil), b.path, b.w.spec.typ))
	}
	return Ref[M]{b}
}
